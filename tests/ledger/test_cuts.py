"""Cuts without Spark: every state, and every window in which a publish, a restore or a new cut may be killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.table import Table
from pyiceberg.types import LongType

from support.hand_built import SCHEMA, TABLES, Source
from support.rounds import crash_windows
from support.running import die_at
from tidemark.errors import ConfigurationError, PublishConflictError
from tidemark.lake import branches, names, other_writers, pending_schema, purging
from tidemark.lake.branches import BRINGS, branch_from_main, cut_tags, drop_branch, head
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, candidate_branch, cut_tag, moved_together
from tidemark.lake.properties import OBJECT_PROPERTY
from tidemark.ledger import cuts, restoring
from tidemark.ledger.contradiction_rows import MISSING_ROWS, ContradictionRow
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState


@pytest.fixture
def shop(lake: Lake) -> Source:
    """Return a source of this test's own."""
    return Source(lake)


def test_a_published_cut_moves_every_table(shop: Source) -> None:
    """Readers see the rows of the cut, both tables have its tag, and no candidate is left."""
    shop.ledger.request_rebuild(["two"])
    shop.build(1)
    rows = shop.ledger.tables()
    asked = shop.ledger.rebuild_requests()["two"]
    answered = [msgspec.structs.replace(row, rebuilt=asked) if row.rebuilt else row for row in rows]
    shop.ledger.replace(TableRow, answered, equals("cut", 1))
    cuts.publish(shop.lake, shop.ledger, shop.ledger.cuts()[0])
    assert shop.seen() == {
        "rows": {"one": [1], "two": [1]},
        "refs": {
            str(identifier): ["cut_1", "main"] for table in TABLES for identifier in moved_together(shop.target(table))
        },
        "cuts": {1: CutState.PUBLISHED},
        "tables": {(1, "one"): TableState.PUBLISHED, (1, "two"): TableState.PUBLISHED},
        "requests": {},
    }


WINDOWS = {
    "before_it_is_written_ahead": ("tidemark.ledger.cuts.set_state", 1),
    "before_the_first_table": ("tidemark.ledger.cuts.fast_forward", 1),
    "between_table_and_state": ("tidemark.ledger.cuts.fast_forward", 2),
    "between_two_tables": ("tidemark.ledger.cuts.fast_forward", 3),
    "before_the_rows_are_written": ("tidemark.ledger.ledger.Ledger.replace", 2),
    "before_requests_are_answered": ("tidemark.ledger.ledger.Ledger.answered", 1),
    "before_it_is_known": ("tidemark.ledger.cuts.set_state", 2),
}


@pytest.fixture(scope="module")
def published(lake: Lake) -> str:
    """Return what a publish leaves that nobody kills."""
    clean = Source(lake)
    clean.publish(1)
    return repr(clean.seen()).replace(clean.name, "SOURCE")


@pytest.mark.parametrize("window", crash_windows(WINDOWS, usually={"between_two_tables", "before_it_is_known"}))
def test_a_killed_publish_is_finished(
    shop: Source, published: str, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """Whoever comes next finishes a cut that was written ahead, to what a publish that nobody kills leaves."""
    cut = shop.build(1)
    with monkeypatch.context() as patched:
        die_at(patched, *WINDOWS[window])
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    if window == "before_it_is_written_ahead":
        assert shop.rows("one") == []
        cuts.publish(shop.lake, shop.ledger, cut)
    cuts.finish(shop.lake, shop.ledger)
    assert repr(shop.seen()).replace(shop.name, "SOURCE") == published
    cuts.finish(shop.lake, shop.ledger)
    assert repr(shop.seen()).replace(shop.name, "SOURCE") == published


def test_a_stopped_table_stays_and_keeps_its_request(shop: Source) -> None:
    """The other table moves; the stopped one shows what it did, says why, and is still to be built again."""
    shop.publish(1)
    shop.ledger.request_rebuild(["one", "two"])
    asked, cut = shop.ledger.rebuild_requests(), shop.build(2, stopped="two")
    rows = [msgspec.structs.replace(row, rebuilt=asked[row.object]) for row in cuts.tables_of(shop.ledger, 2)]
    shop.ledger.replace(TableRow, rows, equals("cut", 2))
    cuts.publish(shop.lake, shop.ledger, cut)
    assert shop.ledger.rebuild_requests() == {"two": asked["two"]}
    assert (shop.rows("one"), shop.rows("two")) == ([1, 2], [1])
    stands = shop.ledger.published_tables()
    assert (stands["one"].state, stands["two"].state, stands["two"].reason) == ("published", "stopped", "why")
    assert {name: row.cut for name, row in cuts.shown_by(shop.ledger, 2).items()} == {
        f"{shop.name}.one": 2,
        f"{shop.name}.two": 1,
    }


def test_a_cut_without_a_candidate_is_built_again(shop: Source) -> None:
    """Nothing has moved, so the cut is dropped, and its number is not given again."""
    cut = shop.build(1)
    drop_branch(shop.lake.load(shop.target("two")), candidate_branch(1))
    with pytest.raises(PublishConflictError, match=r"two: the branch candidate_1 is gone: run compact again"):
        cuts.publish(shop.lake, shop.ledger, cut)
    assert shop.rows("one") == []
    assert [row.state for row in shop.ledger.cuts()] == [CutState.REPLACED]
    assert cuts.next_number(shop.lake, shop.ledger) == 2


def test_a_candidate_that_somebody_wrote_to_is_not_published(shop: Source) -> None:
    """No check judged what stands there now, also where a person approves the cut."""
    shop.publish(1)
    cut, branch = shop.build(2), candidate_branch(2)
    table = shop.lake.load(shop.target("one"))
    rows = [
        msgspec.structs.replace(row, snapshot=head(shop.lake.load(row.identifier), branch))
        for row in cuts.tables_of(shop.ledger, 2)
    ]
    shop.ledger.replace(TableRow, rows, equals("cut", 2))
    table.append(pa.table({"id": [666]}, SCHEMA), branch=branch)
    with pytest.raises(PublishConflictError, match=r"one: the branch candidate_2 moved since compact built it"):
        cuts.publish(shop.lake, shop.ledger, cut)
    assert shop.rows("one") == shop.rows("two") == [1]
    assert cuts.next_number(shop.lake, shop.ledger) == 3


@pytest.mark.parametrize(
    ("where", "begun"),
    [
        ("the_table", False),
        ("its_state", True),
        pytest.param("the_table", True, marks=pytest.mark.prove),
        pytest.param("its_state", False, marks=pytest.mark.prove),
    ],
)
def test_a_column_that_another_writer_renames_before_publish_is_no_part_of_the_cut(
    shop: Source, monkeypatch: pytest.MonkeyPatch, where: str, *, begun: bool
) -> None:
    """The next compact finds it, as it finds one from before: publishing did not note it as Tidemark's own."""
    shop.publish(1)
    cut = shop.build(2)
    if begun:
        with monkeypatch.context() as patched:
            die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
            with pytest.raises(SystemExit):
                cuts.publish(shop.lake, shop.ledger, cut)
    target, state = moved_together(shop.target("two"))
    table = shop.lake.load(target if where == "the_table" else state)
    with table.update_schema() as change:
        change.rename_column("id", "number")
    if begun:
        cuts.finish(shop.lake, shop.ledger)
        assert shop.rows("one") == [1, 2]
    else:
        with pytest.raises(PublishConflictError, match=r"column 'id' is called 'number': run compact again"):
            cuts.publish(shop.lake, shop.ledger, cut)
        assert shop.rows("one") == [1]
    assert shop.ledger.cuts(equals("cut", 2))[0].state == CutState.REPLACED
    assert "column 'id' is called 'number'" in (other_writers.changes(table.refresh()) or "")


def test_a_rebuilt_candidate_undoes_what_another_writer_did_to_the_columns(shop: Source) -> None:
    """It brings its schema along."""
    shop.publish(1)
    table, cut = shop.lake.load(shop.target("one")), shop.build(2)
    schema = table.schema().schema_id
    with table.update_schema() as change:
        change.rename_column("id", "number")
    table.refresh().append(
        pa.table({"number": [9]}, pa.schema([("number", pa.int64())])),
        snapshot_properties={BRINGS: "{}"},
        branch=candidate_branch(2),
    )
    cuts.publish(shop.lake, shop.ledger, cut)
    assert table.refresh().schema().schema_id == table.current_snapshot().schema_id != schema


def test_a_candidate_that_goes_between_two_tables_is_a_conflict(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tables show the cut already: a person has to put the branch back, and then it is finished."""
    cut = shop.build(1)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    lost = shop.lake.load(shop.target("two"))
    snapshot = head(lost, candidate_branch(1))
    drop_branch(lost, candidate_branch(1))
    with pytest.raises(PublishConflictError, match="other tables of cut 1 are published already"):
        cuts.finish(shop.lake, shop.ledger)
    with shop.lake.load(shop.target("two")).manage_snapshots() as refs:
        refs.create_branch(snapshot, candidate_branch(1))
    cuts.finish(shop.lake, shop.ledger)
    assert (shop.rows("one"), shop.rows("two")) == ([1], [1])


def _partitioned_by_its_owner(shop: Source) -> None:
    """Let the history of the second table be partitioned by the column that cut 2 drops from it."""
    history = shop.lake.load(names.history(shop.target("two")))
    with history.update_spec() as update:
        update.add_identity("region")


def _named_as_a_column_to_come(shop: Source) -> None:
    """Let the second table have a column of the name that cut 2 gives to another one."""
    with shop.lake.load(shop.target("two")).update_schema() as update:
        update.add_column("number", LongType())


def _build_with_changes(shop: Source) -> CutRow:
    """Build cut 2, which drops a column from the history of the second table, and renames one of the table itself."""
    table, history = shop.lake.load(shop.target("two")), names.history(shop.target("two"))
    kept = shop.lake.ensure(history, pa.schema([("id", pa.int64()), ("region", pa.string())]), {})
    cut = shop.build(2)
    pending_schema.plan_pending(table.refresh(), 2, {"id": "number"}, {})
    branch_from_main(pending_schema.plan_pending(kept, 2, {"region": None}, {}), candidate_branch(2))
    return cut


PARTITIONED = r"two__history cannot get the columns of cut 2: .* partition field: .* region"
NAMED = r"two cannot get the columns of cut 2: .* multiple fields for name number"


@pytest.mark.parametrize(
    ("done", "reason", "begun"),
    [
        pytest.param(_partitioned_by_its_owner, PARTITIONED, True, id="partitions-begun"),
        pytest.param(_named_as_a_column_to_come, NAMED, False, id="name-not_begun"),
        pytest.param(_partitioned_by_its_owner, PARTITIONED, False, id="partitions-not_begun", marks=pytest.mark.prove),
        pytest.param(_named_as_a_column_to_come, NAMED, True, id="name-begun", marks=pytest.mark.prove),
    ],
)
def test_a_cut_whose_columns_a_table_cannot_get_is_built_again(
    shop: Source, monkeypatch: pytest.MonkeyPatch, done: Callable[[Source], None], reason: str, *, begun: bool
) -> None:
    """Nothing moves for it. Where tables have moved already, the next compact goes on from there, or a restore back."""
    shop.publish(1)
    cut = _build_with_changes(shop)
    if begun:
        with monkeypatch.context() as patched:
            die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
            with pytest.raises(SystemExit):
                cuts.publish(shop.lake, shop.ledger, cut)
    done(shop)
    if begun:
        cuts.finish(shop.lake, shop.ledger)
    else:
        with pytest.raises(PublishConflictError, match=reason):
            cuts.publish(shop.lake, shop.ledger, cut)
    assert (shop.rows("one"), shop.rows("two")) == ([1, 2] if begun else [1], [1])
    assert shop.ledger.cuts(equals("cut", 2))[0].state == CutState.REPLACED
    assert restoring.restore(shop.lake, shop.ledger, 1) == 2
    assert (shop.rows("one"), shop.rows("two")) == ([1], [1])
    assert cuts.next_number(shop.lake, shop.ledger) == 3


def _rewritten(shop: Source, identifier: Identifier) -> None:
    """Move ``main`` of a table, as an engine that rewrites its files does."""
    shop.lake.load(identifier).append(pa.table({"id": []}, SCHEMA))


def _moved_candidate(shop: Source, identifier: Identifier) -> None:
    """Add to the candidate of a table what no check judged."""
    shop.lake.load(identifier).append(pa.table({"id": [9]}, SCHEMA), branch=candidate_branch(2))


@pytest.mark.parametrize(
    ("moves", "done", "table", "again"),
    [
        pytest.param(1, _rewritten, 1, ["one"], id="state", marks=pytest.mark.prove),
        pytest.param(3, _rewritten, 3, ["two"], id="state_of_the_second"),
        pytest.param(2, _rewritten, 2, [], id="between_tables"),
        pytest.param(1, _moved_candidate, 2, ["one"], id="candidate_of_another"),
    ],
)
def test_a_table_that_moved_without_its_state_is_built_again(
    shop: Source,
    monkeypatch: pytest.MonkeyPatch,
    moves: int,
    done: Callable[[Source, Identifier], None],
    table: int,
    again: list[str],
) -> None:
    """Without it, nothing tells which events the rows hold. A table that moved whole, or not at all, goes on."""
    shop.publish(1)
    cut = shop.build(2)
    moved = [each for name in TABLES for each in moved_together(shop.target(name))]
    rows = [
        msgspec.structs.replace(row, snapshot=head(shop.lake.load(row.identifier), candidate_branch(2)))
        for row in cuts.tables_of(shop.ledger, 2)
    ]
    shop.ledger.replace(TableRow, rows, equals("cut", 2))
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", moves + 1)
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    done(shop, moved[table])
    cuts.finish(shop.lake, shop.ledger)
    assert shop.ledger.cuts(equals("cut", 2))[0].state == CutState.REPLACED
    assert sorted(shop.ledger.rebuild_requests()) == again


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_table_that_moved_with_a_rename_is_built_again(
    shop: Source, monkeypatch: pytest.MonkeyPatch, *, with_rows: bool
) -> None:
    """The ledger says that it stands at the cut before, so the next compact would rename by the names of now.

    So too where the cut has a statement for it and no event, and so no snapshot of its own.
    """
    shop.publish(1)
    cut = shop.build(2)
    one = shop.lake.load(shop.target("one"))
    if not with_rows:
        drop_branch(one, candidate_branch(2))
        branch_from_main(one, candidate_branch(2))
    pending_schema.plan_pending(one.refresh(), 2, {"id": "number"}, {})
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    _rewritten(shop, shop.target("two"))
    cuts.finish(shop.lake, shop.ledger)
    assert shop.lake.load(shop.target("one")).schema().column_names == ["number"]
    assert shop.ledger.cuts(equals("cut", 2))[0].state == CutState.REPLACED
    assert list(shop.ledger.rebuild_requests()) == ["one"]


def test_a_move_that_the_catalog_refuses_is_a_conflict(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A REST catalog may refuse more than PyIceberg does, and would refuse it again: the cut is built again."""
    shop.build(1)
    table = shop.lake.load(shop.target("one"))

    def refuse(*_: object) -> None:
        raise BadRequestError("ValidationException: no")

    monkeypatch.setattr(table.catalog, "commit_table", refuse)
    with pytest.raises(PublishConflictError, match=r"one: ValidationException: no: run compact again"):
        branches.fast_forward(table, candidate_branch(1))


def test_a_restore_gives_up_a_cut_that_only_a_person_could_finish(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its candidate went between two tables; the table that moved goes back."""
    shop.publish(1)
    cut = shop.build(2)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    drop_branch(shop.lake.load(shop.target("two")), candidate_branch(2))
    assert restoring.restore(shop.lake, shop.ledger, 1) == 2
    assert (shop.rows("one"), shop.rows("two")) == ([1], [1])
    assert {row.cut: row.state for row in shop.ledger.cuts()} == {1: CutState.PUBLISHED}
    shop.publish(cuts.next_number(shop.lake, shop.ledger))
    assert (shop.rows("one"), shop.rows("two")) == ([1, 3], [1, 3])


@pytest.mark.parametrize(
    ("state", "number"),
    [
        (CutState.CANDIDATE, 2),
        (CutState.FAILED, 2),
        (CutState.CHECKED, 2),
        (CutState.AWAITING_APPROVAL, 3),
        (CutState.REPLACED, 3),
    ],
)
def test_which_number_the_next_cut_has(shop: Source, state: CutState, number: int) -> None:
    """The number of an unpublished cut is used again, unless a person may be approving it; its candidates go."""
    shop.publish(1)
    shop.build(2, state)
    assert cuts.next_number(shop.lake, shop.ledger) == number
    for table in TABLES:
        assert sorted(shop.lake.load(shop.target(table)).refs()) == ["cut_1", "main"]
    left = {row.cut: row.state for row in shop.ledger.cuts()}
    assert left == {1: CutState.PUBLISHED, **({2: CutState.REPLACED} if number == 3 else {})}
    assert cuts.next_number(shop.lake, shop.ledger) == number


@pytest.mark.parametrize(
    "state", [CutState.AWAITING_APPROVAL, pytest.param(CutState.PUBLISHED, marks=pytest.mark.prove)]
)
def test_a_restore_gives_no_number_again(shop: Source, state: CutState) -> None:
    """A person may be approving the number of a cut that was held, also after the restore; and after another one."""
    shop.publish(1)
    shop.publish(2)
    shop.build(3, state)
    restoring.restore(shop.lake, shop.ledger, 2)
    restoring.restore(shop.lake, shop.ledger, 1)
    assert {row.cut for row in shop.ledger.cuts()} == {1}
    assert cuts.number_of_next(shop.ledger) == cuts.next_number(shop.lake, shop.ledger) == 4


def test_a_restored_cut_is_what_it_was(shop: Source) -> None:
    """Tables, tags and the ledger are as in the cut; a table that it does not have is dropped with its files."""
    cuts.publish(shop.lake, shop.ledger, shop.build(1, stopped="two"))
    shop.publish(2)
    shop.build(3)
    stored = [path for _, path in purging.stored_files(shop.lake.load(shop.target("two")))]
    assert sum(path.endswith(".parquet") for path in stored) == 2
    compared = [
        ReconciliationRow(
            run=run, object="shop.one", target=str(shop.target("one")), result="equal", cut=run, batch=run
        )
        for run in (1, 2)
    ]
    shop.ledger.replace(ReconciliationRow, compared)
    contradicting = [ContradictionRow(cut=cut, object="shop.one", kind=MISSING_ROWS, events=1) for cut in (1, 2, 3)]
    shop.ledger.replace(ContradictionRow, contradicting)
    assert restoring.restore(shop.lake, shop.ledger, 1) == 1
    assert [row.cut for row in shop.ledger.reconciliations()] == [1]
    assert [row.cut for row in shop.ledger.contradictions()] == [1]
    assert shop.rows("one") == [1]
    assert shop.lake.find(shop.target("two")) is None
    assert not [path for path in stored if Path(path).exists()]
    assert cut_tags(shop.lake.load(shop.target("one"))) == [1]
    assert {row.cut for row in shop.ledger.cuts()} == {row.cut for row in shop.ledger.tables()} == {1}
    with pytest.raises(ConfigurationError, match="cut 2 is not published; published cuts: 1 to 1"):
        restoring.restore(shop.lake, shop.ledger, 2)


@pytest.mark.parametrize(
    ("expired", "back_to", "again"),
    [pytest.param(False, 1, ["one"], marks=pytest.mark.prove), (True, 1, ["one"]), (True, 2, [])],
)
def test_a_table_that_goes_back_over_a_rebuild_is_built_again(
    shop: Source, back_to: int, again: list[str], *, expired: bool
) -> None:
    """Its rows may have other masks or columns than its properties and its schema say: only the change log has both.

    Also where maintenance rewrote the files of a cut in between, and expired that snapshot since: the parents of the
    newest snapshot then no longer lead to the earlier cut. A rebuild whose cut was never published counts for nothing.
    """
    shop.publish(1)
    for number, rebuilt in ((2, "one"), (3, None)):
        cut = shop.build(number)
        if rebuilt:
            table, branch = shop.lake.load(shop.target(rebuilt)), candidate_branch(number)
            with table.transaction() as transaction:
                transaction.set_properties({OBJECT_PROPERTY: rebuilt})
            table.append(pa.table({"id": [9]}, SCHEMA), snapshot_properties={BRINGS: "{}"}, branch=branch)
        cuts.publish(shop.lake, shop.ledger, cut)
        for name in TABLES:  # as a rewrite of its files does
            shop.lake.load(shop.target(name)).append(pa.table({"id": []}, SCHEMA))
    shop.build(4)
    never = shop.lake.load(shop.target("two"))
    never.append(pa.table({"id": [9]}, SCHEMA), snapshot_properties={BRINGS: "{}"}, branch=candidate_branch(4))
    if expired:
        for name in TABLES:
            table = shop.lake.load(shop.target(name))
            kept = {ref.snapshot_id for ref in table.refs().values()}
            old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in kept]
            table.maintenance.expire_snapshots().by_ids(old).commit()
    restoring.restore(shop.lake, shop.ledger, back_to)
    assert list(shop.ledger.rebuild_requests()) == again


OF_A_RESTORE = {
    "before_it_is_written_ahead": ("tidemark.ledger.cut_marks.CutMarks.begin_restore", 1),
    "before_the_cuts_go": ("tidemark.ledger.ledger.Ledger.forget", 1),
    "before_the_first_table": ("tidemark.ledger.restoring.put_back", 1),
    "between_table_and_state": ("tidemark.ledger.restoring.put_back", 2),
    "between_two_tables": ("tidemark.ledger.restoring.put_back", 3),
    "before_the_tags": ("tidemark.ledger.restoring.remove_tags", 1),
    "before_the_rows_go": ("tidemark.ledger.ledger.Ledger.forget", 2),
    "before_the_comparisons_go": ("tidemark.ledger.ledger.Ledger.forget", 3),
    "before_it_is_known": ("tidemark.ledger.cut_marks.CutMarks.end_restore", 1),
}


@pytest.mark.parametrize("window", crash_windows(OF_A_RESTORE, usually={"before_the_rows_go"}))
def test_a_killed_restore_is_done_again(shop: Source, monkeypatch: pytest.MonkeyPatch, window: str) -> None:
    """Restoring again does what is left, wherever the first one was killed."""
    for number in (1, 2):
        shop.publish(number)
    with monkeypatch.context() as patched:
        die_at(patched, *OF_A_RESTORE[window])
        with pytest.raises(SystemExit):
            restoring.restore(shop.lake, shop.ledger, 1)
    restoring.restore(shop.lake, shop.ledger, 1)
    seen = shop.seen()
    assert seen["rows"] == {"one": [1], "two": [1]}
    assert seen["cuts"] == {1: CutState.PUBLISHED}
    assert seen["tables"] == {(1, "one"): TableState.PUBLISHED, (1, "two"): TableState.PUBLISHED}


def _restore_killed(shop: Source, monkeypatch: pytest.MonkeyPatch, window: str, cut: int) -> None:
    with monkeypatch.context() as patched:
        die_at(patched, *OF_A_RESTORE[window])
        with pytest.raises(SystemExit):
            restoring.restore(shop.lake, shop.ledger, cut)


@pytest.mark.parametrize(
    "window", crash_windows(OF_A_RESTORE, usually={"between_table_and_state", "before_it_is_known"})
)
def test_a_killed_restore_is_carried_out_by_whoever_comes_next(
    shop: Source, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """Table and state go back together, before anything is built on either of them, and nothing is built anew."""
    for number in (1, 2, 3):
        shop.publish(number)
    shop.build(4)
    _restore_killed(shop, monkeypatch, window, 2)
    restoring.finish(shop.lake, shop.ledger)
    begun = window != "before_it_is_written_ahead"
    seen = shop.seen()
    assert shop.ledger.restored_cut() is None
    assert seen["rows"] == {table: [1, 2] if begun else [1, 2, 3] for table in TABLES}
    moved = [shop.lake.load(each) for table in TABLES for each in moved_together(shop.target(table))]
    assert [cut_tags(table) for table in moved] == [[1, 2] if begun else [1, 2, 3]] * 4
    assert [head(table) == head(table, cut_tag(2)) for table in moved] == [begun] * 4
    assert seen["requests"] == {}
    assert cuts.next_number(shop.lake, shop.ledger) == (5 if begun else 4)
    restoring.finish(shop.lake, shop.ledger)
    assert {row.cut for row in shop.ledger.cuts()} == {row.cut for row in shop.ledger.tables()} - {4}


def test_a_restore_that_is_killed_twice_is_carried_out(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore to another cut begins with what is left of the first one, and may be killed in it too."""
    for number in (1, 2, 3):
        shop.publish(number)
    _restore_killed(shop, monkeypatch, "between_table_and_state", 2)
    _restore_killed(shop, monkeypatch, "between_two_tables", 1)
    assert shop.ledger.restored_cut() == 2
    restoring.restore(shop.lake, shop.ledger, 1)
    assert shop.ledger.restored_cut() is None
    assert shop.seen()["rows"] == {"one": [1], "two": [1]}
    assert [cut_tags(shop.lake.load(shop.target(table))) for table in TABLES] == [[1], [1]]
    assert cuts.next_number(shop.lake, shop.ledger) == 4


def test_a_table_that_cannot_go_back_any_more_is_built_again(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state lost the tag meanwhile, by another's hand. The other tables go back, and no run stands still."""
    for number in (1, 2):
        shop.publish(number)
    _restore_killed(shop, monkeypatch, "between_table_and_state", 1)
    state = shop.lake.load(moved_together(shop.target("one"))[1])
    branches.remove_tags(state, [cut_tag(1)])
    restoring.finish(shop.lake, shop.ledger)
    assert shop.ledger.restored_cut() is None
    assert list(shop.ledger.rebuild_requests()) == ["one"]
    assert shop.seen()["rows"] == {"one": [1], "two": [1]}


def test_a_table_that_another_writer_moves_meanwhile_is_built_again(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever carries a restore out meets a commit of another writer: the other tables go back all the same."""
    for number in (1, 2):
        shop.publish(number)
    _restore_killed(shop, monkeypatch, "before_the_first_table", 1)
    put_back = branches.put_back

    def outrun(table: Table, *where: Any) -> None:
        if table.name()[-1] == "two":
            raise PublishConflictError("somebody was faster")
        put_back(table, *where)

    monkeypatch.setattr(restoring, "put_back", outrun)
    restoring.finish(shop.lake, shop.ledger)
    assert list(shop.ledger.rebuild_requests()) == ["two"]
    assert shop.seen()["rows"] == {"one": [1], "two": [1, 2]}


def test_a_run_after_a_killed_restore_goes_on_from_the_cut(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cut has a number of its own."""
    for number in (1, 2):
        shop.publish(number)
    _restore_killed(shop, monkeypatch, "between_two_tables", 1)
    restoring.finish(shop.lake, shop.ledger)
    assert cuts.next_number(shop.lake, shop.ledger) == 3
    shop.publish(3)
    assert (shop.rows("one"), shop.rows("two")) == ([1, 3], [1, 3])
    assert all(candidate_branch(3) not in shop.lake.load(shop.target(name)).refs() for name in TABLES)


def test_a_tag_that_is_left_moves_no_table(shop: Source) -> None:
    """An earlier version left tags behind, and so may an owner: the candidate branch says what is to be moved."""
    shop.publish(1)
    for name in TABLES:
        for identifier in moved_together(shop.target(name)):
            table = shop.lake.load(identifier)
            table.manage_snapshots().create_tag(head(table), cut_tag(2)).commit()
    shop.publish(2)
    assert shop.rows("one") == shop.rows("two") == [1, 2]


def test_which_cuts_stay_readable(shop: Source) -> None:
    """The newest ones and the young ones stay; of older tags each table keeps the newest, which they show."""
    for number in range(1, 4):
        shop.publish(number)
    future, past = datetime(2100, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)
    assert cuts.oldest_kept(shop.ledger, newest=2, since=future) == 2
    assert cuts.oldest_kept(shop.ledger, newest=2, since=past) == 1
    second = shop.ledger.cuts(equals("cut", 2))[0].written_at
    assert second is not None
    assert cuts.oldest_kept(shop.ledger, newest=1, since=second) == 2
    table = shop.lake.load(shop.target("one"))
    assert cuts.drop_tags(table, 2) == 1
    assert cut_tags(shop.lake.load(shop.target("one"))) == [2, 3]
    assert cuts.tagged_snapshot(shop.lake.load(shop.target("one")), 2)
    with pytest.raises(ConfigurationError, match="as of cut 1 is no longer kept"):
        cuts.tagged_snapshot(shop.lake.load(shop.target("one")), 1)


def test_a_cut_under_way_is_the_newest_unpublished(shop: Source) -> None:
    """Nothing is under way before the first cut and after a published one."""
    assert cuts.under_way(shop.ledger) is None
    shop.publish(1)
    assert cuts.under_way(shop.ledger) is None
    shop.build(2, CutState.FAILED)
    underway = cuts.under_way(shop.ledger)
    assert underway is not None
    assert (underway.cut, underway.state) == (2, CutState.FAILED)
    newest = cuts.last_published(shop.ledger)
    assert newest is not None
    assert (newest.cut, newest.written_at is not None) == (1, True)
    assert cuts.ever_published(shop.ledger).keys() == {(f"{shop.name}.{table}", table) for table in TABLES}
    assert cut_tag(1) == "cut_1"
