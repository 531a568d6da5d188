"""Updates in two messages whose new row is partial: one update, in whichever runs its halves land."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support import shareplex
from support.histories import COLUMNS, deliver, mixed, with_position
from support.published import comparable, of_versions
from support.reference import Change, Row, fold, fold_softly, versions
from support.rounds import PROVING, ROUNDS, how_many, in_two_runs
from support.running import assert_ledger_closes, run_all
from support.seats import seats
from support.shareplex import Table
from support.shrinking import Delivery, changes_of, shrunk
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.ledger.ledger import Ledger
from tidemark.positions import encode_position
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

_RUNS = 3
_TOGETHER = how_many(usually=2, proving=_RUNS)
"""Runs of a delivery: of a history, and of the cases that share tables."""
_KINDS: Sequence[dict[str, Any]] = (
    {"history": True, "deletes": "soft"},
    {},
    {"history": True},
    {"deletes": "soft"},
)
_FIRST = {"id": "1", "line": "1", "name": "a", "note": "x", "amount": "1.00"}

Case = Callable[[Table], Delivery]
CASES: dict[str, Case] = {
    "in_one_run": lambda t: [[t.insert(1, **_FIRST), t.old(2, **_FIRST), t.new(2, id="1", name="b")]],
    "the_new_half_later": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.new(2, id="1", name="b")],
    ],
    "the_old_half_later": lambda t: [
        [t.insert(1, **_FIRST), t.new(2, id="1", name="b")],
        [t.old(2, **_FIRST)],
    ],
    "both_before_the_row": lambda t: [[t.old(2, **_FIRST)], [t.new(2, id="1", name="b")], [t.insert(1, **_FIRST)]],
    "the_old_half_sent_again": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST), t.new(2, id="1", name="b")],
        [t.old(2, **_FIRST)],
    ],
    "the_old_half_sent_again_with_the_new_one": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.old(2, **_FIRST), t.new(2, id="1", name="b")],
        [t.old(2, **_FIRST), t.new(2, id="1", name="b")],
    ],
    "the_new_half_sent_again_with_the_old_one": lambda t: [
        [t.insert(1, **_FIRST), t.new(2, id="1", name="b")],
        [t.old(2, **_FIRST), t.new(2, id="1", name="b")],
        [t.old(2, **_FIRST)],
    ],
    "a_newer_update_between": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.update(3, id="1", note="y")],
        [t.new(2, id="1", name="b")],
    ],
    "what_the_new_half_wrote_is_written_again": lambda t: [
        [t.insert(1, **_FIRST), t.new(2, id="1", name="b")],
        [t.update(3, id="1", name="c")],
        [t.old(2, **_FIRST)],
    ],
    "a_newer_delete_between": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.delete(3, **_FIRST)],
        [t.new(2, id="1", name="b")],
    ],
    "a_newer_truncate_between": lambda t: [
        [t.insert(1, **_FIRST), t.insert(2, **{**_FIRST, "id": "2"}), t.old(3, **_FIRST)],
        [t.truncate(4), t.update(5, id="1", note="y")],
        [t.new(3, id="1", name="b")],
    ],
    "all_of_them_around_a_truncate": lambda t: [
        [
            t.insert(1, **_FIRST),
            t.insert(2, **{**_FIRST, "id": "2"}),
            t.old(3, **_FIRST),
            t.insert(4, **{**_FIRST, "id": "5"}),
            t.new(5, id="6", name="b"),
            t.old(6, **{**_FIRST, "id": "9"}),
        ],
        [t.truncate(7), t.update(8, id="1", note="y"), t.insert(9, **{**_FIRST, "id": "5"})],
        [t.new(3, id="1", name="b"), t.old(5, **{**_FIRST, "id": "5"})],
    ],
    "another_key": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.new(2, id="2", name="b")],
        [t.update(3, id="2", note="y")],
    ],
    "another_key_the_old_half_later": lambda t: [
        [t.insert(1, **_FIRST), t.new(2, id="2", name="b")],
        [t.update(3, id="1", note="y")],
        [t.old(2, **_FIRST)],
    ],
    "another_key_and_the_row_is_whole_to_its_message": lambda t: [
        [t.insert(1, id="4", line="2", name="hat", note="blue", amount="7.50")],
        [
            t.old(2, id="4", line="2", name="hat", note="blue", amount="7.50"),
            t.new(2, id="9", line="2", name="cap", note="blue", amount="7.50"),
        ],
    ],
    "another_key_and_both_come_again_after_the_new_half": lambda t: [
        [t.insert(1, id="4", line="2", name="hat", note="blue", amount="7.50"), t.new(2, id="9", name="cap")],
        [t.old(2, id="4", name="hat"), t.new(2, id="9", name="cap")],
        [t.update(3, id="4", note="red")],
    ],
    "another_key_below_a_truncate_and_the_old_half_later": lambda t: [
        [t.insert(1, **_FIRST), t.new(2, id="2", name="b"), t.truncate(3), t.insert(4, **_FIRST)],
        [t.old(2, **_FIRST)],
    ],
    "another_key_and_both_sent_again": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST)],
        [t.old(2, **_FIRST), t.new(2, id="2", name="b")],
        [t.old(2, **_FIRST)],
    ],
    "an_old_half_alone": lambda t: [[t.insert(1, **_FIRST)], [t.old(2, **_FIRST)], [t.update(3, id="1", note="y")]],
    "an_old_half_of_a_row_never_seen": lambda t: [
        [t.insert(1, **{**_FIRST, "id": "2"}), t.old(2, **_FIRST)],
        [t.truncate(3)],
    ],
    "two_updates_crossed": lambda t: [
        [t.insert(1, **_FIRST), t.old(2, **_FIRST), t.new(3, id="1", note="z")],
        [t.new(2, id="1", name="b"), t.old(3, **{**_FIRST, "name": "b"})],
    ],
    "a_column_that_came_later": lambda t: [
        [t.insert(1, id="1", name="a"), t.old(2, id="1", name="a")],
        [t.insert(4, **{**_FIRST, "id": "2"}), t.update(3, id="1", note="y")],
        [t.new(2, id="1", name="b")],
    ],
}
_PROVED = {
    "a_newer_truncate_between",
    "another_key_below_a_truncate_and_the_old_half_later",
    "an_old_half_of_a_row_never_seen",
    "in_one_run",
}
"""Cases of ``make prove``, with tables of their own: one whose halves are never apart, and each with a TRUNCATE."""
_AROUND_A_TRUNCATE = "all_of_them_around_a_truncate"
_LAST_TWO = {
    "another_key",
    "another_key_and_both_come_again_after_the_new_half",
    "another_key_and_both_sent_again",
    "the_new_half_sent_again_with_the_old_one",
    "the_old_half_sent_again_with_the_new_one",
}
"""Cases of which ``make test`` has the last two runs as one: the halves come apart in the first two."""


def _source(name: str, landing: Path, tables: Mapping[str, Mapping[str, Any]]) -> Source:
    promised = {f"shop.{table}": {"key": ["id"], "columns": COLUMNS, **settings} for table, settings in tables.items()}
    promised["shop.*"] = {"key": ["id"], "columns": {"note": "string"}}
    fields = {"source": name, "format": "shareplex_json", "landing": str(landing / "*"), "tables": promised}
    return Source.model_validate({**fields, "max_deletes": 1, "max_quarantined": 1})


def _published(lake: Lake, source: str, table: str) -> list[Row]:
    return comparable(lake.load((source, table)).scan().to_arrow().to_pylist())


def _versions(lake: Lake, source: str, table: str) -> list[Row]:
    return comparable(lake.load(history(Identifier(source, table))).scan().to_arrow().to_pylist())


def _typed(row: Row) -> Row:
    numbers = {name: row.get(name) and int(row[name]) for name in ("id", "line")}
    return {**row, **numbers, "amount": row.get("amount") and Decimal(row["amount"])}


def _expected(changes: Sequence[Change], *, soft: bool) -> list[Row]:
    times = {encode_position(change.position): shareplex.at(change) for change in changes}
    if soft:
        folded = fold_softly(changes).get(changes[0].table, {}).values()
        rows = [{**row, "_cdc_position": encode_position(place), "_cdc_deleted": gone} for row, place, gone in folded]
    else:
        rows = list(fold(with_position(changes)).get(changes[0].table, {}).values())
    return comparable({**_typed(row), "_cdc_committed_at": times[row["_cdc_position"]]} for row in rows)


def _expected_versions(changes: Sequence[Change]) -> list[Row]:
    expected = versions(changes, shareplex.at).get(changes[0].table, [])
    return of_versions(expected, {change.position: shareplex.at(change) for change in changes}, _typed)


def _failing(
    deliveries: Mapping[str, Delivery],
    kinds: Mapping[str, Any],
    name: str,
    landing: Path,
    lake: Lake,
    others: Sequence[Sequence[bytes]] = (),
) -> Any:
    """Deliver histories as tables of one source; those that are not the model's, with what they are and should be.

    ``others`` are messages of tables beside them, run by run.
    """
    tables = {table: {"key": changes_of(runs)[0].key, **kinds[table]} for table, runs in deliveries.items()}
    source = _source(name, landing, tables)
    for run in range(max(len(others), *map(len, deliveries.values()))):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        for part in range(2):
            deliver(landing, f"{run}-{part}", map(shareplex.message, changes[part::2]))
        for messages in others[run : run + 1]:
            deliver(landing, f"{run}-others", messages)
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    assert_ledger_closes(lake, name)
    failing = {}
    for table, runs in deliveries.items():
        changes, settings = changes_of(runs), kinds[table]
        found = [_published(lake, name, table)]
        expected = [_expected(changes, soft="deletes" in settings)]
        if "history" in settings:
            found.append(_versions(lake, name, table))
            expected.append(_expected_versions(changes))
        if found != expected:
            failing[table] = (found, expected)
    return failing


_KEPT: Mapping[str, Mapping[str, Any]] = how_many(
    usually={"both": {"history": True, "deletes": "soft"}, "plain": {}},
    proving={"versions": {"history": True}, "softly": {"deletes": "soft"}},
)
_ANEW = {"another_key_and_both_come_again_after_the_new_half", "another_key_the_old_half_later"}
"""Cases that let their table be built anew. The table of the others goes on from run to run."""


def _kinds_of(case: str) -> Collection[str]:
    """Return the kinds of table for a case. One with a TRUNCATE takes its own table, a plain one in ``make test``."""
    if PROVING:
        return _KEPT
    return ("plain",) if case == _AROUND_A_TRUNCATE else ("both",)


def _shared(case: str, kept: str) -> str:
    """Return what cases have in common that share a table. Where no update is split, halves are settled otherwise."""
    if case.startswith("in_one_run"):
        return kept
    return f"{kept}_anew" if case in _ANEW else f"{kept}_split"


def _seated() -> tuple[dict[str, Delivery], dict[str, Any]]:
    """Return all cases by the tables that they share, and the settings of these tables."""
    tried = {
        name: in_two_runs(case(Table(name)), last=name in _LAST_TWO)
        for name, case in CASES.items()
        if PROVING or name not in _PROVED
    }
    names = {f"{name}_{kept}": (runs, kept, name) for name, runs in tried.items() for kept in _kinds_of(name)}
    alike = {each: _shared(name, kept) for each, (_, kept, name) in names.items()}
    seated = seats({name: runs for name, (runs, *_) in names.items()}, alike.__getitem__)
    deliveries: dict[str, Delivery] = {seat.table: [[] for _ in range(_TOGETHER)] for seat in seated.values()}
    for name, (runs, *_) in names.items():
        for run, changes in enumerate(seated[name].seated(runs, shareplex.beside)):
            deliveries[seated[name].table][run] += changes
    return deliveries, {seated[name].table: _KEPT[kept] for name, (_, kept, _) in names.items()}


class Halves(NamedTuple):
    """What became of updates whose halves landed in the runs of one source."""

    failing: Mapping[str, Any]
    """The tables that are not the model's."""
    held: int
    """Events of the first run that waited, of the table whose messages carry the size of a transaction."""
    counted: list[Row]
    dropped: list[Row]
    """What is published of that table, and of one that loses a column."""
    onward: set[str]
    """Tables with a history that no run built anew."""


@pytest.fixture(scope="module")
def halves(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Halves:
    """All cases, and beside them two tables whose updates have their new halves in the second run."""
    table = Table("dropped")

    def counted(op: str, seq: int, **data: str) -> bytes:
        meta = {"op": op, "table": "shop.counted", "scn": 100, "seq": seq, "size": 2, "trans": "t"}
        return json.dumps({"meta": meta, "data": data}).encode()

    first = [counted("ins", 1, id="1", name="a", note="x"), counted("UPDATE BEFORE", 2, id="1", name="a")]
    first += map(shareplex.message, [table.insert(1, **_FIRST), table.old(2, **_FIRST)])
    gone = {"meta": {"op": "DROP COLUMN", "table": "shop.dropped", "scn": "3", "seq": 1}, "data": {"note": None}}
    new = shareplex.message(table.new(2, id="2", name="b"))
    others = [first, [counted("UPDATE AFTER", 2, id="1", name="b"), json.dumps(gone).encode(), new]]
    deliveries, kinds = _seated()
    failing = _failing(deliveries, kinds, "halves", tmp_path_factory.mktemp("halves"), lake, others)
    counts = Ledger(lake, "halves").tables()
    held = sum(row.held for row in counts if (row.object, row.cut) == ("shop.counted", 1))
    rebuilt = {row.object for row in counts if row.rebuilt}
    onward = {table for table, settings in kinds.items() if "history" in settings and f"shop.{table}" not in rebuilt}
    rows = [lake.load(("halves", name)).scan().to_arrow().to_pylist() for name in ("counted", "dropped")]
    return Halves(failing, held, *rows, onward)


@pytest.mark.more
def test_halves_in_any_runs_are_one_update(halves: Halves) -> None:
    """Each case comes to the rows and versions of the model, and to the deleted rows, which stay.

    In all runs but the first, a history of most cases goes on from the one before.
    """
    assert halves.failing == {}
    assert halves.onward


@pytest.mark.more
def test_an_old_half_waits_for_the_new_one_where_the_size_is_told(halves: Halves) -> None:
    """The transaction is open until then: nothing of it is published, so no reader misses the row."""
    assert halves.held == 2
    (row,) = halves.counted
    assert (row["name"], row["note"]) == ("b", "x")


@pytest.mark.more
def test_an_old_half_from_before_a_column_was_dropped(halves: Halves) -> None:
    """It is read by the names that were valid where it stands: it has another key, so the row stays as it was."""
    (row,) = halves.dropped
    assert (row["id"], row["name"], row["amount"], "note" in row) == ("1", "a", "1.00", False)


_TABLES, _SIDE_BY_SIDE = 12, 12


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(20261124, 20261124 + 1000 * ROUNDS, 1000))
def test_any_delivery_of_halves_gives_the_model(seed: int, spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Histories in any order, cut into runs, sent again: rows, deleted rows and versions are the model's."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    made = {
        f"t{number}": shareplex.several(f"t{number}", seed + number, 1 if number % 3 == 0 else _SIDE_BY_SIDE)
        for number in range(_TABLES)
    }
    kinds = {name: _KINDS[number % len(_KINDS)] for number, name in enumerate(made)}
    deliveries = {name: mixed(dice, changes, dice.randint(1, _RUNS)) for name, changes in made.items()}
    failing = _failing(deliveries, kinds, f"halves_{seed}", tmp_path / "all", lake)
    if failing:
        name = next(iter(failing))
        runs = shrunk(
            deliveries[name],
            lambda tries, step: list(
                _failing(
                    tries,
                    dict.fromkeys(tries, kinds[name]),
                    f"halves_shrunk_{seed}_{step}",
                    tmp_path / "shrunk" / str(step),
                    lake,
                )
            ),
        )
        events = "\n".join(
            f"run {number}: {shareplex.message(change).decode()}" for number, run in enumerate(runs) for change in run
        )
        pytest.fail(f"seed {seed}, tables {list(failing)}; {name}, {kinds[name]}, with the fewest events:\n{events}")
