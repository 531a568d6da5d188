"""What a plan gets: target, key, columns and their types, without Spark."""

from __future__ import annotations

import pytest
from pyiceberg.types import BooleanType

from support.plans import SOURCE, found, published, renamed, shape, source
from tidemark.ddl.changes import Fill
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.ddl.names import Renaming
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.lake import Lake
from tidemark.tables.plan import Default
from tidemark.tables.planner import plan
from tidemark.tables.schemas import DELETED
from tidemark.values.table_columns import TableColumn

ID_A = shape(id="long", a="string")


def test_a_table_that_begins_has_the_columns_of_its_messages() -> None:
    """Names, types and order come from the shapes; the target is made from the names in the messages."""
    made = plan(source(), found(shape(id="long", a="string", n="decimal(8, 2)")), None)
    assert made.target == (SOURCE, "t")
    assert made.key == ("id",)
    assert made.columns == (
        TableColumn("id", "long"),
        TableColumn("a", "string"),
        TableColumn("n", "decimal(8, 2)"),
    )
    assert (made.today, made.void, made.begun, made.defaults) == ({}, set(), {}, {})
    assert (made.soft, made.keeps_versions, made.pairs_updates) == (False, False, False)


def test_the_source_file_decides_types_before_the_messages() -> None:
    """Its type is taken though messages have another; columns that it does not name keep theirs."""
    made = plan(source({"columns": {"a": "binary"}}), found(ID_A), None)
    assert made.columns == (TableColumn("id", "long"), TableColumn("a", "binary"))


def test_messages_decide_types_before_the_values() -> None:
    """A type that was inferred from values counts only where messages have none."""
    inferred = found(shape(id="long", a=None, b="int"), inferred={"a": "date", "b": "date"})
    assert plan(source(), inferred, None).columns == (
        TableColumn("id", "long"),
        TableColumn("a", "date"),
        TableColumn("b", "int"),
    )


@pytest.mark.parametrize(
    ("promised", "named", "key"),
    [
        ({"key": ["a"]}, [("id",)], ("a",)),
        ({"key": []}, [("id",)], ()),
        ({}, [("id", "a")], ("id", "a")),
        ({}, [(), ("a",)], ("a",)),
        ({}, [()], ()),
        ({}, [], ()),
    ],
    ids=["source_file", "source_file_says_none", "messages", "some_messages", "messages_say_none", "nobody"],
)
def test_the_key_is_that_of_the_source_file_else_of_the_messages(
    promised: dict[str, list[str]], named: list[tuple[str, ...]], key: tuple[str, ...]
) -> None:
    """Where neither names a key, the table is a bag of rows."""
    assert plan(source(promised), found(ID_A, keys=named), None).key == key


def test_a_published_table_keeps_its_key_where_nobody_names_one(lake: Lake) -> None:
    """Messages without a key do not take it away."""
    table = published(lake, {"id": "long", "a": "string"})
    assert plan(source(), found(ID_A, table=table, keys=[]), table).key == ("id",)


def test_messages_that_name_different_keys_stop_the_table() -> None:
    """Nobody can say which of them is right; the source file can."""
    with pytest.raises(IncompatibleSchemaError, match=r"name different keys \[\('a',\), \('id',\)\]"):
        plan(source(), found(ID_A, keys=[("id",), ("a",)]), None)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [(["a"], r"changed from \['a'\] to \['id'\]"), ([], r"as a bag of rows, and now has the key \['id'\]")],
)
def test_a_key_that_changed_stops_the_table(lake: Lake, stored: list[str], reason: str) -> None:
    """Its rows would have to be told apart by the new key. A rebuild does that.

    The run requests the rebuild where messages name the key.
    """
    table = published(lake, {"id": "long", "a": "string"}, key=stored)
    with pytest.raises(IncompatibleSchemaError, match=reason):
        plan(source({"key": ["id"]}), found(ID_A, table=table, keys=[]), table)
    with pytest.raises(RebuildNeededError, match="messages name the key"):
        plan(source(), found(ID_A, table=table), table)
    assert plan(source(), found(ID_A, table=table), table, anew=True).key == ("id",)


def test_a_key_column_that_no_message_has_stops_the_table() -> None:
    """It is named."""
    with pytest.raises(IncompatibleSchemaError, match="no message has the key column 'nr'"):
        plan(source({"key": ["nr"]}), found(ID_A), None)


def test_a_key_is_known_by_the_name_that_it_has_today(lake: Lake) -> None:
    """Neither the source file nor old messages have to follow the rename of a key column."""
    table = published(lake, {"id": "long", "a": "string"}, (1, "x"))
    known = found(shape(nr="long", a="string"), table=table, history=renamed(("50", "id", "nr")))
    made = plan(source({"key": ["id"]}), known, table)
    assert made.key == ("nr",)
    assert made.today == {"id": "nr"}
    assert made.stored("nr") == "id"


def test_a_history_and_soft_deletes_need_a_key() -> None:
    """Rows that nothing tells apart have no versions and no marks."""
    for promised in ({"history": True}, {"deletes": "soft"}):
        with pytest.raises(IncompatibleSchemaError, match="nothing tells its rows apart"):
            plan(source({"key": [], **promised}), found(ID_A), None)
    made = plan(source({"history": True, "deletes": "soft"}), found(ID_A), None)
    assert (made.keeps_versions, made.soft) == (True, True)


def test_soft_deletes_do_not_become_hard_by_themselves(lake: Lake) -> None:
    """A table with marked rows stops; a rebuilt table has none."""
    table = published(lake, {"id": "long", "a": "string"})
    with table.update_schema() as update:
        update.add_column((DELETED,), BooleanType())
    table = lake.load(table.name())
    with pytest.raises(IncompatibleSchemaError, match="holds rows that were deleted softly"):
        plan(source(), found(ID_A, table=table), table)
    assert plan(source({"deletes": "soft"}), found(ID_A, table=table), table).soft
    assert not plan(source(), found(ID_A, table=table), table, anew=True).soft


def test_a_published_table_of_another_source_is_not_taken(lake: Lake) -> None:
    """The reason names its owner."""
    table = published(lake, {"id": "long", "a": "string"})
    with pytest.raises(IncompatibleSchemaError, match=f"holds shop.t of source {SOURCE}"):
        plan(source(source="other"), found(ID_A, table=table), table)


def test_a_strict_source_refuses_each_change_by_name(lake: Lake) -> None:
    """A new column, another type, a rename and a drop are listed; a table that begins changes nothing."""
    table = published(lake, {"id": "long", "a": "string", "b": "string", "n": "int"}, (1, "x", "y", 1))
    known = found(
        shape(id="long", c="string", n="long", d="date"),
        table=table,
        history=renamed(("50", "a", "c"), ("51", "b", None)),
    )
    with pytest.raises(IncompatibleSchemaError) as refused:
        plan(source(schema="strict"), known, table)
    changes = "'a' is called 'c', 'b' is gone, 'n' was int and is long, 'd' is new"
    assert f"says `schema: strict`: {changes}. To allow it" in str(refused.value)
    assert len(plan(source(schema="strict"), found(ID_A), None).columns) == 2
    assert [column.name for column in plan(source(), known, table).columns] == ["id", "c", "n", "d"]


def test_a_source_that_ignores_changes_keeps_the_columns_and_takes_wider_types(lake: Lake) -> None:
    """A new column is left out."""
    table = published(lake, {"id": "long", "n": "int"}, (1, 1))
    made = plan(source(schema="ignore"), found(shape(id="long", n="long", d="date"), table=table), table)
    assert made.columns == (TableColumn("id", "long"), TableColumn("n", "long"))


def test_the_constant_of_an_added_column_is_kept_under_the_name_of_today(lake: Lake) -> None:
    """Rows from before the statement got it, so it stands in the plan though the column was renamed since."""
    table = published(lake, {"id": "long"}, (1,))
    history = SchemaHistory(
        renamings=(Renaming("60", 2, "n", "m"),),
        additions=(
            Addition("50", 2, "n", "int", Fill("5"), retyped=False),
            Addition("55", 2, "plain", "int", None, retyped=False),
        ),
    )
    known = found(shape(id="long", m="int", plain="int"), table=table, history=history)
    made = plan(source(), known, table)
    assert made.defaults == {"m": Default("50", 2, Fill("5"))}
    assert made.new_defaults() == [(TableColumn("m", "int"), Default("50", 2, Fill("5")))]


def test_a_statement_may_add_a_column_under_the_name_that_it_takes_from_another(lake: Lake) -> None:
    """The constant belongs to the new column, not to the one that was renamed."""
    table = published(lake, {"id": "long", "a": "string"}, (1, "x"))
    history = SchemaHistory(
        renamings=(Renaming("50", 2, "a", "b"),), additions=(Addition("50", 2, "a", "int", Fill("5"), retyped=False),)
    )
    made = plan(source(), found(shape(id="long", b="string", a="int"), table=table, history=history), table)
    assert made.defaults == {"a": Default("50", 2, Fill("5"))}
    assert made.today == {"a": "b", "tidemark new a": "a"}


def test_a_constant_that_published_rows_got_already_is_not_new(lake: Lake) -> None:
    """The column was added in the batch that the table stands at."""
    table = published(lake, {"id": "long", "n": "int"}, (1, 5))
    history = SchemaHistory(additions=(Addition("5", 1, "n", "int", Fill("5"), retyped=False),))
    made = plan(source(), found(shape(id="long", n="int"), table=table, history=history), table)
    assert (made.defaults, made.new_defaults()) == ({"n": Default("5", 1, Fill("5"))}, [])


def test_no_constant_is_new_where_all_events_are_folded() -> None:
    """Each event gets it as it is read. A null of a row that an earlier key left came with its event, and stays."""
    history = SchemaHistory(additions=(Addition("50", 2, "n", "int", Fill("5"), retyped=False),))
    made = plan(source(), found(shape(id="long", n="int"), history=history), None)
    assert (made.defaults, made.new_defaults()) == ({"n": Default("50", 2, Fill("5"))}, [])


def test_only_a_bag_pairs_the_images_of_an_update() -> None:
    """With a key the two images need no partner; without one the removed row is the old image's."""
    tuples = {"format": "datahub_tuple"}
    assert plan(source({"key": []}, **tuples), found(ID_A), None).pairs_updates
    assert not plan(source({"key": ["id"]}, **tuples), found(ID_A), None).pairs_updates
    assert not plan(source({"key": []}), found(ID_A), None).pairs_updates
