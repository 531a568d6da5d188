"""Tables that are folded into one: each shard is what its own events lead to, whatever happens in the others."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.feature_cases import CASES, Case
from support.feeds import published, replayed
from support.histories import COLUMNS, deliver, generated, message, mixed, with_position
from support.published import without_delivery
from support.reference import Row, fold
from support.rounds import PROVING, ROUNDS, how_many, in_two_runs
from support.running import assert_ledger_closes, run_all
from tidemark.erasure.subject import find_subject
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Outcome
from tidemark.queries.typed_changes import typed_changes
from tidemark.sources.model import Source
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.stages import REBUILD
from tidemark.tables.schemas import DELETED, POSITION

pytestmark = [pytest.mark.spark, pytest.mark.more]

SHARDS = [case for case in CASES if case.name.startswith("both_") and "differ_in_case" not in case.name]
"""Cases with a history and soft deletes: all of them are folded into one table, and each keeps its own DDL."""


ENTRIES: dict[str, Any] = {
    r"shop\.both_(\w+)": {
        "target": "both", "add": {"shard": "$1"}, "key": ["shard", "id"], "history": True, "deletes": "soft",
        "feed": True,
    },
    r"shop\.late_(\d)": {
        "target": "late", "add": {"part": "$1"}, "columns": {"part": "int"}, "key": ["part", "id"], "feed": True,
    },
    "shop.clash_*": {"target": "clash", "key": ["id"]},
    "shop.move_*": {"target": "move", "key": ["id"], "feed": True},
    r"shop\.wide_(\w)": {"target": "wide", "add": {"s": "$1"}, "key": ["s", "id"]},
    r"shop\.named_(\w)": {"target": "named", "add": {"s": "$1"}, "key": ["s", "id"], "mask": {"a": "last4"}},
    r"shop\.bag_(\d)": {"target": "bag", "add": {"s": "$1"}, "key": []},
    r"shop\.taken_(\d)": {"target": "taken", "add": {"id": "$1"}, "key": ["id"]},
}  # fmt: skip
LATE_1, LATE_2, LATE_3 = Log("late_1"), Log("late_2"), Log("late_3")
CLASH_A, CLASH_B = Log("clash_a"), Log("clash_b")
MOVE_A, MOVE_B, WIDE_A, WIDE_B = Log("move_a"), Log("move_b"), Log("wide_a"), Log("wide_b")
NAMED_A, NAMED_B = Log("named_a"), Log("named_b")
RUNS = [
    [
        LATE_1.put(5, id=1), LATE_1.put(6, id=2), CLASH_A.put(1, id=1, a="a"), CLASH_B.put(2, id=2, a="b"),
        MOVE_A.put(1, id=1, a="a"), WIDE_A.put(1, id=1, n=1), Log("bag_1").put(1, n=1), Log("taken_1").put(1, id=1),
        NAMED_A.put(1, id=1, a="a-0001"), NAMED_B.put(1, id=1, a="a-0002"),
        LATE_3.put(5, id=8),
    ],
    [
        LATE_1.truncate(10), LATE_1.put(11, id=3), CLASH_B.put(3, id=1, a="b"), MOVE_A.delete(9, id=1, a="a"),
        MOVE_B.put(2, id=1, a="b"), WIDE_B.put(1, id=1, n=3_000_000_000, b="x"),
        NAMED_A.ddl(10, "RENAME COLUMN a TO b"), NAMED_A.put(11, {"id": 1, "b": "a-0001"}, id=1, b="a-0003"),
        LATE_3.truncate(10),
    ],
    [
        LATE_2.put(1, id=1), LATE_1.put(7, id=9), WIDE_A.put(2, {"id": 1, "n": 1}, id=1, n=2),
        Log("_named_b_gho").put(2, id=1, a="a-0002"),
    ],
]  # fmt: skip
if not PROVING:  # the TRUNCATE of one shard in the first run, and what comes late below it in the second
    first, second, third = RUNS
    RUNS = [[*first, *second[:2]], [*second[2:], *third]]


class Ways(NamedTuple):
    """The rows of all tables, by the way that they came, and the problems that were reported."""

    by_runs: dict[str, list[dict[str, Any]]]
    rebuilt: dict[str, list[dict[str, Any]]]
    problems: Sequence[str]


def _rows(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    found = {name: lake.find(Identifier("folded", name)) for name in TABLES}
    read = {name: table.scan().to_arrow().to_pylist() for name, table in found.items() if table is not None}
    return {name: sorted(rows, key=repr) for name, rows in read.items()}


REBUILT = how_many(usually=("folded.late",), proving=(None,))
"""Tables that are built again; ``None``: all."""
TABLES = ("both", "both__history", "late", "clash", "move", "wide", "named", "bag", "taken")


@pytest.fixture(scope="module")
def ways(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """All shards, published run by run and rebuilt."""
    landing = tmp_path_factory.mktemp("folded")
    fields = {"source": "folded", "format": "debezium_json", "landing": str(landing / "*"), "tables": ENTRIES}
    source = Source.model_validate({**fields, "max_deletes": 1})
    reports = []
    deliver(landing, "first", [Log("both_renamed").end(1, 0)])
    delivered = [in_two_runs([*case.runs, [], []][:3], last=True) for case in SHARDS]
    for run, more in enumerate(RUNS):
        messages = [message for runs in delivered for message in runs[run]]
        deliver(landing, f"run-{run}", [*messages, *more])
        reports += run_all(source).values()
    by_runs = _rows(lake)
    reports += [run_stage(REBUILD[0], source, **({"table": table} if table else {})) for table in REBUILT]
    reports += [run_stage(stage, source) for stage in REBUILD[1:]]
    return Ways(by_runs, _rows(lake), [problem for report in reports for problem in report.problems])


def test_feeds_lead_to_the_rows(ways: Ways, lake: Lake) -> None:
    """Whoever follows a table of several shards sees what each of them changes, also after a rebuild."""
    fed = [Identifier("folded", name) for name in ("both", "late", "move")]
    assert {str(table): replayed(lake, table) for table in fed} == {str(table): published(lake, table) for table in fed}


@pytest.mark.parametrize("case", SHARDS, ids=lambda case: case.name)
def test_a_shard_is_what_its_events_lead_to(case: Case, ways: Ways) -> None:
    """Renames, drops, defaults, TRUNCATEs, late events and transactions of one shard touch its own rows alone."""
    shard = f"shop.{case.seat.table}"
    rows = [row for row in ways.by_runs["both"] if row[SHARD_COLUMN] == shard and not row[DELETED]]
    assert sorted(map(case.values, case.own(rows)), key=repr) == sorted(case.rows, key=repr)
    assert {row["shard"] for row in rows} == {case.seat.table.removeprefix("both_")}
    columns = {name for other in SHARDS if other.seat.table == case.seat.table for name in other.columns}
    others = {name for row in rows for name, value in row.items() if value is not None and not name.startswith("_cdc_")}
    assert others <= {"shard", *columns}


def test_the_copy_of_a_shard_is_not_published(ways: Ways, lake: Lake) -> None:
    """A tool fills it while the shard itself is quiet; no entry of the source file is for it, nor are its masks."""
    assert "_named_b_gho" not in {name for *_, name in lake.catalog.list_tables("folded")}


def test_runs_and_a_rebuild_agree(ways: Ways, lake: Lake) -> None:
    """At the same positions, deleted rows too; every event is accounted for."""
    for name, rows in ways.by_runs.items():
        again = ways.rebuilt[name]
        assert [row for row in rows if row not in again] == [row for row in again if row not in rows]
    assert ways.by_runs == ways.rebuilt
    assert_ledger_closes(lake, "folded")


def test_the_current_versions_are_the_published_rows(ways: Ways) -> None:
    """In every shard."""
    current = [row for row in ways.rebuilt["both__history"] if row["is_current"]]
    rebuilt = ways.rebuilt["both"]
    alive = [{name: value for name, value in row.items() if name != DELETED} for row in rebuilt if not row[DELETED]]
    assert sorted(({name: row[name] for name in alive[0]} for row in current), key=repr) == sorted(alive, key=repr)


@pytest.mark.parametrize(
    ("table", "columns", "rows"),
    [
        ("late", "part id", [(1, 3), (2, 1)]),
        ("clash", "id a", [(1, "a"), (2, "b")]),
        ("move", "id a _cdc_table", [(1, "b", "shop.move_b")]),
        ("wide", "s id n b", [("a", 1, 2, None), ("b", 1, 3_000_000_000, "x")]),
        ("named", "s id a b", [("a", 1, None, "****0003"), ("b", 1, "****0002", None)]),
    ],
)
def test_shards_make_one_table(table: str, columns: str, rows: list[tuple[Any, ...]], ways: Ways) -> None:
    """A TRUNCATE spares other shards; a row may go on in another shard; the table has the columns and types of all.

    A column that is masked stays so in a shard that gave it another name.
    """
    assert sorted(tuple(row[name] for name in columns.split()) for row in ways.by_runs[table]) == rows


def test_what_cannot_be_folded_is_stopped(ways: Ways) -> None:
    """A key of rows in two shards, a table without a key, and an added column that the source has: with the remedy."""
    problems = set(ways.problems)
    assert {line.partition(":")[0] for line in problems} == {
        "folded.clash", r"shop\.bag_(\d) -> folded.bag", r"shop\.taken_(\d) -> folded.taken",
    }  # fmt: skip
    clash = next(line for line in problems if line.startswith("folded.clash"))
    assert "1 keys (id) are those of rows in several tables, shop.clash_a and shop.clash_b among them" in clash
    assert not ways.by_runs.keys() & {"bag", "taken"}


def test_explain_finds_the_shard_of_a_row(ways: Ways, lake: Lake) -> None:
    """By the columns that are added, or by the name of the table."""
    for given in (["part=2", "id=1"], ["_cdc_table=shop.late_2", "id=1"]):
        life = explain(lake, "folded.late", given)
        assert [chapter.outcome for chapter in life.chapters] == [Outcome.STANDS]
        assert [row["_cdc_table"] for row in life.rows.to_pylist()] == ["shop.late_2"]
    gone = explain(lake, "folded.late", ["part=1", "id=1"])
    assert gone.rows.num_rows == 0
    assert [chapter.step.operation for chapter in gone.chapters] == ["INSERT", "TRUNCATE"]
    with pytest.raises(ConfigurationError, match="several tables have rows like this"):
        explain(lake, "folded.late", ["id=1"])


def test_changes_of_shards_have_their_columns(ways: Ways, lake: Lake) -> None:
    """The change log shows the columns that are added, with the names of today in every shard, and masks."""
    rows = typed_changes(lake, Identifier("folded", "named")).select("after.*").collect()
    assert all(row["_cdc_table"] == f"shop.named_{row['s']}" for row in rows)
    found = sorted(((row["s"], row["a"], row["b"]) for row in rows), key=repr)
    assert found == [("a", None, "****0001"), ("a", None, "****0003"), ("b", "****0002", None)]


def test_erasing_a_row_of_a_shard_is_refused(ways: Ways, lake: Lake) -> None:
    """Before anything is erased, with what to do."""
    with pytest.raises(ConfigurationError, match="folded from 3 tables, and rows of such a table cannot be erased yet"):
        find_subject(lake, Ledger(lake, "folded"), "folded.late", ["part=1", "id=3"], follow=False)


_SHARDS = 60


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(20260947, 20260947 + 1000 * ROUNDS, 1000))
def test_any_delivery_gives_each_shard_the_rows_of_the_model(
    seed: int, spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Histories with equal keys and equal places in their logs, folded into two tables: each shard is the model's."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    keys = [generated("", seed + number)[0].key for number in range(_SHARDS)]
    names = [f"{'one' if len(key) == 1 else 'two'}_{number}" for number, key in enumerate(keys)]
    histories = {name: generated(name, seed + number) for number, name in enumerate(names)}
    deliveries = {name: mixed(dice, changes, dice.randint(1, 3)) for name, changes in histories.items()}
    settings = {"add": {"shard": "$1"}, "columns": {"shard": "int", **COLUMNS}}
    entries = {
        r"shop\.one_(\d+)": {"target": "one", "key": ["shard", "id"], **settings},
        r"shop\.two_(\d+)": {"target": "two", "key": ["id", "line", "shard"], "history": True, **settings},
    }
    name = f"generated_shards_{seed}"
    fields = {"source": name, "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": entries}
    for run in range(3):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        deliver(tmp_path, f"{run}", map(message, changes))
        reports = run_all(Source.model_validate(fields))
        assert [problem for report in reports.values() for problem in report.problems] == []
    assert_ledger_closes(lake, name)
    rows = [row for target in ("one", "two") for row in lake.load((name, target)).scan().to_arrow().to_pylist()]
    for shard, runs in deliveries.items():
        mine = [row for row in rows if row[SHARD_COLUMN] == f"shop.{shard}"]
        assert {row["shard"] for row in mine} <= {int(shard.partition("_")[2])}
        expected = fold(with_position(change for run in runs for change in run)).get(shard, {})
        typed = [{**row, "amount": row.get("amount") and Decimal(row["amount"])} for row in expected.values()]
        assert _comparable(mine) == _comparable(typed), shard


def _comparable(rows: Iterable[Row]) -> list[Row]:
    bare_rows = map(without_delivery, rows)
    return sorted(({name: row.get(name) for name in (*COLUMNS, POSITION)} for row in bare_rows), key=repr)
