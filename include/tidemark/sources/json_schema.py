"""The JSON Schema of source files, made from their model: what an editor completes, explains and underlines.

``tidemark validate`` stays the judge: it also checks what a JSON Schema cannot say, such as the grammar of a schedule.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from tidemark import formats
from tidemark.sources.check import Check
from tidemark.sources.expectation_names import EXPECTATIONS, REQUIRED
from tidemark.sources.fields import COLUMN_TYPES
from tidemark.sources.freshness import Freshness
from tidemark.sources.history import History
from tidemark.sources.invariants import Invariants
from tidemark.sources.layout import Layout
from tidemark.sources.maintenance import Maintenance
from tidemark.sources.model import Source, Table
from tidemark.sources.notifier import Notifier
from tidemark.sources.reconcile import Reconcile
from tidemark.sources.retention import Retention
from tidemark.sources.schedules import SCHEDULES
from tidemark.sources.schema_policy import SchemaPolicies

FILE: Final = "tidemark.schema.json"
"""Name of the file beside source files that editors read."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TYPE: Final = f"^({'|'.join(COLUMN_TYPES)}|decimal\\(\\s*[0-9]{{1,2}}\\s*,\\s*[0-9]{{1,2}}\\s*\\))$"

_DESCRIBED: Final = (
    Table,
    Maintenance,
    Check,
    Freshness,
    History,
    Invariants,
    Layout,
    Retention,
    Reconcile,
    Notifier,
    SchemaPolicies,
)

_NOT_SHOWN: Final = ("title", "default")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a source file, with the options of each format and the arguments of each check."""
    made = Source.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = made["$defs"]
    definitions.pop("BaseModel", None)
    for model in _DESCRIBED:
        _describe(definitions[model.__name__], model)
    _describe(made, Source)
    properties = made["properties"]
    properties["format"] = {"enum": formats.names(), "description": "The wire format of the dumps: docs/formats/."}
    properties["options"] = {"type": "object", "description": "The format's own: docs/formats/."}
    properties["schedule"]["examples"] = [*SCHEDULES, "15 3 * * *"]
    _as_written(properties["start_date"], "When the schedule begins: 2026-01-31, or 2026-01-31T06:00:00Z.")
    _as_written(properties["log_restarts"]["items"])
    table = definitions["Table"]["properties"]
    _as_written(table["reloads"]["items"])
    table["columns"]["additionalProperties"] = {"type": "string", "pattern": _TYPE}
    of_table = definitions["Layout"]["properties"]["properties"]
    kinds = ("string", "boolean", "number")  # the model makes texts of them
    of_table["additionalProperties"] = {"anyOf": [{"type": kind} for kind in kinds]}
    _check_arguments(definitions["Check"])
    made["allOf"] = list(_options(definitions))
    return {"$schema": _DIALECT, **_plain(made), "title": "Source file of Tidemark"}


@functools.cache
def as_text() -> str:
    """Return the JSON Schema as the text of a file."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


def write_beside(folder: Path) -> Path:
    """Write the schema into a folder of source files, for editors, and return its path."""
    file = folder / FILE
    file.write_text(as_text(), encoding="utf-8")
    return file


def _options(definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield for each format what its ``options`` may be; put the definitions that they need beside the others."""
    for name in formats.names():
        model = formats.resolve(name).Options
        options = model.model_json_schema(by_alias=True, ref_template=f"#/$defs/{name}.{{model}}")
        _describe(options, model)
        for inner, definition in options.pop("$defs", {}).items():
            definitions[f"{name}.{inner}"] = definition
        definitions[f"{name}.options"] = options
        yield {
            "if": {"properties": {"format": {"const": name}}, "required": ["format"]},
            "then": {"properties": {"options": {"$ref": f"#/$defs/{name}.options"}}},
        }


def _check_arguments(check: dict[str, Any]) -> None:
    """Let a check have the arguments that its expectation has, and no others."""
    own = check["properties"]
    own["type"] = {"enum": sorted(EXPECTATIONS), "description": "An expectation of Great Expectations, by its name."}
    check["additionalProperties"] = True
    check["allOf"] = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {
                "required": sorted(REQUIRED[name]),
                "propertyNames": {"enum": sorted({*arguments, *own})},
            },
        }
        for name, arguments in sorted(EXPECTATIONS.items())
    ]


def _as_written(moment: dict[str, Any], description: str | None = None) -> None:
    """Let a moment be a date or a time, as a person writes it."""
    moment.pop("format", None)
    moment.update({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"})
    if description:
        moment["description"] = description


def _describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    """Give the properties of a model the texts that stand under its fields."""
    names = {field_name: field.alias or field_name for field_name, field in model.model_fields.items()}
    for field_name, text in _docstrings(model).items():
        if (name := names.get(field_name)) in definition["properties"]:
            definition["properties"][name]["description"] = text
    definition["description"] = (inspect.getdoc(model) or "").partition("\n\n")[0].replace("\n", " ")


def _docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return field -> the text under it, from the source code of a model and of those that it extends."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if not issubclass(cls, BaseModel) or cls is BaseModel:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for pair in itertools.pairwise(statements):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.replace("``", "`").split())
    return found


def _plain(value: Any, *, names: bool = False) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a part of a schema without Pydantic's titles and defaults; ``names`` says that its keys are names."""
    if isinstance(value, dict):
        return {
            key: _plain(inner, names=key in {"properties", "$defs"} and not names)
            for key, inner in value.items()
            if names or key not in _NOT_SHOWN
        }
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
