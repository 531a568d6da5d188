"""Positions of a log that began anew rank above all positions of the log before."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.events import ChangeEvent, Event, Message, Operation, Quarantined, SchemaChange, TableId
from tidemark.normalization.new_logs import NewLogs, ranked
from tidemark.positions import changed, loaded

TABLE = TableId("shop", None, "orders")
LOGS = NewLogs(source=(100, 200), tables={"shop.o*": (150,)})


def _change(at: int | None, operation: Operation = Operation.INSERT, **fields: Any) -> ChangeEvent:
    return ChangeEvent(table=TABLE, operation=operation, committed_at=at, **{"position": changed(7), **fields})


def _decoded(event: Event, logs: NewLogs = LOGS, **message: Any) -> Any:
    decode = ranked(lambda _: [event], logs)
    return decode(Message(value=b"", file="a", place=1, **message))


@pytest.mark.parametrize(("at", "first"), [(99, 1), (100, 3), (149, 3), (150, 5), (199, 5), (200, 7), (10**9, 7)])
def test_each_moment_raises_a_position(at: int, first: int) -> None:
    """An event at a moment is of the new log."""
    (event,) = _decoded(_change(at))
    assert event.position == (first, 7)


def test_a_table_of_no_entry_knows_the_log_alone() -> None:
    """Reloads concern their own table."""
    (event,) = _decoded(_change(160), NewLogs(source=(100,), tables={"shop.items": (150,)}))
    assert event.position == (3, 7)


def test_loads_are_raised_with_their_rows() -> None:
    """A marked load keeps its place in the new log; rows without a place replace only a table that was reloaded."""
    (marked,) = _decoded(_change(120, Operation.SNAPSHOT, position=changed(7, 1, 4), load=changed(7, 1)))
    assert (marked.position, marked.load) == ((3, 7, 1, 4), (3, 7, 1))
    (restarted,) = _decoded(_change(120, Operation.SNAPSHOT, position=loaded(4)))
    assert (restarted.position, restarted.load) == ((2, 4), None)
    (reloaded,) = _decoded(_change(160, Operation.SNAPSHOT, position=loaded(4)))
    assert (reloaded.position, reloaded.load) == ((4, 4), (4,))


@pytest.mark.parametrize("name", ["_orders_gho", "__orders_new", "lhmn_orders", "_orders_del"])
def test_tables_that_tools_made_rank_with_the_one_that_they_were_made_for(name: str) -> None:
    """The copy takes the table's name, and what its statements changed is the table's from there on."""
    own = TableId("shop", None, name)
    stated = SchemaChange(table=own, position=changed(7), statement="...", committed_at=160)
    logs = NewLogs(tables={"shop.orders": (150,), "shop.*": (120, 130)})
    assert [each.position for each in _decoded(stated, logs)] == [(3, 7)]
    both = NewLogs(tables={f"shop.{name}": (110, 120), "shop.orders": (150,)})
    assert [each.position for each in _decoded(stated, both)] == [(5, 7)]
    assert [each.position for each in _decoded(stated, NewLogs(tables={"shop.items": (150,)}))] == [(1, 7)]


def test_a_load_of_a_table_is_none_of_its_copy() -> None:
    """Rows of the copy that rank with those of the table replace nothing."""
    copy, logs = TableId("shop", None, "_orders_gho"), NewLogs(tables={"shop.orders": (150,)})
    row = ChangeEvent(table=copy, operation=Operation.SNAPSHOT, position=loaded(4), committed_at=160)
    (event,) = _decoded(row, logs)
    assert (event.position, event.load) == ((2, 4), None)


def test_statements_rank_with_the_events() -> None:
    """Else a column's new name would not hold for them."""
    (statement,) = _decoded(SchemaChange(table=TABLE, position=changed(7), statement="...", committed_at=120))
    assert statement.position == (3, 7)


@pytest.mark.parametrize(
    ("event", "message", "first"),
    [
        (_change(99, captured_at=120), {}, 1),
        (_change(120, captured_at=99), {"timestamp": 0}, 3),
        (_change(None, captured_at=120), {}, 3),
        (_change(None, captured_at=120), {"timestamp": 1}, 3),
        (_change(None), {"timestamp": 0, "interval": 160}, 1),
        (_change(None), {"timestamp": 1}, 7),
        (_change(None), {"interval": 160}, 5),
    ],
)
def test_the_best_known_time_counts(event: ChangeEvent, message: dict[str, int], first: int) -> None:
    """Commit, capture, Kafka's record, the dump's interval."""
    (found,) = _decoded(event, **message)
    assert found.position[0] == first


def test_a_message_without_any_time_is_set_aside() -> None:
    """Nothing shows which log it belongs to."""
    found = _decoded(_change(None))
    assert isinstance(found, Quarantined)
    assert found.reason == "unknown_time"
