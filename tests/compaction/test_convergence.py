"""Compaction converges: whatever the order, the split and the repeats of a delivery, the table is the model's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.feeds import published, replayed
from support.histories import (
    COLUMNS,
    Table,
    beside,
    canal,
    deliver,
    generated,
    in_one_event,
    mixed,
    side_by_side,
    timed,
    with_position,
)
from support.options import (
    DERIVED,
    KEY_VARIABLE,
    SECRET_VARIABLE,
    as_at_source,
    is_fed,
    options_of,
    promised,
    shown,
    the_secret,
)
from support.published import without_delivery
from support.reference import Change, Row, fold
from support.rounds import ROUNDS, crash_windows, how_many, in_two_runs
from support.running import assert_ledger_closes, die_at, run_all
from support.seats import seats
from support.shrinking import Delivery, changes_of, shrunk
from support.table_cases import CASES, Case
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import TableState
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.schemas import COMMITTED_AT, POSITION

pytestmark = pytest.mark.spark


_RUNS = 3


def _at(change: Change) -> datetime:
    """When a change was committed: never before one that stands before it in the log, often with it."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=int(change.position[2]) // 3)


def _message(change: Change) -> bytes:
    return timed(change, _at(change))


def _columns(case: Case) -> str:
    """Which columns the images of a case have. Columns of one case show in the rows of all cases of its table."""
    return "wide" if any("amount" in (change.after or {}) for run in case.runs for change in run) else "narrow"


_PROVED = {
    "truncate_alone_in_its_run",
    "late_truncate_under_a_partial_row",
    "column_added",
    "column_first_seen_in_a_late_event",
}
"""Cases of ``make prove``, with tables of their own. ``test_versions.py`` has a late TRUNCATE and a new column."""
_LAST_TWO = {"partial_over_a_row_of_an_earlier_run", "key_changed_over_runs"}
"""Cases of which ``make test`` has the last two runs as one: they are about what the second run finds."""
TRIED = how_many(usually=[case for case in CASES if case.name not in _PROVED], proving=CASES)
SEATS = seats({case.name: case.runs for case in TRIED}, {case.name: _columns(case) for case in TRIED}.__getitem__)


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases in tables of one source, landed and published in two runs or three; the runs' reports."""
    landing = tmp_path_factory.mktemp("cases")
    source = _source("cases", landing)
    reports = []
    seated = [in_two_runs(SEATS[case.name].seated(case.runs), last=case.name in _LAST_TWO) for case in TRIED]
    for run in range(max(map(len, seated))):
        deliver(landing, f"run-{run}", [_message(c) for runs in seated if run < len(runs) for c in runs[run]])
        reports.append(run_all(source))
    return reports


def _source(name: str, landing: Path, **table: Any) -> Source:
    promised = {"shop.*": {"key": ["id"], "columns": COLUMNS, **table}}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": promised}
    return Source.model_validate(fields)


def _rows(lake: Lake, source: str, table: str) -> list[tuple[Any, ...]]:
    return _sorted(_told(lake, source, table))


def _told(lake: Lake, source: str, table: str) -> list[Row]:
    rows: list[Row] = lake.load((source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT]).to_pylist()
    return rows


def _sorted(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.more
@pytest.mark.parametrize("case", TRIED, ids=lambda case: case.name)
def test_the_table_is_what_its_changes_lead_to(case: Case, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every case publishes the rows written beside it."""
    seat = SEATS[case.name]
    rows = seat.own(_told(lake, "cases", seat.table))
    assert _sorted({**row, "id": seat.own_key(row["id"])} for row in rows) == sorted(case.rows, key=repr)


def test_each_row_shows_its_newest_event(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Place and commit time are those of one event, however the row came together.

    Two cases are left out: of loaded rows the place in the dump is a part of the position, and a row that moves in
    part is set aside.
    """
    published_rows = {table: _published(lake, "cases", table) for table in {seat.table for seat in SEATS.values()}}
    for case in TRIED:
        seat = SEATS[case.name]
        changes = changes_of(seat.seated(case.runs))
        is_loaded = any(change.operation is Operation.SNAPSHOT for change in changes)
        if not is_loaded and case.name != "key_changed_without_its_other_columns":
            assert seat.own(published_rows[seat.table]) == _expected(changes), case.name


def test_the_ledger_of_all_cases_closes(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No run stopped a table, and every event is accounted for."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    assert_ledger_closes(lake, "cases")


INT, BIG = {"id": "int", "n": "int"}, {"id": "bigint", "n": "int"}
PRICE = {"id": "int", "p": "decimal(8,2)"}
NARROW = {"id": "int", "n": "int", "p": "decimal(8,2)", "q": "decimal(8,2)"}
WIDE = {"id": "int", "n": "bigint", "p": "decimal(12,2)", "q": "decimal(10,4)"}
DAY = {"id": "int", "n": "date"}
PAIR = {"a": "int", "b": "varchar(9)", "n": "int"}
ODD = {
    "Id": "int", "id": "varchar(9)", "a b": "int", "a.b": "int", 'a"b': "int", "a`b": "varchar(9)", "ä": "int",
    "k0": "int", "position": "int", "tidemark_k0": "int", "deleted": "int", "event": "int", "c1": "int",
}  # fmt: skip
KEYS = {
    "text": ("varchar(9)", "ä ", "b", "ä ", "b"),
    "number": ("decimal(10,2)", "1.10", "2.00", Decimal("1.10"), Decimal("2.00")),
    "day": ("date", "2026-01-31", "0001-01-01", date(2026, 1, 31), date(1, 1, 1)),
    "bytes": ("varbinary(9)", "\u0000ÿ", "", b"\x00\xff", b""),
    "flag": ("tinyint(1)", "1", "0", True, False),
}
"""Type, the wire value of the row that stays, of the one that goes, and what is published of each."""
KEYED: Mapping[str, Sequence[str]] = how_many(
    usually={"key_of_all": tuple(KEYS)}, proving={f"key_{name}": (name,) for name in KEYS}
)
"""Tables by the columns of their keys; all of them but one more column, ``n``."""


def _odd(value: str) -> list[str]:
    return ["1", "x", "1", "2", "3", value, "4", "5", "6", "7", "8", "9", "10"]


def _keyed(kind: str, n: str, *rows: Callable[[Sequence[str]], Iterable[Sequence[int]]]) -> Iterator[bytes]:
    """Rows of each of these tables, by the part of ``KEYS`` that each column of their keys has."""
    for table, columns in KEYED.items():
        types = {name: KEYS[name][0] for name in columns}
        for parts in (parts for parts_of in rows for parts in parts_of(columns)):
            values = [KEYS[name][part] for name, part in zip(columns, parts, strict=True)]
            yield canal(table, kind, {**types, "n": "int"}, (*values, n), key=columns)


def _stays(columns: Sequence[str]) -> Iterable[Sequence[int]]:
    return [[1] * len(columns)]


def _goes(columns: Sequence[str]) -> Iterable[Sequence[int]]:
    return [[2] * len(columns)]


def _almost(columns: Sequence[str]) -> list[list[int]]:
    """Rows whose key differs from the key of the row that stays in one of several columns alone."""
    return [[2 if name == other else 1 for name in columns] for other in columns] if len(columns) > 1 else []


CANAL_RUNS = [
    [
        canal("moved", "INSERT", PAIR, ("1", "x", "1"), ("2", "x", "2"), key=("a", "b")),
        canal("widened", "INSERT", NARROW, ("1", "5", "5.10", "5.10")),
        canal("broken", "INSERT", INT, ("1", "5")),
        canal("claimed", "INSERT", INT, ("1", "5")),
        canal("twin", "INSERT", INT, ("1", "5")),
        canal("twin", "INSERT", INT, ("1", "6"), database="crm"),
        canal("keyless", "INSERT", INT, ("1", "5"), key=None),
        canal("metadata", "INSERT", {"id": "int", "_file": "int"}, ("1", "5")),
        canal("odd", "INSERT", ODD, _odd("old"), key=("Id", "a.b", "a`b")),
        canal("odd", "UPDATE", ODD, _odd("new"), key=("Id", "a.b", "a`b"), old={"a`b": "old"}),
        canal("misfit", "INSERT", PRICE, ("1", "5.10"), ("2", "5.123")),
        canal("misfit_too", "INSERT", PRICE, ("1", "1234567.00")),
        canal("misfit_too", "INSERT", PRICE, (None, "1.00"), ("3", "3.00")),
        *_keyed("INSERT", "1", _stays, _goes, _almost),
        canal("parted", "INSERT", INT, ("1", "5"), ("2", "6")),
        canal("wider_key", "INSERT", INT, ("1", "5")),
        canal("wider_key", "DELETE", INT, ("2", "5")),
    ],
    [
        canal("moved", "UPDATE", PAIR, ("1", "y", "1"), key=("a", "b"), old={"b": "x"}),
        canal("moved", "UPDATE", PAIR, ("3", "x", "9"), key=("a", "b"), old={"a": "2", "n": "2"}),
        canal("widened", "UPDATE", WIDE, ("1", "50000000000", "5.10", "5.10"), old={"n": "5"}),
        canal("widened", "INSERT", WIDE, ("2", "7", "1234567890.12", "1234.5678")),
        canal("parted", "UPDATE", {"id": "int", "n": "decimal(10,2)"}, ("1", "7.25"), old={"n": "5"}),
        canal("parted", "INSERT", INT, ("3", "2147483647")),
        canal("wider_key", "INSERT", BIG, ("50000000000", "5")),
        canal("wider_key", "DELETE", BIG, ("50000000001", "5")),
        canal("broken", "INSERT", DAY, ("2", "2026-01-31")),
        canal("claimed", "INSERT", INT, ("2", "7"), database="crm"),
        canal("odd", "DELETE", ODD, _odd("other"), key=("Id", "a.b", "a`b")),
        *_keyed("UPDATE", "2", _stays),
        *_keyed("DELETE", "1", _goes),
    ],
]
CANAL_ROWS: dict[str, list[tuple[Any, ...]]] = {
    "moved": [(1, "y", 1), (3, "x", 9)],
    "widened": [
        (1, 50_000_000_000, Decimal("5.10"), Decimal("5.1000")),
        (2, 7, Decimal("1234567890.12"), Decimal("1234.5678")),
    ],
    "parted": [(1, Decimal("7.25")), (2, Decimal("6.00")), (3, Decimal("2147483647.00"))],
    "wider_key": [(1, 5), (50_000_000_000, 5)],
    "broken": [(1, 5)],
    "claimed": [(1, 5)],
    "crm__claimed": [(2, 7)],
    "twin": [(1, 6)],
    "shop__twin": [(1, 5)],
    "keyless": [(1, 5)],
    "odd": [(1, "x", 1, 2, 3, "new", 4, 5, 6, 7, 8, 9, 10)],
    "misfit": [(1, Decimal("5.10"))],
    "misfit_too": [(3, Decimal("3.00"))],
    **{
        table: [
            (*(KEYS[name][part + 2] for name, part in zip(columns, parts, strict=True)), n)
            for n, rows in ((2, _stays(columns)), (1, _almost(columns)))
            for parts in rows
        ]
        for table, columns in KEYED.items()
    },
}
CANAL_PROBLEMS = {
    "shop.broken": "changed from int to date",
    "shop.metadata": "'_file', which Iceberg keeps for itself",
}


@pytest.fixture(scope="module")
def canal_reports(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """The tables of ``CANAL_RUNS`` in one source of Canal, published in two runs."""
    landing = tmp_path_factory.mktemp("canal")
    tables = {f"shop.{table}": {"columns": {"flag": "boolean"}} for table, names in KEYED.items() if "flag" in names}
    fields = {"source": "from_canal", "format": "canal_json", "landing": str(landing / "*"), "tables": tables}
    source = Source.model_validate(fields)
    reports = []
    for number, messages in enumerate(CANAL_RUNS):
        deliver(landing, f"{number}", messages)
        reports.append(run_all(source))
    return reports


@pytest.mark.more
@pytest.mark.parametrize("table", CANAL_ROWS)
def test_a_table_from_canal_holds(table: str, canal_reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """Keys that change, keys and columns of every kind, wider types: the rows written beside them."""
    assert _rows(lake, "from_canal", table) == sorted(CANAL_ROWS[table], key=repr)


def test_only_tables_that_would_lose_data_stop(canal_reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """Each stopped table says why, in compact and again in publish; all others go on."""
    for stage in ("compact", "publish"):
        problems = sorted(canal_reports[-1][stage].problems)
        for name, reason in CANAL_PROBLEMS.items():
            assert any(name in problem and reason in problem for problem in problems), (name, problems)
        assert len(problems) == len(CANAL_PROBLEMS)
    assert_ledger_closes(lake, "from_canal")


def test_what_does_not_fit_is_quarantined_with_its_bytes(
    canal_reports: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Two tables with the same reason in one batch, and a null key: each message is there, whole."""
    rows = lake.load(("quarantine", "from_canal")).scan().to_arrow().to_pylist()
    found = sorted((row["reason"], row["object"], row["value"], row["place"]) for row in rows)
    first = CANAL_RUNS[0]
    assert found == [
        ("null_key", "shop.misfit_too", first[12], 13),
        ("unreadable_value", "shop.misfit", first[10], 11),
        ("unreadable_value", "shop.misfit_too", first[11], 12),
    ]


_TABLES = range(16)
"""By number, on which the options of a table depend."""
_SIDE_BY_SIDE = 48


def _expected(changes: Sequence[Change], options: Mapping[str, Any] | None = None) -> list[Row]:
    marked = (
        change._replace(after=change.after and {**change.after, COMMITTED_AT: _at(change)})
        for change in with_position(changes)
    )
    rows = fold(marked).get(changes[0].table, {})
    typed = ({**row, "amount": row.get("amount") and Decimal(row["amount"])} for row in rows.values())
    return _comparable(found for row in typed if (found := shown(row, options or {})) is not None)


def _published(lake: Lake, source: str, table: str) -> list[Row]:
    rows = lake.load((source, table)).scan().to_arrow().to_pylist()
    return _comparable(as_at_source(row, options_of(table)) for row in rows)


def _comparable(rows: Iterable[Row]) -> list[Row]:
    bare_rows = map(without_delivery, rows)
    names = (*COLUMNS, *DERIVED, POSITION, COMMITTED_AT)
    return sorted(({name: row.get(name) for name in names} for row in bare_rows), key=repr)


_LINES = {1: "", 2: "ä "}
"""Texts in the place of numbers."""


def _made(number: int, seed: int) -> list[Change]:
    """Make up the histories of the table ``t<number>``: one, or many side by side, or many in events of many rows."""
    count, placed = (_SIDE_BY_SIDE, in_one_event if number % 4 == 1 else beside) if number % 2 else (1, beside)
    changes = side_by_side(lambda own: generated(f"t{number}", own), placed, seed + number, count)
    return [
        change._replace(before=_varied(change.before, number), after=_varied(change.after, number))
        for change in changes
    ]


def _varied(image: Row | None, number: int) -> Row | None:
    """The image with a null among its notes, and in some tables with texts for the second column of the key."""
    changed = {}
    for name, value in (image or {}).items():
        is_null = name == "note" and (value or "").endswith("7")
        changed[name] = None if is_null else _LINES.get(value, value) if name == "line" and number % 4 != 3 else value
    return image and changed


def _failing(
    deliveries: Mapping[str, Delivery], name: str, landing: Path, lake: Lake, mask_at: str = "table"
) -> list[str]:
    """Deliver histories as tables of one source, and name those that did not come to the model's rows."""
    tables = {f"shop.{table}": promised(table, changes_of(runs)[0].key) for table, runs in deliveries.items()}
    for table, runs in deliveries.items():
        if any(isinstance((change.after or {}).get("line"), str) for change in changes_of(runs)):
            tables[f"shop.{table}"]["columns"] |= {"line": "string"}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    fields |= {"mask_secret": f"${{{SECRET_VARIABLE}}}", "raw_key": f"${{{KEY_VARIABLE}}}", "mask_at": mask_at}
    source = Source.model_validate(fields)
    for run in range(_RUNS):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        for number in range(2):
            deliver(landing, f"{run}-{number}", map(_message, changes[number::2]))
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    assert_ledger_closes(lake, name)
    return [
        table
        for table, runs in deliveries.items()
        if _published(lake, name, table) != _expected(changes_of(runs), options_of(table))
        or (is_fed(table) and replayed(lake, Identifier(name, table)) != published(lake, Identifier(name, table)))
    ]


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(20260131, 20260131 + 1000 * ROUNDS, 1000))
def test_any_delivery_gives_the_rows_of_the_model(
    seed: int, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of histories, any order, cut into runs, sent again: all tables are the model's; a failing one is shrunk.

    Half of the tables hold one history, which a TRUNCATE may cut short; the others many of them side by side. Most
    have options: columns masked, renamed, left out or derived, rows left out, and layouts. A feed, where there is one,
    leads to the same rows. Every other source masks at landing, which changes none of them.
    """
    the_secret(monkeypatch)
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    histories = {f"t{number}": _made(number, seed) for number in _TABLES}
    deliveries = {table: mixed(dice, changes, dice.randint(1, _RUNS)) for table, changes in histories.items()}
    mask_at = "landing" if seed // 1000 % 2 else "table"
    failing = _failing(deliveries, f"generated_{seed}", tmp_path / "all", lake, mask_at)
    if failing:
        runs = shrunk(
            deliveries[failing[0]],
            lambda tries, step: _failing(tries, f"shrunk_{step}", tmp_path / "shrunk" / str(step), lake, mask_at),
        )
        events = "\n".join(
            f"run {number}: {_message(change).decode()}" for number, run in enumerate(runs) for change in run
        )
        pytest.fail(f"seed {seed}, tables {failing}; {failing[0]} with the fewest events that fail:\n{events}")


CRASHES = {
    "after_raw_append": ("tidemark.stages.land._remember_refusals", 1),
    "before_raw_append": ("tidemark.lake.lake.Lake.append_files", 1),
    "after_contents_are_told": ("tidemark.normalization.accounting.require_closed", 1),
    "before_changelog_append": ("tidemark.lake.lake.Lake.append_files", 3),
    "after_changelog_append": ("tidemark.ledger.cuts.finish", 1),
    "after_quarantine": ("tidemark.compaction.truncation.empty", 2),
    "after_state_append": ("tidemark.compaction.merging.upsert", 2),
    "after_candidate_merge": ("tidemark.compaction.accounting.account", 2),
    "before_the_cut_is_known": ("tidemark.stages.compact._report", 1),
    "between_two_fast_forwards": ("tidemark.ledger.cuts.move", 2),
    "before_the_cut_is_published": ("tidemark.ledger.cuts.set_state", 3),
}
"""Function that the process does not live to run, and which call of it."""


@pytest.fixture(scope="module")
def crashing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path, list[Change]]:
    """A source of two tables, its landing folder, and the changes delivered so far."""
    landing = tmp_path_factory.mktemp("crashing")
    return _source("crashing", landing), landing, []


@pytest.mark.parametrize(
    "point",
    crash_windows(
        CRASHES,
        usually={"after_candidate_merge"},
    ),
)
def test_a_killed_run_leaves_nothing_that_the_next_does_not_mend(
    point: str,
    crashing: tuple[Source, Path, list[Change]],
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed at a point and run again: rows, quarantine and ledger are the same as after a clean run."""
    source, landing, delivered = crashing
    at = 10 * len(delivered) + 10
    for table in (
        Table("one", columns=("id", "name", "note", "amount")),
        Table("two", columns=("id", "name", "note", "amount")),
    ):
        delivered += [
            table.insert(at, at, "a", "b", "1.00"),
            table.update(at + 1, at, "c", ..., "2.00"),
            table.insert(at + 2, 1, "hot", f"{at}", "3.00"),
            table.insert(at + 3, 2, "misfit", "x", "1.234"),
        ]
    deliver(landing, point, map(_message, delivered[-8:]))
    with monkeypatch.context() as patched:
        die_at(patched, *CRASHES[point])
        with pytest.raises(SystemExit):
            run_all(source)
    run_all(source)
    good = [change for change in delivered if change.after and change.after["name"] != "misfit"]
    for name in ("one", "two"):
        expected = _expected([change for change in good if change.table == name])
        assert _published(lake, "crashing", name) == expected
    assert_ledger_closes(lake, "crashing")
    batches = Ledger(lake, "crashing").read("batches")
    assert sum(row["landed"] for row in batches) == len(delivered)
    tables = [row for row in Ledger(lake, "crashing").read("tables") if row["state"] == TableState.PUBLISHED]
    assert sum(row["events"] for row in tables) == len(delivered)
    assert lake.load(("quarantine", "crashing")).scan().to_arrow().num_rows == len(delivered) // 4
