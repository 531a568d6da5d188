"""Signs of renames that no message reports, without Spark."""

from __future__ import annotations

from collections.abc import Container
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tidemark.ddl.rename_signs import rename_signs
from tidemark.events import Column
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import ContentRow, ShapeRow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _span(name: str, first: int, last: int, unplaced: int = 0) -> SpanRow:
    """Events of a table from one hour to another."""
    hours = (NOON + timedelta(hours=hour) for hour in (first, last))
    return SpanRow(batch=1, object=name, newest="", unplaced=unplaced, first=next(hours), last=next(hours))


def _shape(name: str, columns: str, batch: int = 1) -> ShapeRow:
    encoded = msgspec.json.encode([Column(column) for column in columns]).decode()
    return ShapeRow(batch=batch, object=name, shape=columns, columns=encoded)


OLD, NEW = _span("s.old", 0, 5), _span("s.new", 6, 9)


@pytest.mark.parametrize(
    ("spans", "columns", "known", "found"),
    [
        ([OLD, NEW], "ab", (), ["s.old"]),
        ([OLD, _span("s.new", 5, 9)], "ab", (), ["s.old"]),
        ([OLD, _span("s.new", 4, 9)], "ab", (), []),
        ([OLD, _span("s.old", 7, 7), NEW], "ab", (), []),
        ([OLD, _span("s.new", 30, 31)], "ab", (), []),
        ([OLD, NEW], "ac", (), []),
        ([OLD, NEW], "ab", {"s.new"}, []),
        ([OLD, _span("s.new", 6, 9, unplaced=3)], "ab", (), []),
        ([OLD, _span("s.older", 0, 4), NEW], "ab", (), ["s.old"]),
        ([], "ab", (), []),
    ],
    ids=["sign", "at_once", "overlap", "goes_on", "late", "columns", "stated", "loaded", "last_one", "nothing"],
)
def test_a_table_stops_and_another_begins_with_its_columns(
    spans: list[SpanRow], columns: str, known: Container[str], found: list[str]
) -> None:
    """Within a day, with the columns that the first one had last, and without a load of its own."""
    shapes = [_shape("s.old", "a"), _shape("s.old", "ab", 2), _shape("s.older", "ab"), _shape("s.new", columns)]
    signs = rename_signs(spans, shapes, [], known)
    assert [sign.old for sign in signs] == found
    assert all(sign.new == "s.new" and "load it anew" in str(sign) for sign in signs)


def test_tables_by_number_and_loaded_tables_are_no_signs() -> None:
    """A table of each month takes over from the one before; a placed load brings the rows from before."""
    months = [_span("s.log_202601", 0, 5), _span("s.log_202602", 6, 9)]
    assert rename_signs(months, [_shape(span.object, "ab") for span in months], [], ()) == []
    loaded = ContentRow(
        batch=1, object="s.new", database="s", schema=None, name="new", operation="SNAPSHOT", shape=None,
        partial=False, key=None, half=False, events=1,
    )  # fmt: skip
    assert rename_signs([OLD, NEW], [_shape("s.old", "ab"), _shape("s.new", "ab")], [loaded], ()) == []
