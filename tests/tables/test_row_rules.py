"""Which rows a plan publishes, and which columns it derives, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.options import SECRET_VARIABLE, the_secret
from support.plans import found, published, renamed, shape, source
from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.names import Renaming
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.lake import Lake
from tidemark.lake.properties import RULES_PROPERTY, keeps_whole
from tidemark.tables.planner import plan

ROW = shape(id="long", name="string", n="decimal(8, 2)")


def test_a_plan_has_the_whole_rows_and_what_is_made_of_them() -> None:
    """Events are folded into a table of Tidemark's own; derived columns stand behind the source's, with their types."""
    made = plan(source({"where": "n > 1", "derive": {"twice": "n * 2", "region": "'eu'"}}), found(ROW), None)
    assert [column.name for column in made.columns] == ["id", "name", "n"]
    assert made.of_published.columns[3:] == (("twice", "decimal(10, 2)"), ("region", "string"))
    assert (made.rows, made.target) == (("state", "planned__t__whole"), ("planned", "t"))
    assert (made.of_published.rows, made.of_published.versions) == (("planned", "t"), ("planned", "t__history"))
    assert made.versions == ("state", "planned__t__history__whole")
    rules = json.loads(made.column_rules or "")
    assert rules == {"where": "n > 1", "derive": {"twice": "n * 2", "region": "'eu'"}}
    assert keeps_whole({RULES_PROPERTY: made.column_rules or ""})


def test_a_plan_without_expressions_keeps_no_whole_rows() -> None:
    """Nothing is recorded, and nothing is beside the table."""
    made = plan(source({}), found(ROW), None)
    assert (made.keeps_whole, made.rows, made.column_rules) == (False, made.target, None)
    assert not keeps_whole({})


def test_names_are_those_of_any_time() -> None:
    """A filter names a column by an earlier name, by its name at the source or by its published one."""
    row, history = shape(id="long", called="string", n="long"), renamed(("20", "name", "called"))
    for name in ("name", "called", "CALLED"):
        made = plan(source({"where": f"{name} = 'a'"}), found(row, history=history), None)
        assert made.where is not None
        assert [column.text for column in made.where.columns()] == ["called"]
    entry = {"rename": {"n": "number"}, "where": "n > 1", "derive": {"more": "number + 1"}}
    made = plan(source(entry), found(shape(id="long", n="long"), called={"n": "number"}), None)
    assert made.where is not None
    assert [column.text for column in made.where.columns()] == ["number"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"where": "country = 'DE'"}, "where: at character 1: the table has no column 'country'. A text stands"),
        ({"where": "name = eu"}, "the table has no column 'eu'. A text stands in single quotation marks"),
        ({"where": "gone = 'x'"}, "no column 'gone'. It was dropped, has another name now, or is left out. Allowed"),
        ({"where": "id"}, "where: it gives a long, and a condition is needed"),
        ({"where": "name > 1"}, "where: at character 1: > needs values of one type, not string and long"),
        ({"where": "old_secret = 'x'"}, "where: at character 1: 'old_secret' is masked"),
        ({"derive": {"x": "null"}}, "derive.x: it is always null: give it a type"),
        ({"derive": {"x": "nmae || 'x'"}}, "Did you mean 'name'?"),
        ({"derive": {"NAME": "'x'"}}, "`derive` makes a column 'NAME', and the source has a column of that name"),
        ({"derive": {"valid_from": "'x'"}, "history": True}, "which the history of a table keeps for itself"),
        ({"derive": {"x": "1"}, "layout": {"partition": ["day(x)"]}}, "day() needs a date or timestamp; x is long"),
    ],
)
def test_what_a_table_cannot_have_stops_it(entry: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the columns of the table show it; the reason names the option and the character."""
    the_secret(monkeypatch)
    row = shape(id="long", name="string", n="decimal(8, 2)", secret="string")  # noqa: S106  a type
    history = renamed(("20", "gone", None), ("20", "old_secret", "secret"))
    made = source({"mask": {"secret": "hmac"}, **entry}, mask_secret=f"${{{SECRET_VARIABLE}}}")
    with pytest.raises(IncompatibleSchemaError) as error:
        plan(made, found(row, history=history), None)
    assert reason in str(error.value)


def test_a_column_that_is_to_come_is_null() -> None:
    """The source file declares its type; a column that was dropped is no such column."""
    made = plan(source({"where": "late is null", "columns": {"late": "date"}}), found(ROW), None)
    assert made.where is not None
    assert list(made.where.columns()) == []
    with pytest.raises(IncompatibleSchemaError, match="It was dropped"):
        plan(
            source({"where": "late is null", "columns": {"late": "date"}}),
            found(ROW, history=renamed(("20", "late", None))),
            None,
        )


def test_other_expressions_need_the_whole_log(lake: Lake) -> None:
    """Published rows were chosen by the recorded ones; the same ones go on."""
    table = published(lake, {"id": "long", "name": "string", "n": "decimal(8, 2)"}, (1, "a", 1))
    entry = {"where": "n > 1", "derive": {"x": "name"}}
    with pytest.raises(RebuildNeededError, match='`where` was nothing, and is "n > 1" now'):
        plan(source(entry), found(ROW, table=table), table)
    with table.transaction() as transaction:
        transaction.set_properties({RULES_PROPERTY: json.dumps(entry)})
    assert plan(source(entry), found(ROW, table=table), table).keeps_whole
    for other in ({**entry, "where": "n > 2"}, {"where": "n > 1"}, {}):
        with pytest.raises(RebuildNeededError, match=r"now$"):
            plan(source(other), found(ROW, table=table), table)
        assert plan(source(other), found(ROW, table=table), table, anew=True).keeps_whole == bool(other)


_DROPPED_AND_ADDED = renamed(("20", "status", None))
_SWAPPED = SchemaHistory((Renaming("20", 2, "status", "note"), Renaming("20", 2, "note", "status")))


@pytest.mark.parametrize(
    ("stored", "history", "goes_on"),
    [
        ("status", _DROPPED_AND_ADDED, False),
        ("status", renamed(("20", "status", "old_status")), False),
        ("old_status", renamed(("20", "status", "old_status"), batch=1), False),
        ("status", _SWAPPED, False),
        ("status", renamed(("20", "note", "remark")), True),
        ("status", renamed(("5", "status", None), batch=1), True),
        ("status", renamed(("5", "status", "old_status"), batch=1), True),
    ],
    ids=["dropped", "renamed", "renamed_before", "swapped", "another", "dropped_long_ago", "renamed_long_ago"],
)
def test_a_name_that_another_column_gets_needs_the_whole_log(
    lake: Lake, stored: str, history: SchemaHistory, *, goes_on: bool
) -> None:
    """The rows were judged by the column that had the name, and files do not change where a column gets another one."""
    entry = {"where": "status = 'open'", "derive": {"loud": "upper(status)"}}
    table = published(lake, {"id": "long", stored: "string", "note": "string"}, (1, "open", "x"), (2, "closed", "y"))
    shown = published(lake, {"id": "long", stored: "string", "note": "string", "loud": "string"}, (1, "open", "x", "X"))
    for each in (table, shown):
        with each.transaction() as transaction:
            transaction.set_properties({RULES_PROPERTY: json.dumps(entry)})
    row = shape(id="long", status="string", note="string")
    known = found(row, table=table, published_beside=shown, history=history)
    if goes_on:
        made = plan(source(entry), known, table)
    else:
        with pytest.raises(RebuildNeededError, match="'status', which was the name of another column"):
            plan(source(entry), known, table)
        made = plan(source(entry), known, table, anew=True)
    assert made.where is not None
    assert [column.text for column in made.where.columns()] == ["status"]


def test_a_column_without_values_so_far_is_no_other_column(lake: Lake) -> None:
    """It got the name when the table was built, and neither waits for its type nor gets it by another rebuild."""
    entry = {"where": "status is null"}
    stored = {"id": "long", "old_status": "string", "status": "string"}
    table = published(lake, stored, (1, "open", None), void=["status"])
    with table.transaction() as transaction:
        transaction.set_properties({RULES_PROPERTY: json.dumps(entry)})
    history = renamed(("5", "status", "old_status"), batch=1)
    for kind in (None, "int"):
        row = shape(id="long", old_status="string", status=kind)
        assert plan(source(entry), found(row, table=table, published_beside=table, history=history), table).keeps_whole


def test_a_column_that_an_expression_names_may_be_renamed(lake: Lake) -> None:
    """It is the same column: in the cut of the rename, and in later ones."""
    entry = {"where": "status = 'open'"}
    for stored, batch in (("status", 2), ("called", 1)):
        table = published(lake, {"id": "long", stored: "string"}, (1, "open"))
        with table.transaction() as transaction:
            transaction.set_properties({RULES_PROPERTY: json.dumps(entry)})
        history = renamed(("20", "status", "called"), batch=batch)
        known = found(shape(id="long", called="string"), table=table, published_beside=table, history=history)
        made = plan(source(entry), known, table)
        assert made.where is not None
        assert [column.text for column in made.where.columns()] == ["called"]


def test_a_column_that_comes_takes_the_place_of_nothing_but_null(lake: Lake) -> None:
    """A new column is null in the rows that are there, as it was; one that gets the name has values."""
    entry = {"where": "late is null", "columns": {"late": "string"}}
    table = published(lake, {"id": "long", "note": "string"}, (1, "x"))
    with table.transaction() as transaction:
        transaction.set_properties({RULES_PROPERTY: json.dumps({"where": "late is null"})})
    new = found(shape(id="long", note="string", late="string"), table=table, published_beside=table)
    assert plan(source(entry), new, table).keeps_whole
    history = renamed(("20", "note", "late"))
    with pytest.raises(RebuildNeededError, match="'late', which was the name of another column, or of none"):
        plan(
            source(entry),
            found(shape(id="long", late="string"), table=table, published_beside=table, history=history),
            table,
        )


def test_a_derived_type_that_old_values_cannot_have_needs_the_whole_log(lake: Lake) -> None:
    """A wider type does not."""
    entry = {"derive": {"x": "n"}}
    rules = {RULES_PROPERTY: json.dumps(entry)}
    table = published(lake, {"id": "long", "n": "int"}, (1, 1))
    shown = published(lake, {"id": "long", "n": "int", "x": "int"}, (1, 1, 1))
    for each in (table, shown):
        with each.transaction() as transaction:
            transaction.set_properties(rules)
    wider = found(shape(id="long", n="long"), table=table, published_beside=shown)
    assert plan(source(entry), wider, table).derived["x"].type == "long"
    with shown.update_schema() as update:
        update.delete_column(("x",))
    with shown.update_schema() as update:
        update.add_column(("x",), table.schema().find_field("_cdc_position").field_type)
    with pytest.raises(RebuildNeededError, match="derived column 'x' was string, and is long now"):
        plan(source(entry), found(shape(id="long", n="long"), table=table, published_beside=shown), table)


def test_the_columns_of_a_filter_are_tracked() -> None:
    """Else a version would show a row while it was outside."""
    made = plan(source({"where": "n > 1", "history": {"track": ["name"]}}), found(ROW), None)
    assert made.tracked == {"name", "n"}
