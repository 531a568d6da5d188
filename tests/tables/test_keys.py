"""The keys that messages name one after another, without Spark."""

from __future__ import annotations

import pytest

from support.plans import found, published, shape, source
from tidemark.ddl.changes import Fill
from tidemark.ddl.history import Addition, KeyChange, SchemaHistory
from tidemark.ddl.names import ColumnNames, Renaming
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.lake import Lake
from tidemark.tables.keys import KeySpan, eras_of
from tidemark.tables.plan import KeyEra
from tidemark.tables.planner import plan

_WIDER = SchemaHistory(
    keys=(KeyChange("5", 2, ("ID", "r"), "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, r)"),)
)
_TOLD = shape(id="long", r="string")


def _eras(*spans: tuple[tuple[str, ...] | None, str, str], renamings: tuple[Renaming, ...] = ()) -> list[KeyEra]:
    return eras_of("shop.t", [KeySpan(*span) for span in spans], ColumnNames(renamings, ["id", "nr", "r"]))


def test_a_key_holds_from_its_first_event_to_that_of_the_next() -> None:
    """Messages without a key before any named one, and those that say that there is none, are of a bag of rows."""
    assert _eras((("id",), "1", "4"), (("id", "r"), "5", "9")) == [KeyEra(("id",), ""), KeyEra(("id", "r"), "5")]
    assert _eras((None, "1", "4"), (("id",), "5", "9")) == [KeyEra((), ""), KeyEra(("id",), "5")]
    assert _eras((("id",), "1", "4"), ((), "5", "9")) == [KeyEra(("id",), ""), KeyEra((), "5")]
    assert _eras((None, "1", "7"), (("id",), "5", "9")) == _eras((None, "6", "8"), (("id",), "5", "9"))
    assert _eras((None, "1", "7"), (("id",), "5", "9")) == [KeyEra(("id",), "")]
    assert _eras((("id", "r"), "1", "4"), (("r", "id"), "2", "9")) == [KeyEra(("id", "r"), "")]


def test_a_key_whose_column_was_renamed_is_the_same_key() -> None:
    """It is read with the names of its time."""
    renamed = Renaming("5", 1, "id", "nr")
    assert _eras((("id",), "1", "4"), (("nr",), "6", "9"), renamings=(renamed,)) == [KeyEra(("nr",), "")]


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        (
            [(("id",), "1", "6"), (("r",), "5", "9")],
            r"name different keys \[\('id',\), \('r',\)\].*give one with `key:`",
        ),
        ([(("id",), "1", "9"), (("r",), "5", "6")], "not one after another"),
        ([(("id", "r"), "1", "9"), (("r", "id"), "2", "3"), (("id",), "5", "6")], "not one after another"),
        ([(("id",), "1", "5"), (("r",), "5", "6")], "not one after another"),
        ([(("id",), "1", "4"), (None, "5", "9")], r"later ones name none.*write `key: \[\]`.*write `key: \[id\]`"),
        ([(("id",), "1", "4"), (None, "5", "6"), (("r",), "7", "9")], r"key \['id'\], and later ones name none"),
    ],
    ids=[
        "in_turns",
        "one_within_the_other",
        "within_a_longer_one",
        "from_one_event_on",
        "named_no_more",
        "named_no_more_for_a_while",
    ],
)
def test_keys_whose_order_nobody_can_tell_stop_the_table(
    spans: list[tuple[tuple[str, ...], str, str]], reason: str
) -> None:
    """The reason names the keys, and what to write into the source file."""
    with pytest.raises(IncompatibleSchemaError, match=reason):
        _eras(*spans)


def test_a_statement_that_widens_the_key_of_the_source_file_stops_the_table() -> None:
    """Rows may share the key that the source file gives; with the new one it goes on, whoever wrote it how."""
    widened = found(_TOLD, keys=[], history=_WIDER)
    with pytest.raises(IncompatibleSchemaError, match=r"Write `key: \[id, r\]`.*tidemark rebuild planned shop.t"):
        plan(source({"key": ["id"]}), widened, None)
    assert plan(source({"key": ["id", "r"]}), widened, None).key == ("id", "r")
    assert plan(source({"key": ["r"]}), found(_TOLD, keys=[], history=SchemaHistory()), None).key == ("r",)


def test_a_late_default_in_a_column_of_the_key_has_the_table_built_again(lake: Lake) -> None:
    """Old rows have it in their key, and were set aside without it."""
    added = SchemaHistory(additions=(Addition("5", 2, "r", "string", Fill("eu"), retyped=False),))
    table = published(lake, {"id": "long", "r": "string"}, key=["id", "r"])
    late = found(_TOLD, table=table, keys=[("id", "r")], history=added)
    with pytest.raises(RebuildNeededError, match="'r', a part of the key"):
        plan(source(), late, table)
    assert plan(source(), late, table, anew=True).defaults["r"].fill == Fill("eu")
