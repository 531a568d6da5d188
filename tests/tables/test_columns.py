"""Which columns a table gets, of which types and in which order, and what becomes of the stored ones; without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.table import Table

from support.plans import found, published, renamed, shape, source
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Encoding
from tidemark.lake.lake import Lake
from tidemark.sources.schema_policy import SchemaPolicies
from tidemark.tables.columns import Evolved, evolved_columns, unknown_columns, untyped
from tidemark.tables.evolving import evolving_of
from tidemark.tables.plan import Found
from tidemark.tables.planner import plan


def _evolved(known: Found, table: Table | None = None, **promised: Any) -> Evolved:
    declared = source(promised)
    evolving = evolving_of(declared, known, table)
    return evolved_columns(evolving, table, SchemaPolicies(), declared.table_for(known.object))


def _types(evolved: Evolved) -> dict[str, str]:
    return {column.name: column.type for column in evolved.columns}


def test_a_column_without_a_type_and_without_a_value_is_void_text() -> None:
    """Text can hold whatever comes; the type is settled by the first value."""
    evolved = _evolved(found(shape(id="long", a=None)))
    assert _types(evolved) == {"id": "long", "a": "string"}
    assert evolved.void == {"a"}


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("int", "long", "long"),
        ("long", "int", "long"),
        ("float", "double", "double"),
        ("decimal(8, 2)", "decimal(12, 2)", "decimal(12, 2)"),
        ("int", "decimal(10, 2)", "decimal(12, 2)"),
        ("decimal(8, 2)", "decimal(8, 4)", "decimal(10, 4)"),
    ],
)
def test_shapes_of_a_new_table_agree_on_the_wider_type(one: str, other: str, common: str) -> None:
    """Every number of either type fits, whichever shape comes first."""
    for first, second in ((one, other), (other, one)):
        assert _types(_evolved(found(shape(id="long", n=first), shape(id="long", n=second, m="int"))))["n"] == common


def test_shapes_that_agree_on_no_type_stop_the_table() -> None:
    """The reason has both types and the way out."""
    reason = r"'n' changed from date to long, and neither holds what the other does.*`columns: \{n: \.\.\.\}`"
    with pytest.raises(IncompatibleSchemaError, match=reason):
        _evolved(found(shape(id="long", n="date"), shape(id="long", n="long")))


def test_numbers_and_text_are_text() -> None:
    """Text holds the digits of numbers as the messages have them."""
    assert _types(_evolved(found(shape(id="long", n="int"), shape(id="long", n="string"))))["n"] == "string"


def test_new_columns_stand_where_the_messages_have_them(lake: Lake) -> None:
    """Each stands behind the column that it follows; stored columns keep their order."""
    table = published(lake, {"id": "long", "b": "string", "a": "string"}, (1, "b", "a"))
    known = found(shape(first="int", id="long", a="string", last="int", b="string", behind="int"), table=table)
    assert list(_types(_evolved(known, table))) == ["first", "id", "b", "behind", "a", "last"]


def test_a_column_that_messages_lack_stays(lake: Lake) -> None:
    """Images may leave columns out; only DDL drops one."""
    table = published(lake, {"id": "long", "a": "string"}, (1, "x"))
    evolved = _evolved(found(shape(id="long"), table=table), table)
    assert (_types(evolved), evolved.today) == ({"id": "long", "a": "string"}, {})


def test_a_stored_column_is_widened_and_never_narrowed(lake: Lake) -> None:
    """Iceberg reads the files of the old type with the new one."""
    table = published(lake, {"id": "long", "n": "int", "m": "long"}, (1, 1, 1))
    evolved = _evolved(found(shape(id="long", n="long", m="int"), table=table), table)
    assert _types(evolved) == {"id": "long", "n": "long", "m": "long"}


def test_a_type_that_holds_all_values_in_other_files_needs_a_rebuild(lake: Lake) -> None:
    """Files with whole numbers cannot be read as decimals."""
    table = published(lake, {"id": "long", "n": "int"}, (1, 1))
    with pytest.raises(RebuildNeededError, match=r"'n' changed from int to decimal\(12, 2\)"):
        _evolved(found(shape(id="long", n="decimal(10, 2)"), table=table), table)


def test_a_change_of_type_builds_the_table_anew_unless_the_column_is_empty(lake: Lake) -> None:
    """A column without any value gets the new type as a new column; the stored one goes."""
    text = shape(id="long", n="string")
    full = published(lake, {"id": "long", "n": "int"}, (1, 1))
    with pytest.raises(RebuildNeededError, match="'n' changed from int to string"):
        _evolved(found(text, table=full), full)
    empty = published(lake, {"id": "long", "n": "int"}, (1, None))
    evolved = _evolved(found(text, table=empty), empty)
    assert _types(evolved) == {"id": "long", "n": "string"}
    assert evolved.today == {"n": None, "tidemark new n": "n"}


def test_a_column_with_values_in_earlier_versions_alone_is_not_empty(lake: Lake) -> None:
    """They would go with it: from the table's history, too."""
    table = published(lake, {"id": "long", "n": "int"}, (1, None))
    versions = published(lake, {"id": "long", "n": "int"}, (1, 1), (1, None))
    with pytest.raises(RebuildNeededError, match="'n' changed from int to string"):
        _evolved(found(shape(id="long", n="string"), table=table, history_table=versions), table)
    with pytest.raises(IncompatibleSchemaError, match="'n' changed from int to date"):
        _evolved(found(shape(id="long", n="date"), table=table, history_table=versions), table)
    other = published(lake, {"id": "long"}, (1,))  # a history that is to be made again may lack the column
    assert _types(_evolved(found(shape(id="long", n="date"), table=table, history_table=other), table))["n"] == "date"


def test_a_late_rename_or_drop_asks_earlier_versions_too(lake: Lake) -> None:
    """Of two columns that are one, the other may have values there; and a drop may come after them."""
    table = published(lake, {"id": "long", "a": "string", "b": "string"}, (1, None, "b"))
    versions = published(lake, {"id": "long", "a": "string", "b": "string"}, (1, "a", None), (1, None, "b"))
    known = found(shape(id="long", b="string"), table=table, history=renamed(("50", "a", "b")))
    assert _evolved(known, table).today == {"a": None}
    with pytest.raises(RebuildNeededError, match="'a' and 'b' are one column"):
        _evolved(replace(known, history_table=versions), table)
    dropped = found(shape(id="long", b="string"), table=table, history=renamed(("05", "a", None)))
    assert _evolved(dropped, table).today == {"a": None}
    with pytest.raises(RebuildNeededError, match="'a' was dropped by DDL that came after newer rows"):
        _evolved(replace(dropped, history_table=versions), table)


def test_a_void_column_begins_with_the_type_of_its_first_values(lake: Lake) -> None:
    """A new column takes its place, and the stored one goes."""
    table = published(lake, {"id": "long", "n": "string"}, (1, None), void=["n"])
    evolved = _evolved(found(shape(id="long", n=None), table=table, inferred={"n": "long"}), table)
    assert _types(evolved) == {"id": "long", "n": "long"}
    assert (evolved.begun, evolved.void) == ({"n": "n"}, set())
    assert evolved.today == {"n": None, "tidemark new n": "n"}


def test_a_void_column_that_stays_without_values_stays_void(lake: Lake) -> None:
    """Nothing is moved for it."""
    table = published(lake, {"id": "long", "n": "string"}, (1, None), void=["n"])
    evolved = _evolved(found(shape(id="long", n=None), table=table), table)
    assert (_types(evolved)["n"], evolved.void, evolved.today, evolved.begun) == ("string", {"n"}, {}, {})


def test_a_void_column_that_somebody_else_wrote_into_keeps_its_text(lake: Lake) -> None:
    """What is in it stays; inferred values are written as text beside it."""
    table = published(lake, {"id": "long", "n": "string"}, (1, "mine"), void=["n"])
    evolved = _evolved(found(shape(id="long", n=None), table=table, inferred={"n": "long"}), table)
    assert (_types(evolved)["n"], evolved.today, evolved.void) == ("string", {}, set())


def test_a_renamed_column_keeps_its_place_and_its_type(lake: Lake) -> None:
    """The stored column gets the new name when the cut is published; the source file may still use the old one."""
    table = published(lake, {"id": "long", "a": "int", "z": "string"}, (1, 1, "z"))
    known = found(
        shape(id="long", a="int", z="string"),
        shape(id="long", b="int", z="string"),
        table=table,
        epochs=[0, 1],
        history=renamed(("50", "a", "b")),
    )
    evolved = _evolved(known, table, columns={"a": "long"})
    assert _types(evolved) == {"id": "long", "b": "long", "z": "string"}
    assert evolved.today == {"a": "b"}


def test_two_columns_may_swap_their_names(lake: Lake) -> None:
    """Each keeps its values: the first becomes the second, and the other way round."""
    table = published(lake, {"id": "long", "a": "int", "b": "string"}, (1, 1, "b"))
    history = renamed(("50", "a", "b"), ("50", "b", "a"))
    evolved = _evolved(found(shape(id="long", b="int", a="string"), table=table, history=history), table)
    assert _types(evolved) == {"id": "long", "b": "int", "a": "string"}
    assert evolved.today == {"a": "b", "b": "a"}


def test_a_dropped_column_that_comes_again_is_another_column(lake: Lake) -> None:
    """It has a type of its own, and no value of the old one."""
    table = published(lake, {"id": "long", "a": "string"}, (1, "x"))
    evolved = _evolved(found(shape(id="long", a="int"), table=table, history=renamed(("50", "a", None))), table)
    assert _types(evolved) == {"id": "long", "a": "int"}
    assert evolved.today == {"a": None, "tidemark new a": "a"}


def test_a_drop_that_comes_after_newer_rows_needs_a_rebuild(lake: Lake) -> None:
    """Rows that were written after its position may have values of the new column."""
    table = published(lake, {"id": "long", "a": "string"}, (1, "x"))
    with pytest.raises(RebuildNeededError, match="'a' was dropped by DDL that came after newer rows"):
        _evolved(found(shape(id="long"), table=table, history=renamed(("05", "a", None))), table)


def test_ddl_adds_a_column_before_any_message_has_it(lake: Lake) -> None:
    """Its type is the declared one, and it is not void; what the table followed already is not followed again."""
    table = published(lake, {"id": "long"}, (1,))
    history = SchemaHistory(
        additions=(
            Addition("05", 1, "known", "int", None, retyped=False),
            Addition("50", 2, "d", "decimal(8, 2)", None, retyped=False),
        )
    )
    evolved = _evolved(found(shape(id="long"), table=table, history=history), table)
    assert (_types(evolved), evolved.void) == ({"id": "long", "d": "decimal(8, 2)"}, set())


def test_messages_say_more_than_the_statement_that_added_a_column(lake: Lake) -> None:
    """A BIT is a number in a statement, and bytes to Debezium: rows that the statement filled are written again."""
    table, message_shape = published(lake, {"id": "long", "b": "decimal(20, 0)"}, (1, 2)), shape(id="long", b="binary")
    history = SchemaHistory(additions=(Addition("05", 1, "b", "decimal(20, 0)", None, retyped=False),))
    with pytest.raises(RebuildNeededError, match="as a statement said, and messages say binary"):
        _evolved(found(message_shape, table=table, history=history), table)
    assert _types(_evolved(found(message_shape, history=history)))["b"] == "binary"
    with pytest.raises(IncompatibleSchemaError, match="neither holds what the other does"):
        _evolved(found(message_shape, table=table), table)
    with pytest.raises(IncompatibleSchemaError, match="the source file says binary"):
        _evolved(found(message_shape, table=table, history=history), table, columns={"b": "binary"})


def test_a_boolean_that_becomes_a_number_stops_the_table_until_the_source_file_says_what_it_is(lake: Lake) -> None:
    """MySQL's BOOLEAN may come as either. Text would have two spellings of one value."""
    one, other = shape(id="long", active="boolean"), shape(id="long", active="int")
    reason = r"'active' changed from (boolean|int) to (boolean|int), (?=.*boolean \(val).*int \(val.*`tidemark rebuild"
    for shapes in ((one, other), (other, one)):
        with pytest.raises(IncompatibleSchemaError, match=reason):
            _evolved(found(*shapes))
        assert _types(_evolved(found(*shapes), columns={"active": "boolean"}))["active"] == "boolean"
    table = published(lake, {"id": "long", "active": "boolean"}, (1, True))
    with pytest.raises(IncompatibleSchemaError, match=reason):
        _evolved(found(one, other, table=table), table)
    promised = _evolved(found(one, other, table=table), table, columns={"active": "boolean"})
    assert _types(promised)["active"] == "boolean"


def test_a_statement_that_makes_a_boolean_a_number_stops_the_table_too(lake: Lake) -> None:
    """Where the messages have no types; one that makes it a text is followed."""
    table = published(lake, {"id": "long", "active": "boolean"}, (1, True))

    def declared(kind: str) -> Found:
        history = SchemaHistory(additions=(Addition("50", 2, "active", kind, None, retyped=True),))
        return found(shape(id="long", active=None), table=table, history=history)

    with pytest.raises(IncompatibleSchemaError, match="'active' changed from boolean to int"):
        _evolved(declared("int"), table)
    with pytest.raises(RebuildNeededError, match="'active' changed from boolean to string"):
        _evolved(declared("string"), table)


def test_a_declared_type_says_more_than_the_values_so_far() -> None:
    """Whole numbers may be of a column with fractions; the type of a message or of the source file stays."""
    history = SchemaHistory(
        additions=tuple(Addition("50", 2, name, "decimal(8, 2)", None, retyped=True) for name in ("n", "told", "mine"))
    )
    known = found(
        shape(id="long", n=None, told="long", mine=None), inferred={"n": "long", "mine": "long"}, history=history
    )
    assert _types(_evolved(known, columns={"mine": "double"})) == {
        "id": "long",
        "n": "decimal(8, 2)",
        "told": "long",
        "mine": "double",
    }


@pytest.mark.parametrize(
    ("name", "promised", "reason"),
    [
        ("_file", {}, "'_file', which Iceberg keeps for itself"),
        ("", {}, "'', which Iceberg keeps for itself"),
        ("_cdc_position", {}, "which Tidemark keeps for itself"),
        ("tidemark k0", {}, "which Tidemark keeps for itself"),
        ("valid_from", {"history": True}, "the history of a table keeps for itself, so leave `history` out"),
        ("_cut", {"feed": True}, "'_cut', which the feed of a table keeps for itself, so leave `feed` out"),
    ],
)
def test_reserved_names_stop_the_table(name: str, promised: dict[str, Any], reason: str) -> None:
    """Engines could not open it, or would take the column for one of Tidemark's own."""
    with pytest.raises(IncompatibleSchemaError, match=reason):
        _evolved(found(shape(id="long", **{name: "int"})), **promised)


@pytest.mark.parametrize("column", ["valid_from", "_cut"])
def test_names_of_a_history_and_a_feed_are_free_where_there_is_none(column: str) -> None:
    """A table without a history may have a column ``valid_from``, and one without a feed a column ``_cut``."""
    assert _types(_evolved(found(shape(id="long", **{column: "date"})))) == {"id": "long", column: "date"}


def test_a_rename_gives_no_column_a_reserved_name() -> None:
    """Nor takes it away where messages have it: a rename is the way to keep both the column and the feed."""
    with pytest.raises(IncompatibleSchemaError, match="'_cut', which the feed"):
        _evolved(found(shape(id="long", a="int"), called={"a": "_cut"}), feed=True, rename={"a": "_cut"})
    kept = found(shape(id="long", _cut="int"), called={"_cut": "cut"})
    assert _types(_evolved(kept, feed=True, rename={"_cut": "cut"})) == {"id": "long", "cut": "int"}


def test_an_encoding_that_the_given_type_cannot_hold_stops_the_table() -> None:
    """The types that can hold it are listed."""
    days = found(shape(id="long", d=("date", Encoding.EPOCH_DAYS)))
    assert _types(_evolved(days)) == {"id": "long", "d": "date"}
    with pytest.raises(IncompatibleSchemaError, match=r"'d' comes as epoch_days, which no double holds"):
        _evolved(days, columns={"d": "double"})


def test_only_columns_that_nobody_types_are_inferred_from_values(lake: Lake) -> None:
    """The source file, the messages and the published table come first; a void column is still open."""
    columns = shape(id="long", typed="int", mine=None, stored=None, open=None, fresh=None)
    table = published(lake, {"id": "long", "stored": "int", "open": "string"}, (1, 1, None), void=["open"])
    promises = source({"columns": {"mine": "date"}})
    assert untyped(found(columns), promises, None) == ["stored", "open", "fresh"]
    assert untyped(found(columns, table=table), promises, table) == ["open", "fresh"]
    ignoring = source({"columns": {"mine": "date"}}, schema="ignore")
    assert untyped(found(columns, table=table), ignoring, table) == ["open"]


def test_promised_columns_that_a_table_never_had_are_named() -> None:
    """A mistake in the source file; an old name is none."""
    promises = source({"columns": {"a": "int", "missing": "int", "old": "int"}})
    known = found(shape(id="long", a="int", new="int"), history=renamed(("50", "old", "new")))
    assert unknown_columns(promises, plan(promises, known, None)) == ["missing"]
