"""Renames are judged by what published tables record, whatever the source file makes of them today; without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tidemark.compaction.cut_doubts import doubts_by_table
from tidemark.compaction.decisions import Stopped
from tidemark.compaction.recorded_names import recorded_names, stale
from tidemark.compaction.renamed import known_to, outdated, waiting_for
from tidemark.compaction.routing import Routing
from tidemark.compaction.run import Run, Standing
from tidemark.ddl.lineages import Segment
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY, SEGMENTS_PROPERTY
from tidemark.ledger.check_rows import RENAMED
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow, CutRow, StatementRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.positions import encode_position
from tidemark.sources.model import Source

A, B, OTHER, LOG = "shop.a", "shop.b", "shop.other", "shop.log_1"
AT = encode_position((1, 1, 500))
EMPTIED, TAKEN = (Segment(A, AT, None),), (Segment(A, "", AT), Segment(B, AT, None))
_numbers = count(1)


class _Published:
    """A source whose table ``a`` became ``b`` in batch 2, and whose tables are published as of batch 3."""

    def __init__(self, lake: Lake, statement: str = "RENAME TABLE a TO b") -> None:
        self.lake, self.name = lake, f"recorded_{next(_numbers)}"
        self.ledger = Ledger(lake, self.name)
        contents = [
            ContentRow(
                batch=batch, object=name, database="shop", schema=None, name=name.partition(".")[2], operation="INSERT",
                shape="s", partial=False, key=None, half=False, events=1,
            )
            for batch, name in ((1, A), (1, OTHER), (1, LOG), (3, B))
        ]  # fmt: skip
        self.ledger.replace(ContentRow, contents)
        self.statement = StatementRow(
            batch=2, database="shop", schema=None, name="b", position=AT, dialect="mysql", statement=statement
        )
        self.ledger.replace(StatementRow, [self.statement])
        self.ledger.replace(CutRow, [CutRow(cut=1, state=CutState.PUBLISHED, batch=3)])

    def publish(self, **recorded: Iterable[Segment]) -> None:
        """Publish tables in the first cut; each records the names of its events, none the usual one."""
        rows = []
        for own, segments in recorded.items():
            name, target = f"shop.{own}", Identifier(self.name, own)
            properties = {OBJECT_PROPERTY: name}
            if segments:
                properties[SEGMENTS_PROPERTY] = msgspec.json.encode(list(segments)).decode()
            made = self.lake.ensure(target, Schema(NestedField(1, "id", LongType())), properties)
            made.append(pa.table({"id": pa.array([1], pa.int64())}))
            state = TableState.PUBLISHED
            rows.append(TableRow(cut=1, object=name, target=str(target), state=state, batch=3))
        self.ledger.replace(TableRow, rows)

    def source(self, **tables: Any) -> Source:
        """The source file; ``tables`` has more entries, by the last part of their names."""
        entries = {f"shop.{name.replace('_all', '_*')}": entry for name, entry in tables.items()}
        fields = {"source": self.name, "format": "debezium_json", "landing": "in/*"}
        return Source.model_validate({**fields, "tables": {B: {"key": ["id"]}, **entries}})

    def run(self, source: Source, *requests: str) -> Run:
        """A run of compact that goes on from the first cut."""
        published = self.ledger.published_tables()
        routed = Routing.of(source, self.ledger, published, 3)
        fields = {"lake": self.lake, "ledger": self.ledger, "source": source, "standing": Standing(batch=3)}
        more = {"published": routed.current(published), "routed": routed, "requests": dict.fromkeys(requests, "")}
        return cast(Run, SimpleNamespace(**fields, **more))

    def built_anew(self, source: Source, *requests: str) -> list[str]:
        """The tables that such a run builds anew."""
        return [each.object for each in outdated(self.run(source, *requests), known_to(self.ledger, source, 4))]


FOLDS_OTHERS = {"log_all": {"target": "logs"}}


def test_an_entry_that_folds_other_tables_changes_nothing_about_a_rename(lake: Lake) -> None:
    """Neither what is followed nor what is built."""
    published = _Published(lake)
    published.publish(a=EMPTIED, b=TAKEN, other=())
    source = published.source(**FOLDS_OTHERS)
    known = known_to(published.ledger, source, 4)
    assert {name: lineage.segments for name, lineage in known.tables.items()} == {A: EMPTIED, B: TAKEN}
    assert known.followed == {(AT, published.statement.statement)}
    assert published.built_anew(source) == []


@pytest.mark.parametrize(
    "entries",
    [{"a": {"target": "logs", "add": {"of": "{table}"}}}, {"b": {"add": {"of": "{table}"}}}, {"?": {"target": "all"}}],
    ids=["the_old_name", "the_new_name", "both"],
)
def test_a_rename_of_a_shard_is_not_followed(lake: Lake, entries: dict[str, Any]) -> None:
    """Nor is a rename that gives a table the name of one."""
    published = _Published(lake)
    tables = {f"shop.{name}": entry for name, entry in entries.items()}
    fields = {"source": published.name, "format": "debezium_json", "landing": "in/*", "tables": tables}
    known = known_to(published.ledger, Source.model_validate(fields), 4)
    assert (known.tables, known.followed) == ({}, frozenset())


def test_what_other_renames_of_the_statement_do_is_not_followed_either(lake: Lake) -> None:
    """Its renames are one step; another statement is followed."""
    published = _Published(lake, "RENAME TABLE a TO b, log_1 TO log_2")
    assert known_to(published.ledger, published.source(**FOLDS_OTHERS), 4).tables == {}


def test_a_table_that_lost_a_rename_which_it_records_is_built_anew(lake: Lake) -> None:
    """And so is each table that its events go to, or came from; not one that records what is known."""
    published = _Published(lake)
    published.publish(a=EMPTIED, b=TAKEN, other=())
    assert published.built_anew(published.source()) == []
    folded = published.source(a={"target": "logs", "add": {"of": "{table}"}})
    assert published.built_anew(folded) == [B]


def test_a_name_that_was_never_published_gets_its_events_back(lake: Lake) -> None:
    """Where the rename came with the first rows, ``a`` was never published."""
    published = _Published(lake)
    published.publish(b=TAKEN, other=())
    source = published.source(b={"key": ["id"], "add": {"of": "{table}"}})
    assert published.built_anew(source) == [A]  # b is folded now, and its own table stays as it is
    again = _Published(lake, "RENAME TABLE a TO b, log_1 TO log_2")
    again.publish(b=TAKEN, other=())
    assert again.built_anew(again.source(**FOLDS_OTHERS)) == [A, B]
    assert again.built_anew(again.source(**FOLDS_OTHERS), A, B) == []


def test_a_rename_that_was_approved_unfollowed_is_followed_once_nothing_hinders_it(lake: Lake) -> None:
    """Both tables are built anew: one has rows that are the other's."""
    published = _Published(lake)
    published.publish(a=(), b=(), other=())
    assert published.built_anew(published.source()) == [A, B]
    alone = _Published(lake)
    alone.publish(a=())
    assert alone.built_anew(alone.source()) == [A, B]


def test_a_table_that_another_one_took_the_place_of_records_nothing(lake: Lake) -> None:
    """What stands there are the names of the other."""
    published = _Published(lake)
    published.publish(a=EMPTIED, b=TAKEN)
    with lake.load(Identifier(published.name, "a")).transaction() as transaction:
        transaction.set_properties({OBJECT_PROPERTY: B})
    recorded = recorded_names(lake, published.ledger, [A, B, OTHER])
    assert recorded == {B: TAKEN}
    assert stale(recorded, known_to(published.ledger, published.source(), 4)) == set()


def test_tables_wait_for_one_that_is_stopped_before_it_follows_the_source_file(lake: Lake) -> None:
    """None of its partners may take rows that it still shows."""
    published = _Published(lake, "RENAME TABLE a TO b, log_1 TO log_2")
    published.publish(a=EMPTIED, b=TAKEN, other=())
    source = published.source(**FOLDS_OTHERS)
    run, now = published.run(source, A, B), known_to(published.ledger, source, 4)
    for name, waiting in ((B, {A, B}), (OTHER, set())):
        stop = cast(Stopped, SimpleNamespace(found=SimpleNamespace(object=name)))
        assert waiting_for(run, now, [stop]) == waiting


def test_a_cut_that_loses_a_rename_is_held(lake: Lake) -> None:
    """Its rows were published under another name; a cut that follows it as before is not."""
    published = _Published(lake)
    published.publish(a=EMPTIED, b=TAKEN)
    cut = CutRow(cut=2, state=CutState.CANDIDATE, batch=4)
    target = str(Identifier(published.name, "b"))
    rows = [TableRow(cut=2, object=B, target=target, state=TableState.CANDIDATE, batch=4)]
    held = {}
    for title, tables in (("others", FOLDS_OTHERS), ("its own", {"a": {"target": "logs", "add": {"of": "{table}"}}})):
        found = doubts_by_table(lake, published.ledger, published.source(**tables), cut, rows)
        held[title] = [doubt.invariant for doubts in found.values() for doubt in doubts]
    assert held == {"others": [], "its own": [RENAMED]}
