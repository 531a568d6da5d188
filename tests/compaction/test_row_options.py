"""``where`` and ``derive``: whatever the delivery, readers see what the expressions make of the model's rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.feeds import published, replayed
from support.histories import COLUMNS, deliver, generated, message, mixed
from support.published import comparable, of_versions
from support.reference import Change, Row, fold, versions
from support.rounds import how_many
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

_RUNS = 3
_TABLES = how_many(usually=6, proving=40)


class Options(NamedTuple):
    """What the source file says of a table, and the same for the model."""

    entry: Mapping[str, Any]
    passes: Callable[[Row], bool] = lambda _: True
    derived: Mapping[str, Callable[[Row], Any]] = {}


def _tag(row: Row) -> str:
    return f"{row.get('name') or '-'}/{row['note']}" if row.get("note") is not None else "none"


OPTIONS = (
    Options({"where": "name = 'a'", "history": True, "feed": True}, lambda row: row.get("name") == "a"),
    Options(
        {
            "where": "name IS NULL OR id % 2 = 1",
            "derive": {"tag": "coalesce(coalesce(name, '-') || '/' || note, 'none')", "region": "'eu'"},
            "history": {"track": ["name"]},
        },
        lambda row: row.get("name") is None or row["id"] % 2 == 1,
        {"tag": _tag, "region": lambda _: "eu"},
    ),
    Options(
        {
            "where": "note < 'n5' and not (name = 'b')",
            "derive": {"big": "amount > 10", "twice": "amount * 2"},
            "feed": True,
            "layout": {"partition": ["truncate(2, note)", "big"]},
        },
        lambda row: bool(row.get("note") is not None and row["note"] < "n5" and row.get("name") not in {None, "b"}),
        {
            "big": lambda row: None if row.get("amount") is None else Decimal(row["amount"]) > 10,
            "twice": lambda row: None if row.get("amount") is None else Decimal(row["amount"]) * 2,
        },
    ),
)


def _model(row: Row, options: Options) -> Row:
    typed = {**row, "amount": row.get("amount") and Decimal(row["amount"])}
    return typed | {name: value(row) for name, value in options.derived.items()}


def _at(change: Change) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=0) if change else datetime.now(UTC)


def _expected(changes: Sequence[Change], options: Options) -> list[Row]:
    rows = fold(changes).get(changes[0].table, {}).values()
    return _comparable((_model(row, options) for row in rows if options.passes(row)), options)


def _expected_versions(changes: Sequence[Change], options: Options) -> list[Row]:
    return []


def _comparable(rows: Any, options: Options) -> list[Row]:
    names = (*COLUMNS, *options.derived)
    return sorted(({name: row.get(name) for name in names} for row in rows), key=repr)


def test_any_delivery_gives_the_rows_that_pass(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Generated histories, any order, cut into runs, sent again."""
    dice = random.Random(7)
    names = [f"t{number}" for number in range(_TABLES)]
    histories = {name: generated(name, 4000 + number) for number, name in enumerate(names)}
    deliveries = {name: mixed(dice, changes, _RUNS) for name, changes in histories.items()}
    tables = {
        f"shop.{name}": {"key": histories[name][0].key, "columns": COLUMNS, **OPTIONS[number % 3].entry}
        for number, name in enumerate(names)
    }
    source = Source.model_validate(
        {"source": "chosen", "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": tables}
    )
    for run in range(_RUNS):
        deliver(tmp_path, f"{run}", [message(change) for runs in deliveries.values() for change in runs[run]])
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    assert_ledger_closes(lake, "chosen")
    for number, name in enumerate(names):
        rows = lake.load(("chosen", name)).scan().to_arrow().to_pylist()
        options = OPTIONS[number % 3]
        assert _comparable(rows, options) == _expected(histories[name], options), name
        if "feed" in options.entry:
            assert replayed(lake, Identifier("chosen", name)) == published(lake, Identifier("chosen", name)), name
