"""The ledger: what was landed, decoded, applied and published, kept in the lake beside the data.

Twelve Iceberg tables in the namespace ``ledger``, each partitioned by source. They are small (rows count files, batches
and cuts, never messages), so they are read and written here without Spark. Nothing of the data depends on them alone:
the markers in the snapshot summaries decide what was done, the ledger tells it to people, and the cuts bind the tables
of a source together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from tidemark.events import TableId
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import Writer
from tidemark.lake.filters import above, among, equals
from tidemark.lake.lake import Lake
from tidemark.lake.properties import TABLE_PROPERTIES
from tidemark.lake.retries import retried
from tidemark.ledger.schemas import SCHEMAS
from tidemark.ledger.tally import Content, LoggedStatement, Tally

Row = dict[str, Any]

_retried = retried(CommitFailedException, ValidationException, attempts=12)
"""Two sources may write the ledger at once; their commits do not conflict, they only have to queue. A commit that finds
its files replaced already (it was written, and its answer got lost) writes the same rows again."""

BY_HAND = " by hand"
"""Ends the asking for a rebuild that came from a person."""


class Ledger:
    """The ledger of one source."""

    def __init__(self, lake: Lake, source: str) -> None:
        self._lake = lake
        self._source = source

    def read(self, name: str, *conditions: BooleanExpression) -> list[Row]:
        """Rows of one ledger table for this source, in no order."""
        table = self._lake.find(("ledger", name))
        if table is None:
            return []
        rows: list[Row] = table.scan(row_filter=self._where(*conditions)).to_arrow().to_pylist()
        return rows

    def replace(self, name: str, rows: Sequence[Row], *conditions: BooleanExpression) -> None:
        """Put rows in the place of those of this source that the conditions name (none: only append)."""
        where = self._where(*conditions) if conditions else None
        _replace(self._lake, name, self._source, self._stamped(name, rows), where)

    def forget(self, name: str, *conditions: BooleanExpression) -> None:
        """Delete rows of this source."""
        _delete(self._lake, name, self._source, self._where(*conditions))

    def rewrite(self, name: str, least: int) -> None:
        """Put this source's rows of one ledger table into one file, if they lie in ``least`` files or more."""
        _rewrite(self._lake, name, self._source, self._where(), least)

    def last_cut(self) -> Row | None:
        """The newest cut, whatever its state."""
        return max(self.read("cuts"), key=lambda row: int(row["cut"]), default=None)

    def published_tables(self) -> dict[str, Row]:
        """Per object the newest row that says where its published table stands, or why it stopped before it."""
        published = {row["cut"] for row in self.read("cuts", equals("state", "published"))}
        newest: dict[str, Row] = {}
        for row in sorted(self.read("tables"), key=lambda row: int(row["cut"])):
            if row["cut"] in published:
                newest[row["object"]] = row
        return newest

    def targets(self) -> dict[str, str]:
        """Per object the table that it was last published as; a stopped one is published as it was before."""
        rows = sorted(self.read("tables"), key=lambda row: int(row["cut"]))
        return {row["object"]: row["target"] for row in rows if row["target"] is not None}

    def ask_for_rebuild(self, objects: Iterable[str], *, by_hand: bool = False) -> None:
        """Let the next compact build tables again; asked anew, what was built for an earlier asking is not enough."""
        asked = datetime.now(UTC).isoformat() + (BY_HAND if by_hand else "")
        rows = [{"object": name, "asked": asked} for name in sorted(set(objects))]
        if rows:
            self.replace("rebuilds", rows, among("object", [row["object"] for row in rows]))

    def rebuilds(self) -> dict[str, str]:
        """Objects that are to be built again, and the asking; it ends in ``BY_HAND`` where a person asked."""
        return {row["object"]: row["asked"] for row in self.read("rebuilds")}

    def rebuilt(self, asked: Iterable[str]) -> None:
        """Drop the askings that were answered."""
        if asked := sorted(set(asked)):
            self.forget("rebuilds", among("asked", asked))

    def landed_files(self, batch: int) -> dict[str, Row]:
        """Files by path that are in ``raw``, which holds batches up to ``batch``."""
        return {row["path"]: row for row in self.read("files") if row["batch"] <= batch}

    def forget_attempts(self, batch: int) -> None:
        """Drop the files of an attempt that wrote them here and never reached ``raw``."""
        self.forget("files", above("batch", batch))

    def tell_contents(
        self, found: Mapping[int, Sequence[Tally]], done: int, *, instead_of: BooleanExpression | None = None
    ) -> None:
        """Write what batches hold of each table, in place of what an attempt left of batches above ``done``.

        Args:
            found: what was counted, by batch.
            done: batches up to it are in the change log, and their shapes stay.
            instead_of: other rows to replace than those above ``done``.
        """
        replaced = above("batch", done) if instead_of is None else instead_of
        counts = Counter[tuple[int, Content]]()
        shapes: dict[tuple[str, str], Row] = {}
        for batch, tallies in sorted(found.items()):
            for tally in tallies:
                for content, count in tally.contents:
                    counts[batch, content] += count
                for table, shape, columns in tally.shapes:
                    told = {"batch": batch, "object": str(table), "shape": shape, "columns": columns}
                    shapes.setdefault((str(table), shape), told)
        if counts:
            self.replace("contents", [_content(*told, count) for told, count in counts.items()], replaced)
        else:
            self.forget("contents", replaced)
        known = {(row["object"], row["shape"]) for row in self.read("shapes") if row["batch"] <= done}
        fresh = [row for key, row in shapes.items() if key not in known]
        if fresh:
            self.replace("shapes", fresh, above("batch", done))
        statements = [
            _ddl(batch, statement)
            for batch, tallies in sorted(found.items())
            for tally in tallies
            for statement in tally.statements
        ]
        if statements:
            self.replace("ddl", statements, replaced)
        elif instead_of is not None:
            self.forget("ddl", replaced)

    def _where(self, *conditions: BooleanExpression) -> BooleanExpression:
        where: BooleanExpression = equals("source", self._source)
        for condition in conditions:
            where = And(where, condition)
        return where

    def _stamped(self, name: str, rows: Sequence[Row]) -> pa.Table:
        now = datetime.now(UTC)
        stamped = [{"source": self._source, "at": now, **row} for row in rows]
        return pa.Table.from_pylist(stamped, schema=SCHEMAS[name])


def _content(batch: int, content: Content, events: int) -> Row:
    return {
        "batch": batch,
        "object": str(content.table),
        "database": content.table.database,
        "schema": content.table.schema,
        "name": content.table.name,
        "operation": content.operation,
        "shape": content.shape,
        "partial": content.partial,
        "key": content.key,
        "half": content.half,
        "events": events,
    }


def _ddl(batch: int, told: LoggedStatement) -> Row:
    table = told.table or TableId(None, None, "")
    return {
        **({} if told.at is None else {"at": told.at}),
        "batch": batch,
        "database": table.database,
        "schema": table.schema,
        "name": table.name or None,
        "position": told.position,
        "dialect": told.dialect,
        "statement": told.text,
    }


@_retried
def _replace(lake: Lake, name: str, source: str, rows: pa.Table, where: BooleanExpression | None) -> None:
    table = lake.ensure(("ledger", name), rows.schema, TABLE_PROPERTIES, partition_by=["source"])
    _exchange(lake, table, source, rows, where)


@_retried
def _rewrite(lake: Lake, name: str, source: str, where: BooleanExpression, least: int) -> None:
    table = lake.load(("ledger", name))
    found = table.scan(row_filter=where)
    if len(tasks := list(found.plan_files())) >= least:
        _write(lake, table, source, found.to_arrow().cast(SCHEMAS[name]), tasks)


@_retried
def _delete(lake: Lake, name: str, source: str, where: BooleanExpression) -> None:
    table = lake.find(("ledger", name))
    if table is not None:
        _exchange(lake, table, source, SCHEMAS[name].empty_table(), where)


def _exchange(lake: Lake, table: Table, source: str, rows: pa.Table, where: BooleanExpression | None) -> None:
    """Put rows in the place of those that ``where`` names, in one commit.

    The files that hold them are replaced, by one that also has the other rows of theirs: a commit costs much the same
    whatever is in it, so there is one, where PyIceberg's overwrite makes two or three.
    """
    if where is None:
        _write(lake, table, source, rows, [])
        return
    tasks = list(table.scan(row_filter=where).plan_files())
    _write(lake, table, source, pa.concat_tables([rows, *_others(table, tasks, where, rows.schema)]), tasks)


def _others(
    table: Table, tasks: Iterable[FileScanTask], where: BooleanExpression, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Rows of files that ``where`` does not name."""
    told = table.schema()
    named = expression_to_pyarrow(bind(told, where, case_sensitive=True), told)
    for task in tasks:
        rows = ArrowScan(table.metadata, table.io, told, AlwaysTrue()).to_table([task])
        yield rows.filter(named.is_null() | ~named).select(schema.names).cast(schema)


def _write(lake: Lake, table: Table, source: str, rows: pa.Table, instead_of: Sequence[FileScanTask]) -> None:
    writer = Writer(lake.target(table, rows.schema))
    for batch in rows.combine_chunks().to_batches():
        writer.write((source,), batch)
    commit_files(table, writer.close(), replaced=[task.file for task in instead_of])
