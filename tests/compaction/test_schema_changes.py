"""The schema of a published table follows the source's, whatever order, runs and moments its changes come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.cut_by_cut import of_log
from support.debezium_log import Log, Message
from support.histories import deliver
from support.rounds import PROVING, how_many, in_two_runs
from support.running import run_all
from support.seats import told_seats
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.quality.value_bounds import VALUE_BOUNDS
from tidemark.sources.files import validate
from tidemark.stages import StageReport
from tidemark.tables.schemas import COMMITTED_AT, POSITION

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """What is delivered of one table, run by run, and the table that it must lead to."""

    name: str
    table: str
    columns: str
    rows: list[tuple[Any, ...]]
    runs: Sequence[Callable[[Log], list[Message]]]


def case(
    name: str,
    columns: str,
    rows: list[tuple[Any, ...]],
    *runs: Callable[[Log], list[Message]],
    beside: str = "",
) -> Case:
    """A case whose runs are functions of the table's log; ``beside``: the table that it shares with other cases."""
    return Case(name, beside or name, columns, rows, runs)


def _loaded(t: Log, **row: Any) -> Message:
    """A row of an initial load without a place in the log."""
    message = json.loads(t.put(0, **row))
    origin = {name: value for name, value in message["source"].items() if name not in {"file", "pos", "row"}}
    return json.dumps({**message, "op": "r", "source": {**origin, "snapshot": "true"}}).encode()


def _typed(kind: str, message: Message) -> Message:
    """The message with the types of its columns, as Connect names them; ``kind``: of the column ``n``."""
    columns = [{"field": "id", "type": "int64"}, {"field": "n", "type": kind, "optional": True}]
    fields = [{"field": side, "type": "struct", "fields": columns} for side in ("before", "after")]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": json.loads(message)}).encode()


def _migrated(copy: str, old: str) -> Any:
    """A tool changes a copy of the table, fills it, and gives it the table's name: the steps by the table's log."""

    def steps(t: Log) -> list[Message]:
        made = Log(copy.format(t.table))
        return [
            made.statement(10, f"CREATE TABLE {{}} LIKE {t.table}"),
            made.ddl(11, "ADD COLUMN n int NOT NULL DEFAULT 5, DROP COLUMN a"),
            made.put(12, id=1, n=5),
            t.put(13, id=2, a="y"),
            made.put(14, id=2, n=5),
            t.statement(20, f"RENAME TABLE {t.table} TO {old.format(t.table)}, {copy.format(t.table)} TO {t.table}"),
            t.put(21, id=3, n=7),
        ]

    return steps


CASES = [
    case(
        "migrated_by_gh_ost",
        "id n",
        [(1, 5), (2, 5), (3, 7)],
        lambda t: [t.put(1, id=1, a="x")],
        _migrated("_{}_gho", "_{}_del"),
    ),
    case(
        "migrated_by_pt_osc_and_late",
        "id n",
        [(1, 5), (2, 5), (3, 7), (4, 5)],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [each for place, each in enumerate(_migrated("_{}_new", "_{}_old")(t)) if place in {2, 5, 6}],
        lambda t: [
            *(each for place, each in enumerate(_migrated("_{}_new", "_{}_old")(t)) if place in {0, 1, 3, 4}),
            t.put(5, id=4, a="late"),
        ],
    ),
    case(
        "a_copy_given_up",
        "id a",
        [(1, "x"), (2, "y")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [*_migrated("_{}_gho", "_{}_del")(t)[:4]],
        lambda t: [Log(f"_{t.table}_gho").statement(15, "DROP TABLE IF EXISTS {}")],
    ),
    case(
        "added_twice",
        "id x y",
        [(1, None, "a"), (2, 7, "b")],
        lambda t: [t.put(1, id=1, v="a")],
        lambda t: [
            t.ddl(3, "ADD COLUMN x int"),
            t.ddl(4, "ADD COLUMN IF NOT EXISTS x int DEFAULT 5"),
            t.statement(5, "ALTER TABLE {0} RENAME COLUMN v TO w; ALTER TABLE {0} RENAME COLUMN w TO y"),
            t.put(6, id=2, x=7, y="b"),
        ],
        beside="whole",
    ),
    case(
        "rename_in_one_run",
        "id b",
        [(1, "z"), (2, "y")],
        lambda t: [
            t.put(1, id=1, a="x"),
            t.put(2, id=2, a="y"),
            t.statement(3, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(4, id=1, b="z"),
        ],
        beside="whole",
    ),
    case(
        "rename_over_runs",
        "id b",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(3, "ALTER TABLE {} CHANGE a b text"), t.put(4, id=1, b="z")],
        lambda t: [t.put(5, id=3, b="n")],
        beside="whole",
    ),
    case(
        "rename_alone_in_its_run",
        "id b",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(3, "ALTER TABLE {} RENAME COLUMN a TO b")],
        beside="ddl_alone",
    ),
    case(
        "late_event_under_the_old_name",
        "id b",
        [(1, "z"), (2, "late"), (3, "too late")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b"), t.put(11, id=1, b="z")],
        lambda t: [t.put(3, id=2, a="late"), t.put(4, id=1, a="late"), t.put(5, id=3, a="too late")],
        beside="whole",
    ),
    case(
        "renamed_and_added_again",
        "id a b",
        [(1, None, "x"), (2, "new", "z")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.statement(11, "ALTER TABLE {} ADD COLUMN a text AFTER id"),
            t.put(12, id=2, a="new", b="z"),
        ],
        beside="whole",
    ),
    case(
        "two_names_swapped",
        "id b a",
        [(1, "a1", "b1"), (2, "a2", "b2")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b, RENAME COLUMN b TO a"),
            t.put(12, id=2, a="b2", b="a2"),
        ],
        beside="whole",
    ),
    case(
        "dropped",
        "id b",
        [(1, "b1"), (2, "b2"), (3, "b3")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.put(2, id=2, a="a2", b="b2"),
            t.statement(10, "ALTER TABLE {} DROP COLUMN a"),
            t.put(12, id=3, b="b3"),
        ],
        beside="whole",
    ),
    case(
        "dropped_and_added_again_with_another_type",
        "id b a",
        [(1, "b1", None), (2, "b2", 7), (3, "b3", None)],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} DROP a"),
            t.statement(11, "ALTER TABLE {} ADD a int"),
            t.put(12, id=2, b="b2", a=7),
        ],
        lambda t: [t.put(3, id=3, a="late", b="b3")],
        beside="whole",
    ),
    case(
        "added_with_a_default",
        "id a n",
        [(1, "x", 5), (2, "y", 7), (3, "z", 5), (4, "late", 5), (5, "w", None)],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.put(3, id=3, a="z"),
            t.statement(10, "ALTER TABLE {} ADD COLUMN n int DEFAULT 5"),
            t.put(12, id=2, a="y", n=7),
            t.put(13, id=5, a="w", n=None),
        ],
        lambda t: [t.put(4, id=4, a="late")],
        beside="whole",
    ),
    case(
        "added_with_a_default_and_no_row_since",
        "id a d",
        [(1, "x", Decimal("1.50"))],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(10, "ALTER TABLE {} ADD COLUMN d decimal(8,2) NOT NULL DEFAULT '1.50'")],
        beside="ddl_alone",
    ),
    case(
        "added_with_constants_of_every_kind",
        "id yes no hex score code bits tag raw word",
        [
            (1, 1, 0, 16, Decimal("1.50"), "abc", 10, "vip", "x", "new"),
            (2, 0, 1, 3, Decimal("2.25"), "xyz", 5, "old", "y", "old"),
        ],
        lambda t: [t.put(1, id=1)],
        lambda t: [
            t.statement(
                10,
                "ALTER TABLE {} ADD yes BOOLEAN NOT NULL DEFAULT TRUE, ADD no BOOL DEFAULT FALSE, ADD hex INT DEFAULT "
                "0x10, ADD score DECIMAL(6,2) DEFAULT 1.5, ADD code CHAR(3) DEFAULT 'abc', ADD bits BIT(4) DEFAULT "
                "b'1010', ADD tag VARCHAR(9) DEFAULT _utf8mb4'vip', ADD raw VARCHAR(9) DEFAULT 0x78, ADD word "
                "ENUM('new','old') NOT NULL",
            ),
            t.put(11, id=2, yes=0, no=1, hex=3, score=2.25, code="xyz", bits=5, tag="old", raw="y", word="old"),
        ],
        beside="whole",
    ),
    case(
        "added_with_types_that_allow_less",
        "id code size word",
        [(1, "abc", None, "new"), (2, "abcd", 300, "odd"), (3, "äöü", 255, "paid")],
        lambda t: [t.put(1, id=1)],
        lambda t: [
            t.statement(
                10,
                "ALTER TABLE {} ADD code CHAR(2) DEFAULT 'abc', ADD size TINYINT UNSIGNED, ADD word ENUM('new','paid') "
                "NOT NULL",
            ),
            t.statement(11, "ALTER TABLE {} MODIFY code VARCHAR(3)"),
            t.put(12, id=2, code="abcd", size=300, word="odd"),
            t.put(13, id=3, code="äöü", size=255, word="paid"),
        ],
    ),
    case(
        "widened_by_ddl",
        "id n",
        [(1, 50_000_000_000)],
        lambda t: [t.put(1, id=1, n=5)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n bigint"), t.put(11, id=1, n=50_000_000_000)],
        beside="typed",
    ),
    case(
        "table_dropped",
        "id a",
        [(2, "after"), (3, "after")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "DROP TABLE {}"), t.put(12, id=2, a="after")],
        lambda t: [t.put(3, id=1, a="late"), t.put(13, id=3, a="after")],
    ),
    case(
        "truncated_by_ddl_alone",
        "id a",
        [],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "TRUNCATE TABLE {}")],
    ),
    case(
        "partial_images_over_a_rename",
        "id b c",
        [(1, "b3", "c4"), (2, "late", "c2"), (3, "b1", "c5")],
        lambda t: [t.put(1, id=1, a="a1", c="c1"), t.put(2, id=2, a="a2", c="c2"), t.put(2, id=3, a="b1", c="c1")],
        lambda t: [
            t.put(20, {"id": 1}, id=1, a=..., c="c4"),
            t.put(20, {"id": 2}, id=2, a=..., c="c2"),
            t.put(20, {"id": 3}, id=3, a=..., c="c5"),
        ],
        lambda t: [
            t.statement(30, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(31, {"id": 1}, id=1, b="b3", c=...),
            t.put(10, id=2, a="late", c="late"),
        ],
        beside="parts",
    ),
    case(
        "key_renamed",
        "number a",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "ALTER TABLE {} RENAME COLUMN id TO number"), t.put(12, number=1, a="z")],
        lambda t: [t.put(3, id=2, a="y"), t.put(13, number=3, a="n"), t.delete(14, number=9, a="")],
    ),
    case(
        "null_first",
        "id n d b",
        [(1, None, None, None), (2, 5, Decimal("1.500000000000000000"), True), (3, 7, None, None)],
        lambda t: [t.put(1, id=1, n=None, d=None, b=None)],
        lambda t: [t.put(2, id=2, n=5, d=1.5, b=True), t.put(3, id=3, n=None)],
        lambda t: [t.put(4, id=3, n=7)],
        beside="typed",
    ),
    case(
        "null_for_long",
        "id n m",
        [(1, None, None), (2, None, None), (3, 7, None)],
        lambda t: [t.put(1, id=1, n=None, m=None)],
        lambda t: [t.put(2, id=2, n=None, m=None)],
        lambda t: [t.put(4, id=3, n=7, m=None)],
        beside="typed",
    ),
    case(
        "null_first_in_parts",
        "id n c",
        [(1, None, "y"), (2, 6, "w")],
        lambda t: [t.put(10, {"id": 1}, id=1, n=..., c="x"), t.put(11, id=2, n=None, c="v")],
        lambda t: [t.put(20, {"id": 1}, id=1, n=None, c=...), t.put(21, {"id": 1}, id=1, n=..., c="y")],
        lambda t: [t.put(15, {"id": 1}, id=1, n=5, c=...), t.put(30, id=2, n=6, c="w")],
        beside="parts",
    ),
    case(
        "null_first_and_renamed",
        "id m c",
        [(1, None, "y"), (2, 6, "w")],
        lambda t: [t.put(10, {"id": 1}, id=1, n=..., c="x"), t.put(11, id=2, n=None, c="v")],
        lambda t: [t.put(20, {"id": 1}, id=1, n=None, c=...), t.put(21, {"id": 1}, id=1, n=..., c="y")],
        lambda t: [
            t.statement(25, "ALTER TABLE {} RENAME COLUMN n TO m"),
            t.put(15, {"id": 1}, id=1, n=5, c=...),
            t.put(30, id=2, m=6, c="w"),
        ],
        beside="parts",
    ),
    case(
        "null_first_and_retyped",
        "id n",
        [(1, None), (2, None), (3, Decimal("1.50"))],
        lambda t: [t.put(1, id=1, n=None)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n decimal(8,2)"), t.put(12, id=2, n=None)],
        lambda t: [t.put(13, id=3, n=1.5)],
        beside="typed",
    ),
    case(
        "whole_numbers_declared_decimal",
        "id n",
        [(1, Decimal("5.00")), (2, Decimal("1.50")), (3, Decimal("7.00"))],
        lambda t: [t.put(1, id=1, n=5)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n decimal(8,2)"), t.put(12, id=2, n=1.5)],
        lambda t: [t.put(2, id=3, n=7)],
        beside="typed",
    ),
    case(
        "added_alone",
        "id a d",
        [(1, "x", None), (2, "y", Decimal("1.50"))],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(10, "ALTER TABLE {} ADD COLUMN d decimal(8,2)")],
        lambda t: [t.put(11, id=2, a="y", d=1.5)],
        beside="whole",
    ),
    case(
        "told_of_another_table",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [
            t.statement(10, "ALTER TABLE crm.{} DROP COLUMN a"),
            t.statement(11, "ALTER TABLE other DROP COLUMN a"),
        ],
        beside="whole",
    ),
    case(
        "what_changes_nothing",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} ADD INDEX i (a), COMMENT 'drop a'"),
            t.statement(11, "CREATE INDEX drop_a ON {} (a)"),
        ],
        beside="whole",
    ),
    case(
        "added_after_a_load_with_the_column",
        "id m n",
        [(1, 8, None), (2, 8, 7), (3, None, 7)],
        lambda t: [_loaded(t, id=1, n=None), t.put(2, id=2), t.put(3, id=3, m=None)],
        lambda t: [t.ddl(10, "ADD n int DEFAULT 7"), t.ddl(11, "ADD COLUMN IF NOT EXISTS m int DEFAULT 8")],
    ),
    case(
        "a_type_that_only_earlier_versions_have",
        "id n",
        [(1, "x")],
        lambda t: [_typed("int32", t.put(1, id=1, n=1))],
        lambda t: [_typed("int32", t.put(2, {"id": 1, "n": 1}, id=1, n=None))],
        lambda t: [_typed("string", t.put(3, {"id": 1, "n": None}, id=1, n="x"))],
        beside="versioned",
    ),
]
_PROVED = {"migrated_by_pt_osc_and_late", "a_copy_given_up", "truncated_by_ddl_alone"}
"""Cases of ``make prove``, each with a table of its own: ``make test`` has the tables of another tool, DDL that comes
late in ``test_schemas_cut_by_cut.py``, and TRUNCATE statements among the cases of ``test_features_together.py``."""
CASES = [case for case in CASES if PROVING or case.name not in _PROVED]
SEATS = told_seats({case.name: case.table for case in CASES})
_RUNS = 3
_LAST_TWO = {
    "rename_over_runs",
    "dropped_and_added_again_with_another_type",
    "table_dropped",
    "key_renamed",
    "null_first",
    "whole_numbers_declared_decimal",
}
"""Cases of which ``make test`` has the last two runs as one: what they are about is a change of a table with rows. Of
the others it has the first two as one."""


def _opened(table: str, at: int, **row: Any) -> list[Message]:
    """An insert of a transaction that is open yet."""
    return Log(table).within("open", Log(table).put(at, **row))


def _rename(old: str, new: str, at: int) -> Message:
    return Log(old).statement(at, f"RENAME TABLE {{}} TO {new}")


_WAITING: dict[str, list[list[Message]]] = {
    "before": [
        [
            *Log("before_a").within("whole", Log("before_a").put(1, id=1, v="a")),
            Log("before_a").end("whole", 1),  # only now the source is known to send markers
            *_opened("before_a", 2, id=2, v="b"),
        ],
        [_rename("before_a", "before_b", 3)],
        [Log("before_a").end("open", 1)],
    ],
    "after": [
        [Log("after_a").put(1, id=1, v="a"), _rename("after_a", "after_b", 2)],
        [*_opened("after_b", 3, id=2, v="b")],
        [Log("after_b").end("open", 1)],
    ],
    "alone": [
        [*_opened("alone_a", 1, id=2, v="b")],
        [_rename("alone_a", "alone_b", 2)],
        [Log("alone_a").end("open", 1)],
    ],
    "again": [
        [Log("again_a").put(1, id=1, v="a")],
        [_rename("again_a", "again_b", 2), *_opened("again_a", 3, id=2, v="b")],
        [Log("again_a").end("open", 1)],
    ],
    "bare": [
        [Log("bare_a").put(1, id=1, v="a")],
        [_rename("bare_a", "bare_b", 2), Log("bare_a").ddl(3, "ADD n int")],
        [],
    ],
}
"""By case and run, tables with an event of a transaction that closes in the last run of the case. It comes before the
table's rename, after it, as the only event of a table, and as the first event of another table under the name that is
free. The last table under such a name has a statement, and no event."""
_WAITING = {
    case: runs if case == "before" else in_two_runs(runs)
    for case, runs in _WAITING.items()
    if PROVING or case not in {"after", "bare"}
}
_HELD = how_many(
    usually={1: {"before_a", "alone_b", "again_a"}, 2: {"before_b"}},
    proving={2: {"before_b", "after_b", "alone_b", "again_a"}},
)
"""By cut, tables under whose names events wait."""

_WAITED = {
    "before_a": {},
    "before_b": {1: "a", 2: "b"},
    "after_b": {1: "a", 2: "b"},
    "alone_b": {2: "b"},
    "again_a": {2: "b"},
    "again_b": {1: "a"},
    "bare_a": {},
    "bare_b": {1: "a"},
}
_WAITED = {table: rows for table, rows in _WAITED.items() if table[:-2] in _WAITING}
"""What they hold in the end."""


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases as tables of one source, landed and published in three runs; the runs' reports.

    In ``make test`` the third run has the end of a transaction alone.
    """
    landing = tmp_path_factory.mktemp("cases")
    source = of_log(
        "schema_cases", landing, {"shop.versioned": {"key": ["id"], "history": True}, "shop.*": {"key": ["id"]}}
    )
    reports = []
    deliveries = [
        in_two_runs([run(SEATS[case.name].log()) for run in case.runs], last=case.name in _LAST_TWO) for case in CASES
    ]
    for run in range(_RUNS):
        cased = [message for runs in deliveries if run < len(runs) for message in runs[run]]
        waiting = [message for runs in _WAITING.values() if run < len(runs) for message in runs[run]]
        deliver(landing, f"run-{run}", [*cased, *waiting])
        reports.append(run_all(source))
    return reports


@pytest.mark.more
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_has_the_columns_and_rows_of_the_source(
    case: Case, cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Every case publishes the columns and the rows written beside it; other cases of its table have others."""
    seat, columns = SEATS[case.name], case.columns.split()
    others = {SEATS[other.name].column(name) for other in CASES for name in other.columns.split()}
    found = lake.load(("schema_cases", seat.table)).scan().to_arrow()
    own = [seat.column(name) for name in columns]
    assert [name for name in found.schema.names if name in own] == own
    assert set(found.schema.names) - {POSITION, COMMITTED_AT} <= {*own, *(others if seat.count > 1 else ())}
    rows = found.to_pylist() if seat.count == 1 else seat.own(found.to_pylist())
    key = columns[0]
    own_rows = [(seat.own_key(row[key]), *(row[name] for name in own[1:])) for row in rows]
    assert sorted(own_rows, key=repr) == sorted(case.rows, key=repr)


def test_no_case_stopped_a_table_and_every_event_is_accounted_for(
    cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """No run has problems, and the ledger closes."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    for row in Ledger(lake, "schema_cases").read("tables"):
        accounted = sum(row[name] for name in ("applied", "superseded", "duplicate", "held", "quarantined"))
        assert row["events"] == accounted, row
        assert row["quarantined"] == 0, row


def test_values_of_earlier_versions_stay_in_their_column(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No row has a value in it when it gets another type; the first version has."""
    versions = lake.load(("schema_cases", "versioned__history")).scan().to_arrow().to_pylist()
    assert [row["n"] for row in sorted(versions, key=lambda row: str(row[POSITION]))] == ["1", None, "x"]


@pytest.mark.more
def test_the_events_of_a_transaction_wait_under_the_name_of_their_table(
    cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """They show once it is whole, in the table that had the name at their place, though nothing else came for it."""
    ledger = Ledger(lake, "schema_cases")
    for cut, names in _HELD.items():
        waiting = {row.object for row in ledger.tables() if row.cut == cut and row.held}
        assert waiting >= {f"shop.{name}" for name in names}
    rows = {
        name: found.scan().to_arrow().to_pylist() for name in _WAITED if (found := lake.find(("schema_cases", name)))
    }
    assert {name: {row["id"]: row["v"] for row in rows[name]} for name in rows} == _WAITED
    assert {row.object for row in ledger.published_tables().values() if row.held} == set()


def test_values_beyond_what_a_statement_declared_are_told(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """The messages of these tables declare no type; a table that was changed otherwise, too, has no bounds."""
    checks = [row for row in Ledger(lake, "schema_cases").checks() if row.name == VALUE_BOUNDS and not row.success]
    assert [(row.target, row.columns, row.observed) for row in checks] == [
        (
            f"schema_cases.{SEATS['added_with_types_that_allow_less'].table}",
            ("code: 1 longer than 3 characters", "size: 1 outside 0 to 255", "word: 1 no label of the enum"),
            "3",
        )
    ]


def test_the_tables_of_tools_are_not_published(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """They are known by their names, beside the table that they were made for."""
    published = {name for name in lake.tables("schema_cases") if name.startswith("_")}
    assert published == set()


def test_an_unknown_policy_is_named_with_what_is_allowed(tmp_path: Path) -> None:
    """The source file's mistake, with the place of it."""
    file = tmp_path / "erp.yaml"
    file.write_text("source: erp\nformat: canal_json\nlanding: x/*\nschema: strikt\n")
    _, [problem] = validate([file])
    assert "unknown value 'strikt'" in str(problem)
    assert "strict" in str(problem)
