"""A second load by tools that mark no load: known by keys that were loaded before, and held until a person decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import deliver
from support.rounds import PROVING
from support.running import assert_ledger_closes, run_all
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.contradiction_rows import IN_WORDS, LOADED_AGAIN, ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES

pytestmark = pytest.mark.spark

HOUR, START = 3_600_000, 1_780_000_000_000
Rows = Mapping[int, str]


def _canal(table: str, kind: str, at: int, rows: Rows) -> bytes:
    """Rows by Canal, ``at`` hours after the start; INIT: rows of a load, read then."""
    envelope = {"type": kind, "database": "shop", "table": table, "pkNames": ["id"], "isDdl": False}
    data = [{"id": str(key), "v": value} for key, value in rows.items()]
    types = {"id": "int", "v": "varchar(9)"}
    return json.dumps({**envelope, "mysqlType": types, "data": data, "es": START + at * HOUR}).encode()


def _datahub(table: str, kind: str, at: int, rows: Rows) -> bytes:
    """A row by DataHub; INIT: of a load, which carries no time."""
    ((key, value),) = rows.items()
    is_load = kind == "INIT"
    source_member = {"dbType": "MySQL", "dbName": "shop", "tableName": table}
    columns = [{"name": "id", "type": "LONG"}, {"name": "v", "type": "STRING"}]
    time = -1 if is_load else START + at * HOUR
    payload = {
        "op": "INSERT" if is_load else "UPDATE_AFTER", "sequenceId": "-1" if is_load else str(at), "before": None,
        "after": {"dataColumn": {"id": key, "v": value}}, "timestamp": {"eventTime": time, "systemTime": time},
    }  # fmt: skip
    schema = {"dataColumn": columns, "primaryKey": ["id"], "source": source_member}
    return json.dumps({"schema": schema, "payload": payload, "version": "0.0.1"}).encode()


Write = Callable[[str, str, int, Rows], bytes]
_LOAD = {1: "a", 2: "b", 3: "c"}
CASES: dict[str, tuple[list[list[tuple[str, int, Rows]]], int]] = {
    "changes_and_a_second_load": (
        [[("INIT", 0, _LOAD)], [("UPDATE", 5, {1: "x"}), ("INIT", 9, {1: "x", 2: "b", 4: "d"})]],
        2,
    ),
    "all_in_the_first_run": (
        [[("INIT", 0, _LOAD), ("UPDATE", 5, {1: "x"}), ("INIT", 9, {1: "x", 2: "b"})]],
        2,
    ),
    "the_second_load_comes_first": ([[("INIT", 9, {2: "y"})], [("UPDATE", 5, {1: "x"}), ("INIT", 0, _LOAD)]], 1),
    "no_change_between": ([[("INIT", 0, _LOAD)], [("INIT", 9, {3: "z"})]], 1),
    "a_load_in_two_runs_with_changes": (
        [
            [("INIT", 0, {1: "a", 2: "b"}), ("UPDATE", 1, {1: "x"})],
            [("UPDATE", 1, {4: "y"}), ("INIT", 1, {3: "c", 4: "d"})],
        ],
        0,
    ),
    "sent_again": ([[("INIT", 0, _LOAD), ("INIT", 0, _LOAD)], [("INIT", 0, _LOAD), ("UPDATE", 5, {1: "x"})]], 0),
}  # fmt: skip
"""By run, what is delivered: the kind of message, its hour, its rows; and how many keys were loaded again."""
UNTIMED: dict[str, tuple[list[list[tuple[str, int, Rows]]], int]] = {
    "other_contents": ([[("INIT", 0, {1: "a"}), ("INIT", 0, {2: "b"})], [("INIT", 0, {2: "y"})]], 1),
    "other_contents_in_one_run": ([[("INIT", 0, {1: "a"}), ("UPDATE", 5, {1: "x"}), ("INIT", 0, {1: "y"})]], 1),
    "equal_contents": ([[("INIT", 0, {1: "a"})], [("INIT", 0, {1: "a"}), ("UPDATE", 5, {1: "x"})]], 0),
}


def _delivered(folder: Path, cases: Mapping[str, Any], write: Write, run: int) -> None:
    events = [(name, each) for name, (runs, _) in cases.items() if run < len(runs) for each in runs[run]]
    deliver(folder, f"{run}", [write(name, *each) for name, each in events])


def _found(lake: Lake, source: str) -> dict[str, int]:
    """How many keys of each table were loaded again, in all cuts."""
    rows = [row for row in Ledger(lake, source).contradictions() if row.kind == LOADED_AGAIN]
    assert all(isinstance(row, ContradictionRow) for row in rows)
    return {row.object.rpartition(".")[2]: row.events for row in rows}


@pytest.mark.more
@pytest.mark.parametrize(
    ("format_name", "cases", "write"),
    [
        pytest.param("canal_json", CASES, _canal, marks=pytest.mark.prove, id="canal_json"),
        pytest.param("datahub_blob", UNTIMED, _datahub, id="datahub_blob"),
    ],
)
def test_keys_that_were_loaded_before_are_told(
    format_name: str, cases: Mapping[str, Any], write: Write, spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Whether in one run or in two, before or behind the first load; rows that were sent again are none."""
    tables = {f"shop.{name}": {"deletes": "soft"} for name in list(cases)[:2] if PROVING}
    source = Source.model_validate({
        "source": f"again_{format_name}", "format": format_name, "landing": str(tmp_path / "*"), "tables": tables,
        "invariants": {"loaded_again": "warn"},
    })  # fmt: skip
    for run in range(2):
        _delivered(tmp_path, cases, write, run)
        for stage in STAGES[:-1]:
            run_stage(stage, source)
        cut = Ledger(lake, source.source).last_cut()
        assert cut is not None
        run_stage(STAGES[-1], source, None, None, approve=cut.cut)
    assert _found(lake, source.source) == {name: count for name, (_, count) in cases.items() if count}
    assert_ledger_closes(lake, source.source)


def _postgresql(kind: str, at: int, key: int, value: str) -> bytes:
    """A row by Debezium; INIT: of an incremental load, which carries no place in PostgreSQL's log."""
    is_load = kind == "INIT"
    place = {"snapshot": "incremental", "lsn": None} if is_load else {"snapshot": "false", "lsn": 1000 + at}
    source_member = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders", **place}
    row = {"before": None, "after": {"id": key, "v": value}, "op": "r" if is_load else "c"}
    return json.dumps({**row, "source": {**source_member, "ts_ms": START + at * HOUR}}).encode()


@pytest.mark.more
def test_an_incremental_load_behind_published_changes_adds_rows_where_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """Otherwise a person decides: a load that is to add rows looks like one that is to mend them."""
    tables = {"shop.public.orders": {"key": ["id"]}}
    shop = source("debezium_json", tables=tables)
    landing = Path(shop.landing).parent
    deliver(landing, "a", [_postgresql("c", 1, 1, "a")])
    assert run_all(shop)["check"].problems == ()
    deliver(landing, "b", [_postgresql("INIT", 5, 1, "other"), _postgresql("INIT", 5, 2, "b")])
    *_, checked = [run_stage(stage, shop) for stage in STAGES[:-1]]
    (held,) = [each for each in checked.problems if "2 rows of it were loaded after" in each]
    assert "`invariants: {loaded_again: warn}`" in held
    assert _rows(lake, shop) == {1: "a"}

    adding = Source.model_validate({**shop.model_dump(by_alias=True), "invariants": {"loaded_again": "warn"}})
    if PROVING:
        deliver(landing, "c", [_postgresql("INIT", 6, 3, "c")])
    # In ``make test`` the cut that is held is judged again.
    reports = {stage: run_stage(stage, adding) for stage in (STAGES if PROVING else STAGES[-2:])}
    assert reports["check"].problems == ()
    loaded, rows = (3, {1: "a", 2: "b", 3: "c"}) if PROVING else (2, {1: "a", 2: "b"})
    assert [each for each in reports["check"].remarks if f"{loaded} rows of it were loaded after" in each]
    assert _rows(lake, shop) == rows
    assert_ledger_closes(lake, shop.source)


@pytest.mark.more
def test_a_load_behind_changes_in_one_run_is_held_until_the_source_file_decides(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """Nobody reads the rows of two loads mixed; then, in ``make prove``, the second one replaces the table."""
    shop = source("canal_json", max_deletes=1)
    landing = Path(shop.landing).parent
    deliver(landing, "a", [_canal("orders", "INIT", 0, _LOAD)])
    assert run_all(shop)["check"].problems == ()
    deliver(landing, "b", [_canal("orders", "UPDATE", 5, {1: "x"}), _canal("orders", "INIT", 9, {1: "z", 2: "b"})])
    *_, checked = [run_stage(stage, shop) for stage in STAGES[:-1]]
    held = " ".join(checked.problems)
    assert f"shop.orders: 2 {IN_WORDS[LOADED_AGAIN]}" in held
    assert "`tables: {shop.orders: {reloads: [MOMENT]}}`" in held
    with pytest.raises(ExpectationError, match="waits for approval"):
        run_stage(STAGES[-1], shop)
    assert _rows(lake, shop) == _LOAD
    assert_ledger_closes(lake, shop.source)
    if not PROVING:  # ``test_new_logs.py`` tries what is told here
        return
    tables = {"shop.orders": {"reloads": ["2026-05-29T04:00:00Z"]}}
    amended = Source.model_validate({**shop.model_dump(by_alias=True), "tables": tables})
    for stage in STAGES[1:]:
        assert (
            run_stage(stage, amended, None, None, **({"reprocess": True} if stage == "normalize" else {})).problems
            == ()
        )
    assert _rows(lake, amended) == {1: "z", 2: "b"}
    assert_ledger_closes(lake, amended.source)


def _rows(lake: Lake, source: Source) -> dict[int, str]:
    rows = lake.load((source.source, "orders")).scan().to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in rows}
