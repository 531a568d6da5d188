"""Tables are read as a cut showed them, or as they were published at a time: all tables of a query together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tidemark.errors import ConfigurationError
from tidemark.lake.branches import head, remove_tags
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, cut_tag, history
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY, TABLE_PROPERTIES
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.queries.as_of import AsOf
from tidemark.queries.sql import query

FIRST = datetime.now(UTC) - timedelta(seconds=1)
"""Before the first cut."""


def _cut(lake: Lake, source: str, number: int, *tables: str) -> datetime:
    """Publish a cut that adds a row with its number to some tables, and return a moment after it."""
    ledger = Ledger(lake, source)
    schema = pa.schema([("cut", pa.int64())])
    rows = []
    for name in tables:
        identifier = Identifier(source, name)
        own = {SOURCE_PROPERTY: source, OBJECT_PROPERTY: f"shop.{name}"}
        for each in (identifier, history(identifier)) if name == "orders" else (identifier,):
            table = lake.ensure(each, schema, {**TABLE_PROPERTIES, **own})
            table.append(pa.table({"cut": [number]}, schema=schema))
            table.manage_snapshots().create_tag(head(table), cut_tag(number)).commit()
        rows.append(TableRow(cut=number, object=f"shop.{name}", target=str(identifier), state="published", batch=1))
    ledger.replace(TableRow, rows)
    ledger.replace(CutRow, [CutRow(cut=number, state="published", batch=1)])
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def moments(home: Any) -> dict[str, datetime]:
    """Two sources: the first with three cuts that each changed other tables; the second with one."""
    lake = Lake.open()
    first = _cut(lake, "past", 1, "orders", "people")
    second = _cut(lake, "past", 2, "people")
    _cut(lake, "other", 1, "things")
    return {"first": first, "second": second, "third": _cut(lake, "past", 3, "orders", "late")}


@pytest.fixture
def counts(lake: Lake) -> Callable[..., list[int]]:
    """Return how many rows tables have at a point: ``counts(AsOf(...), "past.orders", ...)``."""

    def found(as_of: AsOf, *tables: str) -> list[int]:
        each = ", ".join(f"(SELECT count(*) FROM {name}) AS n{number}" for number, name in enumerate(tables))  # noqa: S608
        (row,) = query(lake, f"SELECT {each}", as_of).to_pylist()
        return list(row.values())

    return found


ALL = ("past.orders", "past.people", "past.orders__history")


def test_a_cut_shows_all_tables_of_its_source(moments: Any, counts: Callable[..., list[int]], lake: Lake) -> None:
    """A table that a cut did not change is shown as the newest cut before it left it; histories as well."""
    assert counts(AsOf(), *ALL) == [2, 2, 2]
    assert counts(AsOf(cuts=["1"]), *ALL) == [1, 1, 1]
    assert counts(AsOf(cuts=["2"]), *ALL) == [1, 2, 1]
    assert counts(AsOf(cuts=["past=3"]), *ALL) == [2, 2, 2]
    joined = query(lake, "SELECT count(*) AS n FROM past.orders, past.people", AsOf(cuts=["2"]))
    assert joined["n"].to_pylist() == [2]


def test_a_time_shows_the_newest_cut_of_each_source(moments: Any, counts: Callable[..., list[int]], lake: Lake) -> None:
    """A time needs no number of a cut, so it works for tables of several sources."""
    assert counts(AsOf(at=moments["first"]), *ALL) == [1, 1, 1]
    assert counts(AsOf(at=moments["second"]), *ALL) == [1, 2, 1]
    both = "SELECT count(*) AS n FROM past.orders, other.things"
    assert query(lake, both, AsOf(at=moments["third"]))["n"].to_pylist() == [2]
    with pytest.raises(ConfigurationError, match="other had published nothing at"):
        query(lake, both, AsOf(at=moments["first"]))
    assert query(lake, both, AsOf(cuts=["past=1", "other=1"]))["n"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("as_of", "table", "problem"),
    [
        (AsOf(cuts=["9"]), "past.orders", "cut 9 is not published; published cuts: 1 to 3"),
        (AsOf(cuts=["x"]), "past.orders", "--cut x: write a number"),
        (AsOf(cuts=["pats=1"]), "past.orders", "Did you mean 'past'"),
        (AsOf(cuts=["1"], at=FIRST), "past.orders", "not both"),
        (AsOf(at=FIRST), "past.orders", "its oldest known cut was published at"),
        (AsOf(cuts=["2"]), "past.late", "was not published yet in cut 2"),
        (AsOf(cuts=["1"]), "ledger.cuts", "not in any cut"),
        (AsOf(cuts=["1"]), "past.orders__changes", "select by position or committed_at"),
        (AsOf(cuts=["1"]), "past.orders, other.things", "--cut other=1 --cut past=1"),
        (AsOf(cuts=["past=1"]), "past.orders, other.things", "no cut of other is given"),
    ],
)
def test_a_point_that_cannot_be_shown_is_told(moments: Any, as_of: AsOf, table: str, problem: str, lake: Lake) -> None:
    """An error says what is wrong with the point, and what to write."""
    with pytest.raises(ConfigurationError) as refused:
        query(lake, f"SELECT * FROM {table}", as_of)  # noqa: S608
    assert problem in str(refused.value)


def test_a_cut_whose_snapshot_went_is_told(moments: Any, lake: Lake) -> None:
    """A table whose tag was dropped is refused, rather than shown as of another cut."""
    _cut(lake, "dropped", 1, "people")
    _cut(lake, "dropped", 2, "people")
    remove_tags(lake.load(Identifier("dropped", "people")), [cut_tag(1)])
    with pytest.raises(ConfigurationError, match=r"as of cut 1 is no longer kept.*kept since cut 2"):
        query(lake, "SELECT * FROM dropped.people", AsOf(cuts=["1"]))
