"""What is switched off keeps the values that its table hides by now, and each run says so until it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from tidemark.lake.commits import commit_files
from tidemark.lake.feeds import Fed, summary_of
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed, history, whole
from tidemark.lake.properties import OBJECT_PROPERTY, RULES_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.sources.model import Source
from tidemark.tables.leftovers import remarks

NAME = "left"
MASKED: dict[str, Any] = {"masks": {"mail": "hash"}}
HIDES: dict[str, Any] = {"mask": {"mail": "hash"}, "exclude": ["ssn"]}
RULES: dict[str, Any] = {**MASKED, "left_out": ["ssn"]}


def _table(lake: Lake, name: Identifier, rules: Mapping[str, Any], *columns: str) -> Table:
    properties = {OBJECT_PROPERTY: name.name, **({RULES_PROPERTY: json.dumps(rules)} if rules else {})}
    return lake.ensure(name, pa.schema([(column, pa.string()) for column in ("id", *columns)]), properties)


def _published(lake: Lake, name: str, rules: Mapping[str, Any], *columns: str) -> Identifier:
    """Publish a table without rows, in a cut of its own."""
    target, ledger = Identifier(NAME, name), Ledger(lake, NAME)
    _table(lake, target, rules, *columns)
    cut = 1 + max((row.cut for row in ledger.cuts()), default=0)
    ledger.replace(TableRow, [TableRow(cut=cut, object=name, target=str(target), state="published", batch=cut)])
    ledger.replace(CutRow, [CutRow(cut=cut, state="published", batch=cut)])
    return target


def _remarks(lake: Lake, name: str, promised: Mapping[str, Any]) -> list[str]:
    fields = {"source": NAME, "format": "canal_json", "landing": "x", "mask_secret": "${NO_SECRET}"}
    source = Source.model_validate({**fields, "tables": {name: {"key": ["id"], **promised}}})
    return list(remarks(lake, Ledger(lake, NAME), source))


def test_a_history_that_was_switched_off_is_reported_until_it_goes(lake: Lake) -> None:
    """With the columns that it shows and its table hides, and what drops it; not where it is asked for again."""
    target = _published(lake, "people", RULES, "mail", "name")
    _table(lake, history(target), {}, "mail", "ssn", "name")
    (remark,) = _remarks(lake, "people", HIDES)
    assert remark.startswith("left.people__history has mail, ssn as they were before left.people hid them.")
    assert f"DROP TABLE {lake.spark_name(history(target))} PURGE" in remark
    assert not _remarks(lake, "people", {**HIDES, "history": True})
    lake.catalog.drop_table(history(target))
    assert not _remarks(lake, "people", HIDES)


@pytest.mark.parametrize(
    ("rules", "reported"),
    [(MASKED, False), ({"masks": {"mail": "last4"}}, True), ({"masks": {"name": "hash"}}, True)],
    ids=["the_same", "another_mask", "of_another_column"],
)
def test_only_values_that_the_table_shows_otherwise_count(
    lake: Lake, request: pytest.FixtureRequest, rules: dict[str, Any], *, reported: bool
) -> None:
    """A history that was masked as its table is hides what the table hides."""
    name = request.node.callspec.id
    target = _published(lake, name, MASKED, "mail")
    _table(lake, history(target), rules, "mail", "name")
    assert bool(_remarks(lake, name, {"mask": {"mail": "hash"}})) is reported


def test_a_column_counts_under_the_names_that_it_had(lake: Lake) -> None:
    """The source renamed it after the history was switched off."""
    target = _published(lake, "renamed", MASKED, "post")
    with lake.load(target).update_schema() as update:
        update.rename_column("post", "mail")
    _table(lake, history(target), {}, "post")
    (remark,) = _remarks(lake, "renamed", {"mask": {"mail": "hash"}})
    assert "has post as" in remark


@pytest.mark.parametrize("masks", [{}, {"mail": "hash"}], ids=["plain", "masked"])
def test_a_feed_says_how_it_was_masked(lake: Lake, request: pytest.FixtureRequest, masks: dict[str, str]) -> None:
    """It stands in the snapshot that its newest changes came with."""
    name = f"fed_{request.node.callspec.id}"
    target = _published(lake, name, MASKED, "mail")
    state = Fed(snapshot=1, ordinal=1, key=["id"], masks=masks)
    commit_files(_table(lake, feed(target), {}, "mail"), [], summary=summary_of(state))
    assert [each.partition(" ")[0] for each in _remarks(lake, name, {"mask": {"mail": "hash"}})] == (
        [] if masks else [f"{target}__feed"]
    )


def test_whole_rows_that_nothing_is_made_of_any_more_count(lake: Lake) -> None:
    """With ``where`` or ``derive`` they are in use."""
    target = _published(lake, "some", MASKED, "mail")
    _table(lake, whole(target), {}, "mail")
    assert [each.partition(" ")[0] for each in _remarks(lake, "some", {"mask": {"mail": "hash"}})] == [
        f"state.{NAME}__some__whole"
    ]
    assert not _remarks(lake, "some", {"mask": {"mail": "hash"}, "where": "id = 'a'"})
