"""Writes the pages of this folder from the code: ``python docs/reference/generate.py``, which ``make docs`` does too.

Typer's commands are of classes that it does not export, so they have no types here.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.reference.json_output import json_output
from docs.reference.lake_tables import tables
from docs.reference.markdown import sentence, table
from docs.reference.texts import texts_in

import tidemark.cli.commands  # noqa: F401  puts the commands into the application
from tidemark import formats
from tidemark.cli.app import app
from tidemark.dumps.wrapping import Wrapping
from tidemark.events import Encoding
from tidemark.sources.check import Check
from tidemark.sources.choices import Consequence, Deletes, Files, Severity, Transactions
from tidemark.sources.freshness import Freshness
from tidemark.sources.history import History
from tidemark.sources.invariants import Invariants
from tidemark.sources.json_schema import schema
from tidemark.sources.layout import Layout
from tidemark.sources.maintenance import Maintenance
from tidemark.sources.model import Source, Table
from tidemark.sources.notifier import Notifier
from tidemark.sources.reconcile import Reconcile
from tidemark.sources.retention import Retention
from tidemark.sources.schema_policy import Added, Gone, New, Retyped, SchemaPolicies, SchemaPolicy
from tidemark.values.masking import Mask

FOLDER = Path(__file__).parent

_MADE = "<!-- Made from the code by docs/reference/generate.py: change it there. -->\n\n"

_PARTS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("The source", "", Source),
    ("A table", "tables.<name>", Table),
    ("Checks", "tables.<name>.checks[]", Check),
    ("Freshness", "freshness, tables.<name>.freshness", Freshness),
    ("History", "tables.<name>.history", History),
    ("Layout", "tables.<name>.layout", Layout),
    ("Invariants", "invariants", Invariants),
    ("Maintenance", "maintenance", Maintenance),
    ("Retention", "retention", Retention),
    ("SchemaPolicies", "schema", SchemaPolicies),
    ("Reconcile", "reconcile", Reconcile),
    ("Notifiers", "on_failure[]", Notifier),
)

_KINDS: tuple[type[Enum], ...] = (
    Consequence,
    Deletes,
    Encoding,
    Files,
    Mask,
    SchemaPolicy,
    Added,
    Gone,
    Retyped,
    New,
    Severity,
    Transactions,
    Wrapping,
)


def pages() -> dict[str, str]:
    """Return by file name the text of each page."""
    made = {
        "source-file.md": "\n\n".join(_source_file()),
        "command-line.md": "\n\n".join(_command_line()),
        "tables.md": "\n\n".join(tables()),
        "json-output.md": "\n\n".join(json_output()),
    }
    return {name: f"{_MADE}{text}\n" for name, text in made.items()}


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def _source_file() -> Iterator[str]:
    """Yield the parts of the page of the source file."""
    made = schema()
    yield "# Source file"
    yield (
        "Every key of a source file, made from its model. An unknown key, option, type or check is an error that names "
        "the line and what is allowed. A commented example is in the [README](../../README.md), and `tidemark "
        "schema` prints the JSON Schema for editors. What each key does for a table: [Options of a table]"
        "(../table-options.md)."
    )
    for title, path, model in _PARTS:
        definition = made if model is Source else made["$defs"][model.__name__]
        yield f"## {title}"
        if path:
            yield f"`{path}`. {sentence(definition.get('description', ''))}".strip()
        yield _keys(definition, model, made["$defs"])
    yield "## Values"
    for kind in _KINDS:
        yield f"### {kind.__name__}"
        yield sentence((inspect.getdoc(kind) or "").partition("\n\n")[0])
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        texts = texts_in(body.body if isinstance(body, ast.ClassDef) else [])
        yield table(["value", "meaning"], _values_of(kind, texts))
    yield "## Options of a format"
    yield "`options` holds what the format itself needs. The pages of the formats say when."
    for name in formats.names():
        definition = made["$defs"][f"{name}.options"]
        yield f"### {name}"
        page = f"[{name}](../formats/{name}.md)"
        if definition.get("properties"):
            yield f"{page} has:"
            yield _keys(definition, formats.resolve(name).Options, made["$defs"])
        else:
            yield f"{page} has no options."


def _values_of(kind: type[Enum], texts: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield rows of values with their text; a text stands under the last of the values that it tells of."""
    together: list[str] = []
    for value in kind:
        together.append(f"`{value.value}`")
        if value.name in texts:
            yield [", ".join(together), sentence(texts[value.name])]
            together = []
    if together:
        raise ValueError(f"{kind.__name__}: {', '.join(together)} have no text")


def _keys(definition: Mapping[str, Any], model: type[BaseModel], definitions: Mapping[str, Any]) -> str:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    required = set(definition.get("required", ()))
    rows = []
    for name, field in fields.items():
        declaration = definition["properties"][name]
        default = "needed" if name in required else _default(field.get_default(call_default_factory=True))
        text = sentence(declaration.get("description", "")).replace("docs/formats/.", "[below](#options-of-a-format).")
        rows.append([f"`{name}`", _type(declaration, definitions), default, text])
    return table(["key", "value", "default", "meaning"], rows)


def _default(value: object) -> str:
    if value is PydanticUndefined or value is None or value in ({}, (), []) or isinstance(value, BaseModel):
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"`{text}`".replace('"', "").replace(" 00:00:00+00:00", "")


def _type(declaration: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return what a value may be, in words."""
    if "$ref" in declaration:
        name = declaration["$ref"].rpartition("/")[2]
        part = next((title for title, _, model in _PARTS if model.__name__ == name), None)
        if part or name in {kind.__name__ for kind in _KINDS}:
            return f"[{part or name}](#{_anchor(part or name)})"
        return _type(definitions[name], definitions)
    if "enum" in declaration and len(declaration["enum"]) <= 12:
        return ", ".join(f"`{value}`" for value in declaration["enum"])
    if "anyOf" in declaration:
        kinds = [_type(each, definitions) for each in declaration["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if declaration.get("type") == "array":
        return f"list of: {_type(declaration.get('items', {}), definitions)}"
    if declaration.get("type") == "object" and isinstance(declaration.get("additionalProperties"), dict):
        return f"names to: {_type(declaration['additionalProperties'], definitions)}"
    kind = {"object": "keys", "string": "text", "integer": "whole number", "boolean": "`true`, `false`"}
    text = kind.get(declaration.get("type", ""), declaration.get("type", "text"))
    low, high = declaration.get("minimum"), declaration.get("maximum")
    return f"{text}, {low} to {high}" if low is not None and high is not None else text


def _command_line() -> Iterator[str]:
    """Yield the parts of the page of the command line."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("tidemark", ["doctor"])
    yield "# Command line"
    yield (
        "Every command with its arguments and options, made from the program. How output, exit statuses and progress "
        "work: [The command line](../operations/command-line.md), [Running](../operations/running.md)."
    )
    yield from _options_of(root, context)
    group = None
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command.hidden:
            continue
        if (panel := getattr(command, "rich_help_panel", None) or "Others") != group:
            group = panel
            yield f"## {panel}"
        yield from _command(command, context, name, "###")


def _command(command: Any, parent: Any, name: str, level: str) -> Iterator[str]:
    context = type(parent)(command, info_name=name, parent=parent)
    yield f"{level} {context.command_path}"
    yield sentence(command.help or "")
    if hasattr(command, "commands"):
        for inner in command.list_commands(context):
            yield from _command(command.get_command(context, inner), context, inner, f"{level}#")
        return
    yield f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}".rstrip()
    yield from _options_of(command, context)


def _options_of(command: Any, context: Any) -> Iterator[str]:
    rows = []
    for parameter in command.get_params(context):
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        meaning = getattr(parameter, "help", None) or ""
        name = (
            ", ".join(parameter.opts)
            if parameter.param_type_name == "option"
            else parameter.metavar or parameter.name.upper()
        )
        value = "" if getattr(parameter, "is_flag", False) or getattr(parameter, "count", False) else _values(parameter)
        rows.append([f"`{name}`", value, sentence(meaning)])
    if rows:
        yield table(["name", "value", "meaning"], rows)


def _values(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{choice.value}`" for choice in kind)
    words = {int: "whole number", float: "number"}
    return f"{parameter.metavar or words.get(kind, 'text')}{', again and again' if parameter.multiple else ''}"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    main()
