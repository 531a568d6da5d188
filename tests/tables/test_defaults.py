"""A value that old rows got in an added column is published exactly, or its table stops and names the types that do."""

from __future__ import annotations

import pytest

from tidemark.ddl.changes import Fill
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.ddl.names import ColumnNames
from tidemark.errors import IncompatibleSchemaError
from tidemark.tables.defaults import defaults_of, value_of
from tidemark.tables.plan import Found
from tidemark.values.table_columns import TableColumn


def _found(fill: Fill, *, after: int = 0, name: str = "tag") -> Found:
    """Return a table with a column that was added in batch 2."""
    history = SchemaHistory(additions=(Addition("0005", 2, name, None, fill, retyped=False),))
    return Found(
        object="shop.t",
        database="shop",
        schema=None,
        name="t",
        events=1,
        truncates=0,
        shapes={},
        keys=[],
        partial=False,
        halves=False,
        history=history,
        published_batch=after,
    )


@pytest.mark.parametrize(
    ("kind", "fill", "value"),
    [
        ("int", Fill("16"), "16"),
        ("boolean", Fill("1"), True),
        ("string", Fill('a"b\\'), 'a"b\\'),
        ("decimal(6, 2)", Fill("1.50"), "1.50"),
        ("decimal(20, 0)", Fill("10", b"\x0a"), "10"),
        ("binary", Fill("10", b"\x0a"), "Cg=="),
        ("binary", Fill("ab"), "YWI="),
    ],
)
def test_a_value_is_read_by_the_type_of_its_column(kind: str, fill: Fill, value: object) -> None:
    """Numbers, texts and bytes; bits are a number in a number and bytes in bytes."""
    assert value_of(TableColumn("c", kind), fill) == value


def test_a_value_belongs_to_the_column_whatever_its_case() -> None:
    """DDL may write a name in another case than the messages."""
    found = _found(Fill("vip"), name="TAG")
    assert list(defaults_of(found, ColumnNames((), ["tag"]), [TableColumn("tag", "string")])) == ["tag"]


def test_a_type_that_does_not_hold_the_value_stops_the_table() -> None:
    """The reason names the column and the types that work. It does not have the value, which is one of rows."""
    with pytest.raises(IncompatibleSchemaError, match=r"'tag' was added .* no int holds.*: string, binary") as stopped:
        defaults_of(_found(Fill("vip")), ColumnNames((), ["tag"]), [TableColumn("tag", "int")])
    assert "vip" not in str(stopped.value)
    with pytest.raises(IncompatibleSchemaError, match=r"which no string holds.*: binary"):
        defaults_of(_found(Fill(None, b"\x10")), ColumnNames((), ["tag"]), [TableColumn("tag", "string")])


def test_a_value_of_an_earlier_cut_stops_nothing() -> None:
    """Its rows were published already."""
    found = _found(Fill("vip"), after=2)
    assert list(defaults_of(found, ColumnNames((), ["tag"]), [TableColumn("tag", "int")])) == ["tag"]
