"""The JSON Schema of source files: right files are valid by it, wrong ones are not, and editors find it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from tidemark import formats
from tidemark.cli.app import app
from tidemark.sources.json_schema import FILE, schema
from tidemark.sources.model import Source
from tidemark.sources.yaml_document import read_document

ROOT = Path(__file__).parents[2]

BUNDLED = sorted((ROOT / "include" / "sources").glob("*.yaml"))


@pytest.fixture(scope="module")
def problems() -> Callable[[object], list[str]]:
    """Return the function that gives the problems of a source file by the schema."""
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    return lambda value: [error.message for error in validator.iter_errors(value)]


@pytest.mark.parametrize("file", BUNDLED, ids=lambda file: file.stem)
def test_bundled_sources_are_valid(file: Path, problems: Callable[[object], list[str]]) -> None:
    """What `tidemark validate` accepts, the schema does."""
    assert problems(read_document(file).value) == []


def test_source_file_of_the_readme_is_valid(tmp_path: Path, problems: Callable[[object], list[str]]) -> None:
    """Every key that the README shows is known to the schema."""
    (text,) = re.findall(r"```yaml\n(source: .*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "erp.yaml").write_text(text, "utf-8")
    assert problems(read_document(tmp_path / "erp.yaml").value) == []


TABLE = {"key": ["id"], "columns": {"total": "decimal(18, 2)"}}

RIGHT: dict[str, Any] = {
    "source": "erp",
    "format": "canal_json",
    "landing": "landing/*",
    "schedule": None,
    "start_date": "2026-01-01",
    "log_restarts": ["2026-01-01T06:00:00Z"],
    "options": {"row_image": "partial"},
    "tables": {"shop.*": TABLE | {"checks": [{"type": "expect_column_values_to_not_be_null", "column": "total"}]}},
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"formatt": "canal_json"},
        {"format": "canl_json"},
        {"landing": None},
        {"options": {"row_image": "half"}},
        {"options": {"dialect": "lindorm"}},
        {"max_deletes": 2},
        {"schema": "strickt"},
        {"start_date": "yesterday"},
        {"maintenance": {"keep_cuts": 0}},
        {"tables": {"shop.orders": TABLE | {"kay": ["id"]}}},
        {"tables": {"shop.orders": TABLE | {"columns": {"total": "number"}}}},
        {"tables": {"shop.orders": TABLE | {"encodings": {"total": "epoch_weeks"}}}},
        {"tables": {"shop.orders": TABLE | {"checks": [{"type": "expect_it"}]}}},
        {"tables": {"shop.orders": TABLE | {"checks": [{"type": "expect_column_values_to_not_be_null"}]}}},
        {
            "tables": {
                "shop.orders": TABLE
                | {"checks": [{"type": "expect_column_values_to_not_be_null", "column": "a", "colour": "red"}]}
            }
        },
    ],
    ids=json.dumps,
)
def test_wrong_files_are_not_valid(wrong: dict[str, Any], problems: Callable[[object], list[str]]) -> None:
    """What the model refuses for an unknown key, name, type or number, the schema refuses."""
    assert problems(RIGHT) == []
    Source.model_validate(RIGHT)
    assert problems(RIGHT | wrong)
    with pytest.raises(ValueError, match=r"."):
        Source.model_validate(RIGHT | wrong)


def test_every_key_is_explained() -> None:
    """Each key of a source file, of a table, of maintenance and of each format's options has a text."""
    made = schema()
    parts = {"source": made, **{name: made["$defs"][name] for name in ("Table", "Maintenance", "Check")}}
    parts |= {name: made["$defs"][f"{name}.options"] for name in formats.names()}
    bare = [
        f"{part}.{key}"
        for part, definition in parts.items()
        for key, value in definition.get("properties", {}).items()
        if "description" not in value
    ]
    assert bare == []


def test_init_writes_the_line_that_editors_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of a new source file names the schema, which lies beside it."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    done = CliRunner().invoke(app, ["init", "erp", "--format", "canal_json"])
    assert done.exit_code == 0, done.output
    first = (tmp_path / "sources" / "erp.yaml").read_text("utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={FILE}"
    printed = CliRunner().invoke(app, ["schema"]).stdout
    assert json.loads((tmp_path / "sources" / FILE).read_text("utf-8")) == json.loads(printed) == schema()
    assert CliRunner().invoke(app, ["validate"]).exit_code == 0
