"""``tidemark dbt``: the published tables as sources of dbt, in the shape that dbt documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, PositiveInt
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, IntegerType, LongType, NestedField, StringType, TimestamptzType
from typer.testing import CliRunner

from support.ledgers import Written, moment
from tidemark.cli.app import app
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed, history
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.queries.dbt_sources import as_yaml, sources_of
from tidemark.sources.model import Source

NAME = "told_to_dbt"


class _Strict(BaseModel):
    """A part of dbt's file of sources (docs.getdbt.com/reference/source-properties): unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class _Age(_Strict):
    count: PositiveInt
    period: Literal["minute", "hour", "day"]


class _Freshness(_Strict):
    warn_after: _Age | None = None
    error_after: _Age | None = None
    filter: str | None = None


class _Config(_Strict):
    loaded_at_field: str | None = None
    freshness: _Freshness | None = None


class _Severity(_Strict):
    severity: Literal["warn", "error"]


class _Values(_Strict):
    values: list[Any]
    quote: bool | None = None


class _Plain(_Strict):
    config: _Severity


class _Accepted(_Strict):
    arguments: _Values
    config: _Severity | None = None


class _Tests(_Strict):
    not_null: _Plain | None = None
    unique: _Plain | None = None
    accepted_values: _Accepted | None = None


class _Column(_Strict):
    name: str
    description: str | None = None
    data_type: str | None = None
    data_tests: list[Literal["not_null", "unique"] | _Tests] = []


class _Table(_Strict):
    name: str
    description: str | None = None
    config: _Config | None = None
    columns: list[_Column] = []


class _Source(_Strict):
    name: str
    description: str | None = None
    loader: str | None = None
    database: str | None = None
    schema_: str | None = None
    config: _Config | None = None
    tables: list[_Table]

    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.rstrip("_"))


class _File(_Strict):
    version: Literal[2]
    sources: list[_Source]


CHECKS = [
    {"type": "expect_column_values_to_be_in_set", "column": "state", "value_set": ["yes", "no", "1"]},
    {"type": "expect_column_values_to_not_be_null", "column": "total", "severity": "warn"},
    {"type": "expect_column_values_to_not_be_null", "column": "note", "mostly": 0.9},
    {"type": "expect_column_values_to_be_between", "column": "total", "min_value": 0},
]
COLUMNS = [
    ("id", LongType()), ("state", StringType()), ("total", DecimalType(18, 2)), ("note", StringType()),
    ("_cdc_position", StringType()), ("_cdc_committed_at", TimestamptzType()),
]  # fmt: skip


def _source(**fields: Any) -> Source:
    tables = {"orders": {"key": ["id"], "checks": CHECKS}, "lines": {"key": ["id", "state"]}}
    given = {"source": NAME, "format": "canal_json", "landing": "landing/*", "tables": tables, "schedule": "@daily"}
    return Source.model_validate({**given, **fields})


def _table(lake: Lake, name: Identifier, key: list[str], *more: tuple[str, Any]) -> None:
    fields = [NestedField(number, n, kind) for number, (n, kind) in enumerate([*COLUMNS, *more], start=1)]
    lake.ensure(name, Schema(*fields), {KEY_PROPERTY: json.dumps(key)})


@pytest.fixture(scope="module")
def sources_file(lake: Lake) -> _File:
    """The sources file for two tables, one of them with a history and a feed, read by another reader of YAML."""
    ledger = Written(lake, NAME)
    ledger.cut(1, {"orders": {"committed_at": None}, "lines": {"committed_at": moment(1)}})
    ledger.write()
    orders = Identifier(NAME, "orders")
    _table(lake, orders, ["id"])
    _table(lake, history(orders), ["id"], ("valid_from", TimestamptzType()))
    _table(lake, feed(orders), [], ("_change_type", StringType()), ("_cut", IntegerType()))
    _table(lake, Identifier(NAME, "lines"), ["id", "state"])
    return _File.model_validate(yaml.safe_load(as_yaml(sources_of(lake, _source()))))


def _tests(sources_file: _File, table: str) -> dict[str, Any]:
    found = next(each for each in sources_file.sources[0].tables if each.name == table)
    return {
        column.name: [
            each if isinstance(each, str) else each.model_dump(exclude_none=True) for each in column.data_tests
        ]
        for column in found.columns
        if column.data_tests
    }


def test_every_published_table_is_there_with_its_columns_and_types(sources_file: _File) -> None:
    """Histories and feeds too, in the namespace as schema."""
    (source,) = sources_file.sources
    assert (source.name, source.schema_) == (NAME, NAME)
    assert [table.name for table in source.tables] == ["lines", "orders", "orders__history", "orders__feed"]
    kinds = {column.name: column.data_type for column in source.tables[1].columns}
    assert kinds == {name: str(kind) for name, kind in COLUMNS}


def test_a_key_is_tested_and_checks_that_dbt_has_too(sources_file: _File) -> None:
    """A check that says more than dbt's test can is left out; a warning stays one; values keep their types."""
    values = {"accepted_values": {"arguments": {"values": ["yes", "no", "1"]}}}
    assert _tests(sources_file, "orders") == {
        "id": ["unique", "not_null"],
        "state": [values],
        "total": [{"not_null": {"config": {"severity": "warn"}}}],
        "_cdc_position": ["not_null"],
    }
    assert _tests(sources_file, "lines") == {"id": ["not_null"], "state": ["not_null"], "_cdc_position": ["not_null"]}


def test_rows_of_histories_and_feeds_repeat_keys(sources_file: _File) -> None:
    """So only their own columns are tested."""
    assert _tests(sources_file, "orders__history") == {"_cdc_position": ["not_null"], "valid_from": ["not_null"]}
    feed_tests = {"_cdc_position": ["not_null"], "_change_type": ["not_null"], "_cut": ["not_null"]}
    assert _tests(sources_file, "orders__feed") == feed_tests


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("@daily", {"count": 48, "period": "hour"}),
        ("0 6 * * 1-5", {"count": 144, "period": "hour"}),
        ("*/15 * * * *", {"count": 30, "period": "minute"}),
        ("@quarterly", {"count": 4416, "period": "hour"}),
        (None, None),
    ],
)
def test_freshness_follows_the_schedule(
    schedule: str | None, wanted: dict[str, Any] | None, sources_file: _File, lake: Lake
) -> None:
    """Stale after two of its longest pauses, weekends among them; nothing is asked without a schedule."""
    found = sources_of(lake, _source(schedule=schedule))["sources"][0]
    if wanted is None:
        assert "config" not in found
    else:
        freshness = {"warn_after": wanted}
        assert found["config"] == {"loaded_at_field": "_cdc_committed_at", "freshness": freshness}


def test_names_and_comments_are_no_jinja() -> None:
    """A secret of the environment would be shown, or dbt would end at a comment of the source database."""
    texts = ["{{ env_var('SECRET') }}", "a {% if %} {# b #} {x} {{{", {"values": ["{{ 1 }}", 1]}]
    written = as_yaml({"name": texts[0], "description": texts[1], "data_tests": [texts[2]]})
    assert yaml.safe_load(written) == {
        "name": "{{ '{{' }} env_var('SECRET') }}",
        "description": "a {{ '{%' }} if %} {{ '{#' }} b #} {x} {{ '{{' }}{",
        "data_tests": [{"values": ["{{ '{{' }} 1 }}", 1]}],
    }


def test_a_table_without_times_is_not_asked_for_freshness(lake: Lake, sources_file: _File) -> None:
    """Dbt would fail at it: the newest of no times is null."""
    tables = {table["name"]: table for table in sources_of(lake, _source())["sources"][0]["tables"]}
    assert tables["orders"]["config"] == {"freshness": None}


def test_limits_of_a_table_come_before_the_schedule(lake: Lake, sources_file: _File) -> None:
    """In minutes, as dbt counts in whole numbers; not for a table without times."""
    limited = {"key": ["id"], "freshness": {"warn_after_hours": 1.5, "block_after_hours": 24}}
    source = _source(tables={"*": limited}, schedule=None)
    tables = {table["name"]: table.get("config") for table in sources_of(lake, source)["sources"][0]["tables"]}
    limits = {"warn_after": {"count": 90, "period": "minute"}, "error_after": {"count": 1440, "period": "minute"}}
    assert tables["lines"] == {"loaded_at_field": "_cdc_committed_at", "freshness": limits}
    assert tables["orders"] is None


def test_the_command_prints_the_file(sources_file: _File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard output; a source that has published nothing is reported, with status 2."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    declared = _source().model_dump(mode="json", exclude_defaults=True)
    (tmp_path / "told.yaml").write_text(json.dumps(declared))
    (tmp_path / "other.yaml").write_text(json.dumps({**declared, "source": "never_told"}))
    answer = CliRunner().invoke(app, ["dbt", NAME])
    assert answer.exit_code == 0, answer.output
    assert _File.model_validate(yaml.safe_load(answer.stdout)) == sources_file
    assert CliRunner().invoke(app, ["dbt", "never_told"]).exit_code == 2


def test_nothing_published_is_an_error(lake: Lake) -> None:
    """It names the command that publishes."""
    with pytest.raises(ConfigurationError, match="tidemark run never_told"):
        sources_of(lake, _source(source="never_told"))
