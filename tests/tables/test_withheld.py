"""What open, undone and released transactions change about the events that a cut takes: the arithmetic alone."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.tally import Seen
from tidemark.ledger.transactions import MARKED, OPEN, UNDONE, WHOLE
from tidemark.tables.withheld import NOTHING, Withheld, acting, tables_of, withheld_for


def _row(batch: int, id_: str, state: str, *, since: int = 1, **tables: tuple[int, int]) -> TransactionRow:
    """The state of a transaction as of a batch; by table, its events and the TRUNCATEs among them, so far."""
    seen = Seen(id=id_, since=since, tables={f"shop.{name}": counts for name, counts in tables.items()})
    text = msgspec.json.encode(seen).decode()
    return TransactionRow(batch=batch, id=id_, state=state, since=since, events=0, seen=text)


MARKER = TransactionRow(batch=1, id=None, state=MARKED, since=1, events=0, seen="{}")


EVERY = {"a", "b", "released", "undone", "opens"}


def _withheld(
    *rows: TransactionRow, after: int, batch: int, lacking: Collection[str] = EVERY, given_up: Collection[str] = ()
) -> Withheld:
    return withheld_for([MARKER, *rows], "shop.t", after, batch, lacking=lacking, given_up=given_up)


def test_a_source_without_open_transactions_withholds_nothing() -> None:
    """The row that says that the source sends markers belongs to no transaction."""
    assert _withheld(after=0, batch=1) == NOTHING
    assert withheld_for([], "shop.t", 0, 1, lacking=(), given_up=()) == NOTHING


def test_the_events_of_an_open_transaction_are_left_out_and_held() -> None:
    """They are not taken from the new batch, TRUNCATEs among them neither."""
    assert _withheld(_row(1, "a", OPEN, t=(5, 1)), after=0, batch=1) == Withheld(
        left_out=frozenset({"a"}), waiting=frozenset({"a"}), taken=(-5, -1), held=5
    )


def test_a_transaction_without_events_of_the_table_leaves_nothing_out() -> None:
    """It waits all the same: an event of the table may be in the next batch."""
    assert _withheld(_row(1, "a", OPEN, other=(5, 0)), after=0, batch=1) == Withheld(waiting=frozenset({"a"}))


def test_a_transaction_that_stays_open_holds_the_events_of_both_batches() -> None:
    """Only the events of the new batch are subtracted from what the new batch brings."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", OPEN, t=(7, 0))]
    assert _withheld(*rows, after=1, batch=2) == Withheld(
        left_out=frozenset({"a"}), waiting=frozenset({"a"}), taken=(-2, 0), held=7
    )


def test_the_earlier_events_of_a_transaction_are_released_by_its_end() -> None:
    """They are taken in addition to the events of the new batch, from the first batch that has one of them."""
    rows = [_row(1, "a", OPEN, t=(5, 1)), _row(3, "a", WHOLE, t=(8, 1))]
    assert _withheld(*rows, after=2, batch=3) == Withheld(released=frozenset({"a"}), since=1, taken=(5, 1))


def test_a_transaction_that_opens_and_ends_in_the_new_batches_changes_nothing() -> None:
    """All its events are in the new batches, and are taken with them."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", WHOLE, t=(8, 0))]
    assert _withheld(*rows, after=0, batch=2) == NOTHING


def test_the_events_of_a_transaction_that_is_undone_are_discarded() -> None:
    """Those of the new batch are left out; those that were held before are counted with them."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", UNDONE, t=(7, 0))]
    assert _withheld(*rows, after=1, batch=2) == Withheld(
        left_out=frozenset({"a"}), waiting=frozenset({"a"}), since=1, taken=(-2, 0), discarded=7
    )


def test_a_copy_of_an_undone_event_is_discarded_as_well() -> None:
    """What was discarded before is not counted again."""
    rows = [_row(1, "a", UNDONE, t=(5, 0)), _row(2, "a", UNDONE, t=(6, 0))]
    assert _withheld(*rows, after=1, batch=2) == Withheld(
        left_out=frozenset({"a"}), waiting=frozenset({"a"}), taken=(-1, 0), discarded=1
    )


@pytest.mark.parametrize("state", [WHOLE, OPEN])
def test_a_table_that_lacks_no_events_gets_none_back(state: str) -> None:
    """A table that was built when open transactions held nothing has their earlier events already."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", state, t=(8, 0))]
    withheld = _withheld(*rows, after=1, batch=2, lacking=())
    assert withheld.released == frozenset()
    assert (withheld.taken, withheld.held) == (((-3, 0), 3) if state == OPEN else ((0, 0), 0))


def test_transactions_that_are_given_up_hold_nothing_and_release_what_was_held() -> None:
    """The new events of an open transaction are taken, and the earlier ones that waited."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", OPEN, t=(7, 0)), _row(2, "b", OPEN, t=(4, 0))]
    assert _withheld(*rows, after=1, batch=2, given_up="ab") == Withheld(
        released=frozenset({"a"}), since=1, taken=(5, 0)
    )


@pytest.mark.parametrize("state", [OPEN, WHOLE, UNDONE])
def test_what_was_given_up_stays_so(state: str) -> None:
    """Whatever comes of the transaction, its events count, and a table that has them does not get them again."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", state, t=(7, 0)), _row(2, "b", OPEN, t=(4, 0))]
    assert _withheld(*rows, after=1, batch=2, lacking={"b"}, given_up={"a"}) == Withheld(
        left_out=frozenset({"b"}), waiting=frozenset({"b"}), taken=(-4, 0), held=4
    )


def test_several_transactions_are_added_up() -> None:
    """One opens, one is released and one is undone: the first batch with an event of the last two is the smaller."""
    rows = [
        _row(2, "released", OPEN, since=2, t=(3, 0)),
        _row(3, "undone", OPEN, since=3, t=(4, 1)),
        _row(4, "released", WHOLE, since=2, t=(9, 0)),
        _row(4, "undone", UNDONE, since=3, t=(4, 1)),
        _row(4, "opens", OPEN, since=4, t=(6, 1)),
    ]
    assert _withheld(*rows, after=3, batch=4) == Withheld(
        left_out=frozenset({"opens"}),
        released=frozenset({"released"}),
        waiting=frozenset({"opens", "undone"}),
        since=2,
        taken=(3 - 6, -1),
        held=6,
        discarded=4,
    )


def test_only_what_was_known_at_the_batch_counts() -> None:
    """A table that is built up to an earlier batch knows nothing of the end that came later."""
    rows = [_row(1, "a", OPEN, t=(5, 0)), _row(2, "a", WHOLE, t=(5, 0))]
    assert _withheld(*rows, after=0, batch=1).held == 5


def test_settled_transactions_concern_no_table_that_stands_behind_their_end() -> None:
    """Open ones concern every table; the marker of the source none."""
    ended, still_open = _row(2, "ended", WHOLE, t=(1, 0)), _row(1, "open", OPEN, u=(1, 0))
    rows = [MARKER, _row(1, "ended", OPEN, t=(1, 0)), ended, still_open]
    assert acting(rows, after=1) == [rows[1], ended, still_open]
    assert acting(rows, after=2) == [still_open]


def test_the_tables_of_transactions_are_named_once() -> None:
    """They are sorted by name, whichever transaction has events of them."""
    assert tables_of([_row(1, "a", OPEN, u=(1, 0), t=(1, 0)), _row(1, "b", OPEN, t=(2, 0))]) == ["shop.t", "shop.u"]
