"""Which name and which key of a table holds at which place, according to its properties, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan, Or
from pyiceberg.table import Table

from support.plans import OBJECT, found, published, shape, source
from tidemark.ddl.lineages import Segment
from tidemark.lake.lake import Lake
from tidemark.lake.properties import ERAS_PROPERTY, SEGMENTS_PROPERTY
from tidemark.tables import eras
from tidemark.tables.eras import Era
from tidemark.tables.plan import KeyEra
from tidemark.tables.planner import plan

_SEGMENTS = (Segment("shop.old", "", "05"), Segment(OBJECT, "05", None))


@pytest.fixture
def table(lake: Lake) -> Table:
    """A published table that was renamed, and whose key was wider before."""
    made = published(lake, {"id": "long", "r": "string"})
    properties = {SEGMENTS_PROPERTY: json.dumps(_SEGMENTS), ERAS_PROPERTY: '[[["id", "r"], ""], [["id"], "03"]]'}
    with made.transaction() as transaction:
        transaction.set_properties(properties)
    return made.refresh()


def test_each_era_has_the_names_of_its_time(table: Table) -> None:
    """The last era has the key that the table has now; a name goes on through a change of the key."""
    assert eras.of_table(table) == [
        Era(("id", "r"), (Segment("shop.old", "", "03"),)),
        Era(("id",), (Segment("shop.old", "03", "05"), Segment(OBJECT, "05", None))),
    ]
    assert eras.keyed_since(table) == "03"
    assert eras.names_of(eras.segments_of(table)) == ["shop.old", OBJECT]


def test_a_table_that_never_changed_has_one_name_and_one_key(lake: Lake) -> None:
    """Nothing is written down for it."""
    table = published(lake, {"id": "long"})
    assert eras.of_table(table) == [Era(("id",), (Segment(OBJECT, "", None),))]
    assert eras.properties(plan(source(), found(shape(id="long"), table=table), table)) == {}


def test_the_condition_takes_each_name_for_its_time(table: Table) -> None:
    """Events of a name that another table has since are not among the events of the table."""
    old = And(EqualTo("object", "shop.old"), LessThan("position", "05"))
    new = And(EqualTo("object", OBJECT), GreaterThanOrEqual("position", "05"))
    assert eras.condition(eras.segments_of(table)) == Or(old, new)


def test_what_is_written_down_follows_renames_of_columns_and_ends(table: Table) -> None:
    """A rebuild from the events of one name and one key takes back what was written down before."""
    planned = plan(source(), found(shape(id="long", r="string"), table=table, segments=_SEGMENTS), table)
    renamed = eras.properties(replace(planned, today={"r": "region"}))
    assert json.loads(renamed[ERAS_PROPERTY]) == [[["id", "region"], ""], [["id"], "03"]]
    assert renamed[SEGMENTS_PROPERTY] == table.properties[SEGMENTS_PROPERTY]
    goes_on = replace(planned, found=replace(planned.found, segments=()))
    assert eras.properties(goes_on)[SEGMENTS_PROPERTY] == table.properties[SEGMENTS_PROPERTY]  # its rows are the same
    anew = replace(planned, found=replace(planned.found, published_batch=0, segments=(), eras=(KeyEra(("id",), ""),)))
    properties = eras.properties(anew)
    assert (properties[ERAS_PROPERTY], properties[SEGMENTS_PROPERTY]) == ('[[["id"], ""]]', "[]")
