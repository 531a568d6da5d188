"""A log that begins anew, or a second load by a tool that marks none: held, and right once the source file says so."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, deliver, generated, message, mixed
from support.reference import Change, fold
from support.rounds import PROVING
from support.running import assert_ledger_closes, run_all
from tidemark.cli.status_text import print_status
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.row_life_text import as_text
from tidemark.queries.status import status_of
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport

pytestmark = pytest.mark.spark

HOUR = 3_600_000
START = 1_780_000_000_000
"""Epoch ms of the first event."""


def _changed(op: str, at: int, file: int, pos: int, **row: Any) -> bytes:
    """One change by Debezium for MySQL, ``at`` hours after the start."""
    origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": "orders", "ts_ms": START + at * HOUR}
    image = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    place = {"file": f"log.{file:06}", "pos": pos, "row": 0}
    return json.dumps({"op": op, **image, "source": {**origin, **place}}).encode()


def _flat(kind: str, at: int, *rows: Mapping[str, str]) -> bytes:
    """Rows by Canal, ``at`` hours after the start."""
    envelope = {"type": kind, "database": "shop", "table": "orders", "pkNames": ["id"], "isDdl": False}
    types = {"id": "int", "status": "varchar(9)"}
    return json.dumps({**envelope, "mysqlType": types, "data": rows, "es": START + at * HOUR}).encode()


def _rows(lake: Lake, source: Source) -> dict[int, str]:
    rows = lake.load((source.source, "orders")).scan().to_arrow().to_pylist()
    return {row["id"]: row["status"] for row in rows}


def _with(source: Source, **fields: Any) -> Source:
    return Source.model_validate({**source.model_dump(by_alias=True), **fields})


def _again(source: Source) -> dict[str, StageReport]:
    return {stage: run_stage(stage, source, None, None, **_options(stage)) for stage in STAGES[1:]}


def _options(stage: str) -> dict[str, bool]:
    return {"reprocess": True} if stage == "normalize" else {}


def _problem(reports: Mapping[str, StageReport]) -> str:
    return " ".join(reports["check"].problems)


def _held(source: Source) -> str:
    """Run all stages; publish waits for a person. Return why."""
    reports = {stage: run_stage(stage, source, None, None) for stage in STAGES[:-1]}
    with pytest.raises(ExpectationError, match="waits for approval"):
        run_stage(STAGES[-1], source, None, None)
    return _problem(reports)


def test_a_log_that_begins_anew_is_held_until_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    """Readers see the old rows until then, and afterwards what the new server holds; also with its loads."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"]}}, max_deletes=1)
    landing = Path(shop.landing).parent
    deliver(landing, "a", [_changed("c", at, 120, 1000 + at, id=at, status="new") for at in (1, 2, 3)])
    assert _problem(run_all(shop)) == ""
    promoted = [_changed("u", 30, 4, 500, id=1, status="paid"), _changed("d", 31, 4, 600, id=2, status="new")]
    deliver(landing, "b", [*promoted, _changed("c", 32, 121, 700, id=5, status="new")])  # above the old log by now
    held = _held(shop)
    assert "shop.orders: its changes from 2026-05-30T02:26:40Z" in held
    assert "log_restarts: [2026-05-30T02:26:40Z]" in held
    assert re.search(r"\. The first is position \S+, message 1 of \S+/b\.", held)
    assert _rows(lake, shop) == {1: "new", 2: "new", 3: "new"}
    amended = _with(shop, log_restarts=["2026-05-29T12:00:00Z"])
    assert _problem(_again(amended)) == ""
    assert _rows(lake, amended) == {1: "paid", 3: "new", 5: "new"}
    late = _changed("u", 4, 120, 2000, id=1, status="late")
    deliver(landing, "c", [late, _changed("u", 33, 121, 800, id=3, status="x")])
    assert _problem(run_all(amended)) == ""
    assert _rows(lake, amended) == {1: "paid", 3: "x", 5: "new"}
    assert_ledger_closes(lake, amended.source)
    log = {"number": 2, "since": "2026-05-29T12:00:00+00:00", "opened_by": "log_restarts"}
    status = status_of(lake, amended.source)
    assert (status["log"], status["tables"][f"{amended.source}.orders"]["log"]) == (log, log)
    print_status([status])
    assert (
        f"{amended.source}: in log 2 of the source since 2026-05-29T12:00:00Z (`log_restarts`)\n"
        in capsys.readouterr().out
    )
    life = list(as_text(explain(lake, f"{amended.source}.orders", ["id=1"])))
    assert [line.endswith(", in log 2 of the source") for line in life if line.startswith("  position")] == [
        False,
        False,
        True,
    ]


def test_a_new_log_of_a_stopped_table_is_held_when_the_table_goes_on(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """Nothing of it is in the cut that stops it, so that cut is published without a question about it.

    If it is no new log but late events, a person approves them as they are: below what is published.
    """
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"]}})
    landing = Path(shop.landing).parent
    deliver(landing, "a", [_changed("c", at, 120, 1000 + at, id=at, status="new") for at in (1, 2, 3)])
    run_all(shop)
    late = [_changed("u", 30, 4, 500, id=1, status="paid"), _changed("c", 30, 4, 600, id=5, status="late")]
    deliver(landing, "b", late)
    stopping = run_all(_with(shop, tables={"shop.*": {"key": ["status"]}}))
    assert stopping["compact"].problems
    assert (_problem(stopping), stopping["publish"].summary["cut"]) == ("", 2)
    assert "log_restarts: [2026-05-30T02:26:40Z]" in _held(shop)
    assert _rows(lake, shop) == {1: "new", 2: "new", 3: "new"}
    assert_ledger_closes(lake, shop.source)
    cut = Ledger(lake, shop.source).last_cut()
    assert cut is not None
    assert cut.state == CutState.AWAITING_APPROVAL
    run_stage("publish", shop, None, None, approve=cut.cut)
    assert _rows(lake, shop) == {1: "new", 2: "new", 3: "new", 5: "late"}


@pytest.mark.prove
def test_late_events_that_look_like_a_new_log_are_approved(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """As they are: below what is published."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"]}})
    landing = Path(shop.landing).parent
    deliver(landing, "a", [_changed("c", 1, 120, 1000, id=1, status="new")])
    run_all(shop)
    deliver(landing, "b", [_changed("u", 2, 119, 1, id=1, status="late"), _changed("c", 2, 119, 2, id=2, status="new")])
    _held(shop)
    cut = Ledger(lake, shop.source).last_cut()
    assert cut is not None
    assert cut.state == CutState.AWAITING_APPROVAL
    run_stage("publish", shop, None, None, approve=cut.cut)
    assert _rows(lake, shop) == {1: "new", 2: "new"}


@pytest.mark.prove
def test_a_second_load_without_marks_is_held_until_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """Then it replaces the table, and changes go on from it."""
    erp = source("canal_json", max_deletes=1)
    landing = Path(erp.landing).parent
    first = [{"id": str(number), "status": "new"} for number in (1, 2, 3)]
    deliver(landing, "a", [_flat("INIT", 0, *first), _flat("UPDATE", 1, {"id": "1", "status": "paid"})])
    assert _problem(run_all(erp)) == ""
    then = [{"id": "1", "status": "refunded"}, {"id": "2", "status": "paid"}, {"id": "4", "status": "new"}]
    deliver(landing, "b", [_flat("INIT", 96, *then), _flat("UPDATE", 97, {"id": "4", "status": "paid"})])
    assert "shop.orders: 3 rows of it were loaded after" in _held(erp)
    assert _rows(lake, erp) == {1: "paid", 2: "new", 3: "new"}
    amended = _with(erp, tables={"shop.orders": {"reloads": ["2026-06-01T00:00:00Z"]}})
    assert _problem(_again(amended)) == ""
    assert _rows(lake, amended) == {1: "refunded", 2: "paid", 4: "paid"}
    assert_ledger_closes(lake, amended.source)
    status = status_of(lake, amended.source)
    log = {"number": 2, "since": "2026-06-01T00:00:00+00:00", "opened_by": "reloads"}
    assert (status["log"], status["tables"][f"{amended.source}.orders"]["log"]) == (None, log)


@pytest.mark.more
def test_a_reprocess_of_some_intervals_is_held_until_the_later_ones_are_decoded_again(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """What came after the load would be gone, whether it was published already or not."""
    crm = source("canal_json", max_deletes=1, landing=f"{tmp_path}/%Y-%m-%d/*.json")
    deliver(
        tmp_path / "2026-05-29", "a", [_flat("INIT", 4, {"id": "1", "status": "new"}, {"id": "2", "status": "new"})]
    )
    deliver(tmp_path / "2026-05-29", "b", [_flat("UPDATE", 5, {"id": "2", "status": "paid"})])
    assert _problem(run_all(crm)) == ""
    deliver(tmp_path / "2026-06-02", "a", [_flat("INIT", 100, {"id": "1", "status": "open"})])
    if PROVING:
        assert "shop.orders: 1 rows of it were loaded after" in _held(crm)
    else:  # each day in a batch of its own
        assert [run_stage(stage, crm).problems for stage in STAGES[:2]] == [(), ()]
    deliver(tmp_path / "2026-06-03", "a", [_flat("INSERT", 124, {"id": "7", "status": "new"})])
    assert "shop.orders: 1 rows of it were loaded after" in _held(crm)

    amended = _with(crm, tables={"shop.orders": {"reloads": ["2026-06-02T00:00:00Z"]}})
    day, after = "2026-06-02T00:00:00+00:00", "2026-06-03T00:00:00+00:00"
    bounds = {"start": datetime.fromisoformat(day), "end": datetime.fromisoformat(after)}
    run_stage("normalize", amended, **bounds, reprocess=True)
    held = _held(amended)
    assert "events of shop.orders from 2026-06-03T00:26:40Z to 2026-06-03T00:26:40Z were decoded before" in held
    assert f"`tidemark run {crm.source} --start 2026-06-03 --reprocess`" in held
    assert _rows(lake, amended) == {1: "new", 2: "paid"}
    run_stage("normalize", amended, bounds["end"], None, reprocess=True)
    assert _problem(run_all(amended)) == ""
    assert _rows(lake, amended) == {1: "open", 7: "new"}
    assert_ledger_closes(lake, amended.source)
    status = status_of(lake, amended.source)
    log = {"number": 2, "since": "2026-06-02T00:00:00+00:00", "opened_by": "reloads"}
    assert (status["log"], status["tables"][f"{amended.source}.orders"]["log"]) == (None, log)


@pytest.mark.prove
def test_both_logs_in_one_run_are_held_until_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """The server failed over between two events of a dump, the first that the source delivers."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"]}})
    old = [_changed("c", at, 120, 1000 + at, id=at, status="new") for at in (1, 2, 3)]
    promoted = [_changed("u", 30, 4, 500, id=1, status="paid"), _changed("d", 31, 4, 600, id=2, status="new")]
    deliver(Path(shop.landing).parent, "a", [*old, *promoted])
    assert "log_restarts: [2026-05-30T02:26:40Z]" in _held(shop)
    amended = _with(shop, log_restarts=["2026-05-30T02:26:40Z"])
    assert _problem(_again(amended)) == ""
    assert _rows(lake, amended) == {1: "paid", 3: "new"}
    assert_ledger_closes(lake, amended.source)


def _by_postgresql(op: str, at: int, lsn: int, last: int, **row: Any) -> bytes:
    """One change by Debezium for PostgreSQL, ``at`` hours after the start; ``last`` is the end of the last commit."""
    origin = {"connector": "postgresql", "name": "s", "snapshot": "false", "db": "shop", "schema": "public"}
    place = {"table": "orders", "lsn": lsn, "sequence": f'["{last}","{lsn}"]', "ts_ms": START + at * HOUR}
    image = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    return json.dumps({"op": op, **image, "source": {**origin, **place}}).encode()


@pytest.mark.more
def test_a_promoted_replica_of_postgresql_within_the_old_log_is_held_until_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had not received the last transactions, so its log goes on below them; the old row of 3 would have stayed."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"]}})
    landing = Path(shop.landing).parent
    old = [_by_postgresql("c", at, 400 + 100 * at, 370 + 100 * at, id=at, status="new") for at in (1, 2, 3)]
    deliver(landing, "a", old)
    assert _problem(run_all(shop)) == ""
    promoted = [
        _by_postgresql("u", 30, 580, 730, id=1, status="paid"),  # the connector remembers the commit of the old log
        _by_postgresql("c", 31, 660, 610, id=3, status="again"),
        _by_postgresql("c", 32, 900, 690, id=5, status="new"),
    ]
    deliver(landing, "b", promoted)
    held = _held(shop)
    assert "the last commit before one of them is at 610 of the log (`source.sequence`), below 700" in held
    assert f"log_restarts: [2026-05-30T02:26:40Z]` into the source file and run `tidemark run {shop.source}" in held
    assert re.search(r"\. The first is position \S+, message 1 of \S+/b\.", held)
    assert _rows(lake, shop) == {1: "new", 2: "new", 3: "new"}
    amended = _with(shop, log_restarts=["2026-05-30T02:26:40Z"])
    assert _problem(_again(amended)) == ""
    assert _rows(lake, amended) == {1: "paid", 2: "new", 3: "again", 5: "new"}
    assert_ledger_closes(lake, amended.source)
    if not PROVING:
        return
    deliver(landing, "c", [_by_postgresql("u", 33, 960, 940, id=2, status="paid")])
    assert _problem(run_all(amended)) == ""
    assert _rows(lake, amended) == {1: "paid", 2: "paid", 3: "again", 5: "new"}
    assert_ledger_closes(lake, amended.source)


def _by_datahub(sequence: int, recorded: int, status: str, *, id: int) -> bytes:  # noqa: A002  the column
    """A row by DataHub in a record of Kafka, hours after the start; a row of a load (-1) carries no time itself."""
    source_member = {"dbType": "MySQL", "dbName": "shop", "tableName": "orders"}
    columns = [{"name": "id", "type": "LONG"}, {"name": "status", "type": "STRING"}]
    at = -1 if sequence < 0 else START + recorded * HOUR
    payload = {"op": "INSERT" if sequence < 0 else "UPDATE_AFTER", "sequenceId": str(sequence)}
    images = {"before": None, "after": {"dataColumn": {"id": id, "status": status}}}
    payload |= {**images, "timestamp": {"eventTime": at, "systemTime": at}}
    schema = {"dataColumn": columns, "primaryKey": ["id"], "source": source_member}
    value = json.dumps({"schema": schema, "payload": payload, "version": "0.0.1"})
    place = {"topic": "t", "partition": 0, "offset": 100 * recorded + id, "timestamp": START + recorded * HOUR}
    return json.dumps({**place, "key": None, "value": value}).encode()


@pytest.mark.prove
def test_a_second_load_that_tells_no_time_is_held_until_the_source_file_says_so(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """The times of its Kafka records say when the load was."""
    shop = source("datahub_blob", max_deletes=1)
    landing = Path(shop.landing).parent
    first = [_by_datahub(-1, 0, "new", id=number) for number in (1, 2, 3)]
    deliver(landing, "a", [*first, _by_datahub(7, 1, "paid", id=1)])
    assert _problem(run_all(shop)) == ""
    then = {1: "refunded", 2: "paid", 4: "new"}
    deliver(landing, "b", [_by_datahub(-1, 96, status, id=number) for number, status in then.items()])
    assert "shop.orders: 3 rows of it were loaded since" in _held(shop)
    amended = _with(shop, tables={"shop.orders": {"reloads": ["2026-06-01T00:00:00Z"]}})
    assert _problem(_again(amended)) == ""
    assert _rows(lake, amended) == then
    assert_ledger_closes(lake, amended.source)


_RUNS, _HISTORIES = 3, 24


def _restarted(change: Change) -> bytes:
    """A change of a generated history; from the middle on in a new log, whose places lie below those of the old one."""
    event = json.loads(message(change))
    if int(change.position[2]) > _MIDDLE:
        event["source"] |= {"file": "mysql-bin.000001", "ts_ms": START + HOUR}
    return json.dumps(event).encode()


def _restarted_in_postgresql(change: Change) -> bytes:
    """The same by PostgreSQL: the new log begins within the old one, and each change is a transaction."""
    event = json.loads(message(change))
    place, at = int(change.position[2]), event["source"]["ts_ms"]
    if place > _MIDDLE:
        place, at = place - 100, START + HOUR
    sequence = f'["{1000 + place - 4}","{1000 + place}"]'
    log = {"connector": "postgresql", "name": "s", "lsn": 1000 + place, "sequence": sequence, "ts_ms": at}
    origin = {name: event["source"][name] for name in ("snapshot", "db", "table")}
    return json.dumps({**event, "source": {**origin, **log}}).encode()


_MIDDLE = 120
"""Place after which generated histories are in a new log; their places are 10 to 240."""


@pytest.mark.prove
@pytest.mark.parametrize("written", [_restarted, _restarted_in_postgresql], ids=["mysql", "postgresql"])
def test_any_delivery_of_two_logs_gives_the_model(
    written: Callable[[Change], bytes], spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Events of the old and the new log in any order, cut into runs, sent again: as if it were one log."""
    dice = random.Random(20261125)  # noqa: S311  a test's own mixing
    made = {f"t{number}": generated(f"t{number}", 3000 + number) for number in range(_HISTORIES)}
    tables = {f"shop.{name}": {"key": changes[0].key, "columns": COLUMNS} for name, changes in made.items()}
    fields = {"source": "two_logs", "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate({**fields, "max_deletes": 1, "log_restarts": ["2026-05-28"]})
    deliveries = [mixed(dice, changes, _RUNS) for changes in made.values()]
    for run in range(_RUNS):
        deliver(tmp_path, f"{run}", [written(change) for runs in deliveries for change in runs[run]])
        assert _problem(run_all(source)) == ""
    assert_ledger_closes(lake, "two_logs")
    for name, changes in made.items():
        rows = lake.load(("two_logs", name)).scan().to_arrow().to_pylist()
        expected = fold(changes).get(name, {}).values()
        typed = [{**row, "amount": row.get("amount") and Decimal(row["amount"])} for row in expected]
        assert _shown(rows) == _shown(typed), [written(change) for change in changes]


def _shown(rows: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    return sorted(([row.get(name) for name in COLUMNS] for row in rows), key=repr)
