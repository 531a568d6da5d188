"""Initial loads under and over increments: a second complete one replaces what came before it, whenever it arrives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, Table, deliver, message, mixed, reloaded, several
from support.reference import Change, Row, fold, fold_softly, versions
from support.rounds import how_many, in_two_runs
from support.running import assert_ledger_closes, run_all
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.positions import Position
from tidemark.queries.explain import explain
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.schemas import COMMITTED_AT, DELETED

pytestmark = pytest.mark.spark

Make = Callable[..., Source]
KINDS: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "soft": {"deletes": "soft"},
    "history": {"history": True},
    "bag": {"key": []},
}
_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When all messages say that they were committed."""


class Case(NamedTuple):
    """Changes of one table, run by run, and the rows that they must lead to."""

    name: str
    runs: list[list[Change]]
    rows: list[tuple[Any, ...]]
    bag: bool = True
    """Whether the same is true of the table without its key."""


def _case(name: str, build: Callable[[Table], Sequence[Any]]) -> Case:
    return Case(name, *build(Table(name)))


A, B, C = (1, "a", "x"), (2, "b", "x"), (3, "c", "x")
NEW = (1, "new", "y")
CASES = [
    _case("a_second_load_replaces_the_first", lambda t: ([t.load(10, A, B), t.load(50, NEW, C)], [NEW, C])),
    _case(
        "rows_deleted_in_between_are_gone",
        lambda t: ([[*t.load(10, A), t.insert(20, *B), t.insert(21, *C)], t.load(50, A, B)], [A, B]),
    ),
    _case(
        "all_around_two_loads",
        lambda t: (
            [
                [*t.load(10, A, B, (4, "d", "x")), t.insert(20, 5, "e", "x"), t.update(30, 4, "c", ...)],
                [
                    *t.load(50, NEW, C, (4, "d", "x"), (6, "f", "x")),
                    t.delete(52, 6, "f", "x"),
                    t.insert(54, 7, "g", "x"),
                ],
                [
                    t.insert(21, 8, "h", "x"),
                    t.update(31, 9, "b", "x", was=(2,)),
                    t.update(32, 1, "late", ...),
                    t.update(60, 2, "part", ...),
                    t.update(61, 3, "part", ...),
                ],
            ],
            [NEW, (2, "part", None), (3, "part", "x"), (4, "d", "x"), (7, "g", "x")],
            False,
        ),
    ),
    _case(
        "changes_of_whole_rows_around_two_loads",
        lambda t: (
            [
                [*t.load(10, A, B), t.insert(20, *C)],
                [*t.load(50, A, B), t.delete(52, *B), t.insert(54, 4, "d", "x")],
                [t.insert(21, 5, "e", "x"), t.update(30, *NEW)],
            ],
            [A, (4, "d", "x")],
        ),
    ),
    _case("both_in_one_run", lambda t: ([[*t.load(50, NEW), *t.load(10, A, B)]], [NEW])),
    _case("the_second_lands_first", lambda t: ([t.load(50, NEW), t.load(10, A, B)], [NEW])),
    _case(
        "row_by_row_over_runs",
        lambda t: (
            [t.load(10, A, B, C)[1:], *([row] for row in reversed(t.load(50, NEW, C)))],
            [NEW, C],
        ),
    ),
    _case(
        "a_restarted_load_replaces_its_first_attempt",
        lambda t: ([t.load(10, A, B), t.load(12, A, C)], [A, C]),
    ),
    _case("a_third_load", lambda t: ([t.load(10, A), t.load(70, C), t.load(50, B)], [C])),
    _case(
        "changes_before_the_first_load_stay",
        lambda t: ([[t.insert(5, *B)], t.load(10, A)], [A, B]),
    ),
    _case(
        "changes_that_come_late_are_older_than_the_load",
        lambda t: ([t.load(10, A), t.load(50, A), [t.insert(20, *B), t.update(30, *NEW)]], [A]),
    ),
    _case(
        "changes_during_the_load_come_first",
        lambda t: (
            [t.load(10, A, B), [t.delete(52, *B), t.update(53, *NEW), t.insert(54, *C)], t.load(50, A, B)],
            [NEW, C],
            False,
        ),
    ),
    _case(
        "changes_during_the_load_come_in_its_run",
        lambda t: ([t.load(10, A), [*t.load(50, A, B), t.delete(52, *B), t.insert(54, *C)]], [A, C]),
    ),
    _case(
        "the_table_was_empty_at_the_first_load",
        lambda t: ([[t.insert(20, *A), t.insert(21, *B)], t.load(50, B)], [B]),
    ),
    _case(
        "a_load_of_another_key_than_a_late_change",
        lambda t: ([t.load(10, A), t.load(50, B), [t.update(30, 2, "a", "x", was=(1,))]], [B]),
    ),
    _case(
        "a_truncate_over_a_load",
        lambda t: ([[*t.load(10, A), t.truncate(60)], [*t.load(50, B), t.insert(70, *C)]], [C]),
    ),
    _case(
        "a_load_over_a_truncate",
        lambda t: ([[*t.load(10, A), t.insert(40, *C)], t.load(50, B), [t.truncate(30)]], [B]),
    ),
    _case(
        "a_late_partial_image_patches_nothing",
        lambda t: ([t.load(10, A), t.load(50, A, B), [t.update(30, 1, "late", ...)]], [A, B], False),
    ),
    _case(
        "a_row_written_in_parts_is_replaced",
        lambda t: ([t.load(10, A), [t.update(30, 1, "c", ...), t.update(31, 2, "d", ...)], t.load(50, A)], [A], False),
    ),
    _case(
        "a_partial_image_over_the_second_load",
        lambda t: ([t.load(10, A, B), [t.update(60, 1, "c", ...)], t.load(50, NEW)], [(1, "c", "y")], False),
    ),
    _case(
        "a_partial_image_over_a_load_without_its_row",
        lambda t: ([t.load(10, A), [t.update(60, 1, "c", ...)], t.load(50, B)], [(1, "c", None), B], False),
    ),
]
CASES = how_many(
    usually=[
        case
        for case in CASES
        if case.name
        in {
            "all_around_two_loads",
            "changes_of_whole_rows_around_two_loads",
            "the_second_lands_first",
            "changes_during_the_load_come_first",
            "a_load_over_a_truncate",
        }
    ],
    proving=CASES,
)
"""A load takes a table of its own: ``make test`` has several changes in one, and ``make prove`` each by itself too."""


def _source(name: str, landing: Path) -> Source:
    tables = {"shop.*_bag": {"key": [], "columns": COLUMNS}, "shop.*": {"key": ["id"], "columns": COLUMNS}}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


_AROUND_TWO_LOADS = "changes_of_whole_rows_around_two_loads"
"""In ``make test`` its second load, which comes with the third run, meets rows of the first."""
BAGS = how_many(
    usually={"the_second_lands_first", _AROUND_TWO_LOADS},
    proving={case.name for case in CASES if case.bag},
)
"""Cases that also have a table without a key."""


def _as_bag(change: Change) -> Change:
    return change._replace(table=f"{change.table}_bag", key=())


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases as tables of one source, with the key and without; its first load is the load of ``anchor``."""
    landing = tmp_path_factory.mktemp("loads")
    source = _source("loads", landing)
    reports = []
    delivered = {case.name: in_two_runs(case.runs, last=case.name == _AROUND_TWO_LOADS) for case in CASES}
    for run in range(max(map(len, delivered.values()))):
        changes = Table("anchor").load(10, A, B) if run == 0 else []
        for name, runs in delivered.items():
            case_changes = runs[run] if run < len(runs) else []
            changes += case_changes
            changes += map(_as_bag, case_changes if name in BAGS else [])
        incremental = [_incremental(change) for change in INCREMENTAL[run]] if run < len(INCREMENTAL) else []
        deliver(landing, f"{run}", [*map(message, changes), *incremental])
        reports.append(run_all(source))
    return reports


INCREMENTAL = [Table("incremental").load(10, A, B), Table("incremental").load(50, NEW)]


def _incremental(change: Change) -> bytes:
    """A row of a load that reads a table in parts, beside its changes."""
    return message(change).replace(b'"snapshot": "true"', b'"snapshot": "incremental"')


def _rows(lake: Lake, source: str, table: str) -> list[Row]:
    rows = lake.load((source, table)).scan().to_arrow().to_pylist()
    return _comparable(row for row in rows if not row.get(DELETED))


def _comparable(rows: Iterable[Row]) -> list[Row]:
    """Rows without their positions: of a row of a load its place in the dump is a part."""
    return sorted(
        ({name: None if row.get(name) is None else str(row[name]) for name in COLUMNS} for row in rows), key=repr
    )


@pytest.mark.more
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_is_what_its_loads_and_changes_lead_to(
    case: Case, cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Every case publishes the rows written beside it, with a key and without, and the model agrees."""
    expected = _as_published(*case.rows)
    delivered = [*Table("anchor").load(10, A, B), *(change for run in case.runs for change in run)]
    assert _comparable(fold(delivered)[case.name].values()) == expected
    assert _rows(lake, "loads", case.name) == expected
    if case.bag:
        assert _comparable(fold(map(_as_bag, delivered))[f"{case.name}_bag"].values()) == expected
    if case.name in BAGS:
        assert _rows(lake, "loads", f"{case.name}_bag") == expected


def test_no_run_held_anything_back(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No table stopped, and every event is accounted for."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    assert_ledger_closes(lake, "loads")


def test_the_first_load_is_as_cheap_as_any_insert(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """One commit after the empty one that its branch began with, and nothing that later runs had to mind."""
    assert len(lake.load(("loads", "anchor")).snapshots()) == 2
    assert lake.load(("state", "loads__anchor")).scan().to_arrow().num_rows == 0


def test_a_lost_row_says_which_load_replaced_it(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Explain shows the load as a TRUNCATE, at the place that one of its rows came from."""
    inserted, emptied = explain(lake, "loads.changes_of_whole_rows_around_two_loads", ["id=3"]).chapters
    assert (inserted.step.operation, emptied.step.operation) == ("INSERT", "TRUNCATE")
    assert emptied.step.file.endswith("/1.json")
    assert (inserted.outcome, emptied.outcome) == ("superseded", "stands")


@pytest.mark.prove
def test_a_rebuilt_table_is_the_same(cases: list[dict[str, StageReport]], lake: Lake, tmp_path: Path) -> None:
    """From the whole change log, loads and all."""
    source = _source("loads", tmp_path)
    names = ["all_around_two_loads", "the_second_lands_first"]
    before = {name: _rows(lake, "loads", name) for name in names}
    for name in names:
        run_stage("rebuild", source, table=f"shop.{name}")
    for stage in ("compact", "check", "publish"):
        assert run_stage(stage, source, None, None).problems == ()
    assert {name: _rows(lake, "loads", name) for name in names} == before


def test_a_load_replaces_once_an_earlier_one_is_known(source: Make, spark: SparkSession, lake: Lake) -> None:
    """The source's first load may be one of another table, and land after the second one."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": COLUMNS}})
    one, other = Table("one"), Table("other")
    found = []
    for number, changes in enumerate([[one.insert(20, *A), *one.load(50, B)], other.load(10, A, C)]):
        deliver(Path(shop.landing).parent, f"{number}", map(message, changes))
        run_all(shop)
        found.append([row["id"] for row in _rows(lake, shop.source, "one")])
    assert found == [["1", "2"], ["2"]]
    assert_ledger_closes(lake, shop.source)


def test_an_incremental_load_replaces_nothing(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Its rows are put over those that are there."""
    assert _rows(lake, "loads", "incremental") == _as_published(NEW, B)


@pytest.mark.prove
def test_a_partial_load_replaces_nothing(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Nor does any load where the source file says that they are partial."""
    fields = {"options": {"loads": "partial"}, "tables": {"shop.*": {"key": ["id"], "columns": COLUMNS}}}
    shop = source("debezium_json", **fields)
    for number, changes in enumerate([Table("one").load(10, A, B), Table("one").load(50, NEW)]):
        deliver(Path(shop.landing).parent, f"{number}", map(message, changes))
        run_all(shop)
    assert _rows(lake, shop.source, "one") == _as_published(NEW, B)


def _as_published(*rows: tuple[Any, ...]) -> list[Row]:
    return _comparable(dict(zip(("id", "name", "note"), row, strict=True)) for row in rows)


_ALIKE = how_many(usually=("soft",), proving=("plain", "soft", "bag"))
"""Kinds of table for which the rules of loads are the same; ``CASES`` cover plain tables and bags."""


_PLACED = how_many(usually=("plain",), proving=_ALIKE)
"""The same for rows that have places of their own."""


def _of_each_kind(build: Callable[[Table], Iterable[Change]], kinds: Iterable[str]) -> list[Change]:
    """The same changes in a table of each kind, called by its kind."""
    return [change for kind in kinds for change in build(Table(kind, () if kind == "bag" else ("id",)))]


def _kinds(source: Make, kinds: Iterable[str], **fields: Any) -> Source:
    tables = {f"shop.{kind}": {"key": ["id"], "columns": COLUMNS, **KINDS[kind]} for kind in kinds}
    return source("debezium_json", tables=tables, **fields)


@pytest.mark.more
def test_rows_at_places_of_their_own(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Nothing shows which of them are one load; copies of one row make no load. Two rows at one place do."""
    shop = _kinds(source, _PLACED, max_deletes=1)
    # Rows of several tables at one place would make a load as well.
    first = {kind: 100 * number for number, kind in enumerate(_PLACED)}
    runs: list[Callable[[Table], list[Change]]] = [
        lambda t: [*t.load(first[t.name] + 10, A), *t.load(first[t.name] + 11, B)],
        lambda t: 2 * t.load(first[t.name] + 50, NEW),
        lambda t: t.load(first[t.name] + 50, C),
    ]
    found: dict[str, list[list[tuple[Any, ...]]]] = {kind: [] for kind in _PLACED}
    for number, build in enumerate(runs):
        deliver(Path(shop.landing).parent, f"{number}", map(message, _of_each_kind(build, _PLACED)))
        run_all(shop)
        for kind in _PLACED:
            rows = lake.load((shop.source, kind)).scan().to_arrow().to_pylist()
            found[kind].append(sorted({(row["id"], row["name"]) for row in rows if not row.get(DELETED)}))
    old, new, last = [A[:2], B[:2]], [NEW[:2]], [NEW[:2], C[:2]]
    keyed, bag = [old, [*new, old[1]], last], [old, sorted([*old, *new]), last]
    assert found == {kind: bag if kind == "bag" else keyed for kind in _PLACED}


@pytest.mark.more
def test_half_a_load_waits_for_the_rest(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Rows count that the load does not bring again: half a load is held, the whole is published by itself."""
    shop = _kinds(source, _ALIKE, max_deletes=0.5)
    fourth = (4, "d", "x")

    def run(name: str, build: Callable[[Table], Iterable[Change]]) -> tuple[str, dict[str, int]]:
        deliver(Path(shop.landing).parent, name, map(message, _of_each_kind(build, _ALIKE)))
        for stage in ("land", "normalize", "compact", "check"):
            run_stage(stage, shop, None, None)
        ledger = Ledger(lake, shop.source)
        cut = ledger.last_cut()
        assert cut is not None
        failed = {row.target for row in ledger.checks(equals("cut", cut.cut)) if not row.success}
        assert failed == ({f"{shop.source}.{kind}" for kind in _ALIKE} if name == "b" else set())
        rows = ledger.tables(equals("cut", cut.cut))
        return cut.state, {row.object.removeprefix("shop."): row.deleted or 0 for row in rows}

    assert run("a", lambda t: t.load(10, A, B, C, fourth)) == (CutState.CHECKED, dict.fromkeys(_ALIKE, 0))
    run_stage("publish", shop, None, None)
    half, rest = (lambda t: t.load(50, NEW, B, C)[:1]), (lambda t: t.load(50, NEW, B, C)[1:])
    assert run("b", half) == (CutState.AWAITING_APPROVAL, dict.fromkeys(_ALIKE, 3))
    assert run("c", rest) == (CutState.CHECKED, dict.fromkeys(_ALIKE, 1))
    run_stage("publish", shop, None, None)
    for kind in _ALIKE:
        assert sorted(row["id"] for row in _rows(lake, shop.source, kind)) == ["1", "2", "3"]


_RUNS, _HISTORIES = 3, 9


@pytest.mark.prove
def test_any_delivery_of_loads_gives_what_the_model_gives(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Histories with loads in them, any order, cut into runs, sent again; with soft deletes and with history too.

    A row of a load that is sent again is one more version, as its place in the dump is another: not sent to histories.
    """
    seed = 20261121
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    kinds = ("plain", "soft", "history")
    made = {f"t{n}": reloaded(dice, several(f"t{n}", seed + n, 4)) for n in range(_HISTORIES)}
    tables = {
        f"shop.{name}": {"key": changes[0].key, "columns": COLUMNS, **KINDS[kinds[n % len(kinds)]]}
        for n, (name, changes) in enumerate(made.items())
    }
    fields = {"source": "loads_generated", "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate(fields)
    cuts = {name: dice.randint(1, _RUNS) for name in made}
    deliveries = {name: mixed(dice, changes, cuts[name]) for name, changes in made.items()}
    for name in list(made)[2::3]:
        deliveries[name] = _loaded_once(deliveries[name])
    for run in range(_RUNS):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        deliver(tmp_path, f"{run}", map(message, changes))
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    assert_ledger_closes(lake, "loads_generated")
    every = [change for changes in made.values() for change in changes]
    rows, softly, kept = fold(every), fold_softly(every), versions(every, lambda _: _AT)
    without = fold(change._replace(load=None) for change in every)
    assert sum(rows[name] != without[name] for name in made) >= _HISTORIES // 2, "loads that matter"
    for n, name in enumerate(made):
        assert _rows(lake, "loads_generated", name) == _comparable(rows.get(name, {}).values()), name
        if n % len(kinds) == 1:
            found = lake.load(("loads_generated", name)).scan().to_arrow().to_pylist()
            expected = [(key, gone) for key, (_, _, gone) in softly.get(name, {}).items()]
            assert sorted((tuple(row[k] for k in made[name][0].key), row[DELETED]) for row in found) == sorted(expected)
        if n % len(kinds) == 2:
            found = lake.load(history(Identifier("loads_generated", name))).scan().to_arrow().to_pylist()
            assert _spans(found) == _spans(
                {**each.row, "valid_to": each.valid_to, COMMITTED_AT: _AT} for each in kept.get(name, [])
            )


def _loaded_once(runs: list[list[Change]]) -> list[list[Change]]:
    seen: set[Position] = set()
    kept: list[list[Change]] = [[] for _ in runs]
    for number, run in enumerate(runs):
        for change in run:
            if change.load is None or change.position not in seen:
                kept[number].append(change)
                seen.add(change.position)
    return kept


def _spans(rows: Iterable[Row]) -> list[Any]:
    found = [({**_comparable([row])[0]}, row["valid_to"] is None, row[COMMITTED_AT]) for row in rows]
    return sorted(found, key=repr)
