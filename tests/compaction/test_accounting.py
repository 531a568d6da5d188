"""The ledger's row of a table: the equation of events, and what becomes of the rows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.compaction.accounting import Merged, account, row
from tidemark.compaction.decisions import Built, Stopped, Unmoved, Waiting
from tidemark.compaction.run import Cut, Run, Standing
from tidemark.errors import LedgerError
from tidemark.lake.names import Identifier
from tidemark.ledger.event_counts import NO_EVENTS, EventCounts
from tidemark.ledger.rows import Snapshots, TableRow
from tidemark.sources.model import Source
from tidemark.tables.plan import Found
from tidemark.tables.withheld import Withheld

NAME = "shop.orders"
TARGET = Identifier("erp", "orders")


def found(events: int = 0, *, held: int = 0, discarded: int = 0) -> Found:
    """Return a table with new events, and with events that transactions withhold."""
    return Found(
        object=NAME,
        database="shop",
        schema=None,
        name="orders",
        events=events,
        truncates=0,
        shapes={},
        keys=[],
        partial=False,
        halves=False,
        withheld=Withheld(held=held, discarded=discarded),
    )


def run(rows: int | None = None, *, stands_at: int = 7) -> Run:
    """Return cut 4 with batches up to 9, of a table that had some rows when it was last published."""
    published = TableRow(cut=3, object=NAME, target=str(TARGET), state="published", batch=stands_at, rows_after=rows)
    source = Source.model_validate({"source": "erp", "format": "canal_json", "landing": "landing/*"})
    return Run(
        session=cast(Any, None),
        lake=cast(Any, SimpleNamespace(find=lambda _: None)),
        source=source,
        cut=Cut(number=4, batch=9),
        standing=Standing(batch=8, behind={NAME: stands_at}),
        published={} if rows is None else {NAME: published},
        requests={},
    )


def built(**changes: Any) -> Built:
    """Return a table that was built, with two rows more."""
    fields: dict[str, Any] = {
        "object": NAME,
        "target": TARGET,
        "counts": EventCounts(events=2, applied=2),
        "rows_change": 2,
        "deleted": 0,
        "committed_at": None,
        "snapshots": Snapshots(11, 12),
    }
    return Built(**{**fields, **changes})


count = st.integers(min_value=0, max_value=1000)


@given(applied=count, duplicate=count, quarantined=count, superseded=count, held=count, discarded=count)
def test_every_event_is_accounted_for_once(
    applied: int, duplicate: int, quarantined: int, superseded: int, held: int, discarded: int
) -> None:
    """Whatever became of the events, the counts close, and each event is in one of them."""
    events = applied + duplicate + quarantined + superseded
    counts = account(
        found(events, held=held, discarded=discarded),
        applied=applied,
        superseded=superseded,
        duplicate=duplicate,
        quarantined=quarantined,
    )
    assert counts.closes
    assert counts == EventCounts(
        events=events + held + discarded,
        applied=applied,
        superseded=superseded + discarded,
        duplicate=duplicate,
        held=held,
        quarantined=quarantined,
    )


@pytest.mark.parametrize("term", ["applied", "superseded", "duplicate", "quarantined"])
@pytest.mark.parametrize("more", [1, -1])
def test_a_term_that_is_wrong_is_refused(term: str, more: int) -> None:
    """No term is what the others leave: one event too many or too few in any of them, and nothing is published."""
    terms = {"applied": 2, "superseded": 3, "duplicate": 1, "quarantined": 1}
    account(found(7), **terms)
    pattern = rf"shop\.orders: the ledger does not close\. .*{term}.* are {7 + more}, .* 7 "
    with pytest.raises(LedgerError, match=pattern):
        account(found(7), **{**terms, term: terms[term] + more})


def test_a_term_below_zero_is_refused() -> None:
    """Terms that close only because one is negative do not close."""
    with pytest.raises(LedgerError, match="does not close"):
        account(found(3), applied=4, superseded=-1, duplicate=0, quarantined=0)


def test_counts_that_do_not_close_are_seen() -> None:
    """An event without an outcome, or with two, breaks the equation."""
    assert EventCounts(events=3, applied=1, held=2).closes
    assert not EventCounts(events=3, applied=1, held=1).closes
    assert not EventCounts(events=3, applied=3, superseded=1).closes
    assert EventCounts(events=3, applied=1) + EventCounts(events=1, held=1) == EventCounts(events=4, applied=1, held=1)


def test_a_built_table_grows_from_what_was_published() -> None:
    """The rows after are the rows before and the change; the batch is the cut's."""
    made = row(built(committed_at=1_500_000, deleted=3), run(10))
    assert (made.rows_before, made.rows_after, made.deleted) == (10, 12, 3)
    assert (made.cut, made.state, made.batch, made.target) == (4, "candidate", 9, "erp.orders")
    assert (made.base, made.snapshot, made.snapshots) == (11, 12, Snapshots(11, 12))
    assert made.committed_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert made.counts == EventCounts(events=2, applied=2)


def test_a_rebuilt_table_grows_from_nothing() -> None:
    """Its rows are the rows that were built; what readers lose is by how many it shrank, unless that was counted."""
    request = "2026-01-31T00:00:00+00:00"
    made = row(built(request=request, rows_change=4, deleted=None), run(10))
    assert (made.rows_before, made.rows_after, made.deleted, made.rebuilt) == (10, 4, 6, request)
    assert row(built(request=request, rows_change=12, deleted=None), run(10)).deleted == 0
    assert row(built(request=request, rows_change=12, deleted=5), run(10)).deleted == 5


def test_a_stopped_table_holds_all_of_its_events() -> None:
    """The table stays at the batch where it stands, with the reason, and all events wait, withheld ones too."""
    made = row(Stopped(found=found(5, held=2, discarded=1), reason="the key changed"), run(10))
    assert (made.state, made.reason, made.batch, made.target) == ("stopped", "the key changed", 7, None)
    assert made.counts == EventCounts(events=8, held=8)
    assert (made.rows_before, made.rows_after, made.deleted) == (10, 10, None)
    with pytest.raises(ValueError, match="was not built in cut 4: it is stopped"):
        _ = made.snapshots
    with pytest.raises(ValueError, match="has no target in cut 4"):
        _ = made.identifier


def test_a_waiting_table_stands_as_a_stopped_one() -> None:
    """Without columns there is no table; where one was to be built again, nothing is left of it."""
    waits = row(Waiting(found=found(1), reason="no columns", request=None), run())
    assert (waits.state, waits.rows_before, waits.rows_after, waits.deleted) == ("waiting", 0, 0, None)
    assert waits.counts == EventCounts(events=1, held=1)
    again = row(Waiting(found=found(1), reason="no columns", request="asked"), run(10))
    assert (again.rebuilt, again.rows_before, again.rows_after, again.deleted) == ("asked", 10, 0, 10)


def test_an_unmoved_table_counts_what_transactions_withhold() -> None:
    """Held events wait, events of undone transactions are superseded, and the table is at the batch of the cut."""
    known = found(held=3, discarded=2)
    made = row(Unmoved(object=known.object, target=TARGET, withheld=known.withheld), run(10))
    assert (made.state, made.batch, made.rows_after) == ("unmoved", 9, 10)
    assert made.counts == EventCounts(events=5, superseded=2, held=3)
    assert made.counts.closes


def test_rows_that_were_exchanged_are_updates() -> None:
    """A row that was deleted and added again is no new row, and none that went."""
    merged = Merged(inserted=5, updated=1, deleted=3)
    assert merged.exchanged(2) == Merged(inserted=3, updated=3, deleted=1)
    assert (merged.changed, merged.grown) == (9, 2)
    assert (merged.exchanged(2).changed, merged.exchanged(2).grown) == (7, 2)


def test_nothing_is_nothing() -> None:
    """A table without events closes."""
    assert NO_EVENTS.closes
    assert account(found(), applied=0, superseded=0, duplicate=0, quarantined=0) == NO_EVENTS
