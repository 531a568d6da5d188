"""The ledger: what was landed, decoded, applied and published, kept in the lake beside the data.

Iceberg tables in the namespace ``ledger``, each partitioned by source: rows count files, batches and cuts, never
messages, so no Spark is needed for them. Nothing of the data depends on them alone: the markers in the snapshot
summaries decide what was done, the ledger shows it to people, and the cuts bind the tables of a source together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression

from tidemark.events import Shape
from tidemark.lake.filters import above, among, equals, not_null
from tidemark.lake.names import Identifier
from tidemark.ledger import offset_rows, storage
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.cut_marks import CutMarks
from tidemark.ledger.erasure_rows import ErasureRow
from tidemark.ledger.landing_rows import IntervalRow, KnownFileRow, RefusalRow
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.order_rows import DisorderRow, SpanRow
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import (
    BatchRow,
    ContentRow,
    CutRow,
    FileRow,
    LedgerRow,
    RebuildRow,
    ReprocessingRow,
    ShapeRow,
    SourceFileRow,
    StatementRow,
    TableRow,
    TransactionRow,
)
from tidemark.ledger.schemas import SCHEMAS
from tidemark.ledger.sealed_statements import unsealed
from tidemark.ledger.states import CutState
from tidemark.ledger.tally import Content, Span, Tally

BY_HAND = " by hand"
"""Ends a request for a rebuild that a person made."""

R = TypeVar("R", bound=LedgerRow)


class Ledger(CutMarks):
    """The ledger of one source."""

    def read(self, name: str, *conditions: BooleanExpression, columns: Sequence[str] = ("*",)) -> list[dict[str, Any]]:
        """Return the rows of one ledger table for this source as dictionaries, stamp and all, in no order."""
        return list(self.arrow(name, *conditions, columns=columns).to_pylist())

    def arrow(self, name: str, *conditions: BooleanExpression, columns: Sequence[str] = ("*",)) -> pa.Table:
        """Return the same rows as a table of Arrow."""
        table = storage.find(self._lake, name)
        return SCHEMAS[name].empty_table() if table is None else storage.read(table, self._source, conditions, columns)

    def files(self, *conditions: BooleanExpression) -> list[FileRow]:
        """Return the files that were landed, and the files of an attempt that never reached ``raw``."""
        return self._rows(FileRow, conditions)

    def known_files(self) -> list[KnownFileRow]:
        """Return the files whose bytes had landed when land read them."""
        return self._rows(KnownFileRow)

    def refusals(self) -> list[RefusalRow]:
        """Return the files that the newest land refused."""
        return self._rows(RefusalRow)

    def intervals(self) -> list[IntervalRow]:
        """Return the intervals that land has run for."""
        return self._rows(IntervalRow)

    def batches(self, *conditions: BooleanExpression) -> list[BatchRow]:
        """Return what became of the messages of each batch."""
        return self._rows(BatchRow, conditions)

    def disorders(self, *conditions: BooleanExpression) -> list[DisorderRow]:
        """Return the tables for which names of files and times of events disagreed."""
        return self._rows(DisorderRow, conditions)

    def contents(self, *conditions: BooleanExpression) -> list[ContentRow]:
        """Return what change events the batches hold."""
        return self._rows(ContentRow, conditions)

    def spans(self, *conditions: BooleanExpression) -> list[SpanRow]:
        """Return what the change events of each table span in each batch."""
        return self._rows(SpanRow, conditions)

    def offsets(self, *conditions: BooleanExpression) -> list[OffsetsRow]:
        """Return the offsets of Kafka's records that each batch holds."""
        return self._rows(OffsetsRow, conditions)

    def shapes(self, *conditions: BooleanExpression) -> list[ShapeRow]:
        """Return the shapes that the change log refers to."""
        return self._rows(ShapeRow, conditions)

    def shapes_of(self, *objects: str) -> dict[str, Shape]:
        """Return by id every shape that the events of tables were ever delivered under."""
        return {row.shape: row.parsed() for row in self.shapes(among("object", objects))}

    def shapes_by_object(self, objects: Iterable[str]) -> dict[str, dict[str, Shape]]:
        """Return by table the shapes of its events by their ids, the earliest first, then the narrowest."""
        found: dict[str, dict[str, Shape]] = defaultdict(dict)
        for row in sorted(self.shapes(among("object", objects)), key=lambda row: row.seniority):
            found[row.object][row.shape] = row.parsed()
        return found

    def statements(self, *conditions: BooleanExpression) -> list[StatementRow]:
        """Return the DDL and the initial loads that may change tables, decrypted (``sealed_statements``)."""
        return list(map(unsealed, self._rows(StatementRow, conditions)))

    def ddl(self, *conditions: BooleanExpression) -> list[StatementRow]:
        """Return the ``statements`` that are no loads."""
        return [row for row in self.statements(*conditions) if not row.is_load]

    def tables(self, *conditions: BooleanExpression) -> list[TableRow]:
        """Return where tables stand in cuts, published or not."""
        return self._rows(TableRow, conditions)

    def newest_tables(self, *conditions: BooleanExpression, by: Sequence[str] = ("object",)) -> list[TableRow]:
        """Return of each table the row of the newest cut, among those that the conditions name; ordered by cut."""
        return msgspec.convert(storage.newest(self.arrow(TableRow.TABLE, *conditions), by).to_pylist(), list[TableRow])

    def reprocessing(self) -> set[int]:
        """Return the batches whose events are being derived again."""
        return {row.batch for row in self._rows(ReprocessingRow)}

    def cuts(self, *conditions: BooleanExpression) -> list[CutRow]:
        """Return the cuts."""
        return self._rows(CutRow, conditions)

    def checks(self, *conditions: BooleanExpression) -> list[CheckRow]:
        """Return what the checks of cuts found."""
        return self._rows(CheckRow, conditions)

    def contradictions(self, *conditions: BooleanExpression) -> list[ContradictionRow]:
        """Return what events contradicted the rows of tables in cuts."""
        return self._rows(ContradictionRow, conditions)

    def transactions(self) -> list[TransactionRow]:
        """Return how transactions that were not whole at the end of a run stood after each batch."""
        return self._rows(TransactionRow)

    def source_files(self) -> list[SourceFileRow]:
        """Return what the source file said when messages were last read: one row, or none."""
        return self._rows(SourceFileRow)

    def note_source_file(self, row: SourceFileRow) -> None:
        """Put what the source file says in the place of what it said before."""
        self.replace(SourceFileRow, [row], above("batch", -1))

    def erasures(self) -> list[ErasureRow]:
        """Return the keys whose rows were erased."""
        return self._rows(ErasureRow)

    def reconciliations(self, *conditions: BooleanExpression) -> list[ReconciliationRow]:
        """Return how tables compared with the source database, the newest run last."""
        return sorted(self._rows(ReconciliationRow, conditions), key=lambda row: row.run)

    def last_reconciliations(self) -> dict[str, ReconciliationRow]:
        """Return by object how it compared last, without the keys that differ."""
        columns = [name for name in SCHEMAS[ReconciliationRow.TABLE].names if name not in {"keys", "left_out"}]
        rows = msgspec.convert(self.read(ReconciliationRow.TABLE, columns=columns), list[ReconciliationRow])
        return {row.object: row for row in sorted(rows, key=lambda row: row.run)}

    def _rows(self, kind: type[R], conditions: Iterable[BooleanExpression] = ()) -> list[R]:
        return msgspec.convert(self.read(kind.TABLE, *conditions), list[kind])  # type: ignore[valid-type]

    def replace(self, kind: type[R], rows: Sequence[R], *conditions: BooleanExpression) -> None:
        """Put rows in the place of this source's rows that the conditions name (no condition: only append)."""
        where = self._where(*conditions) if conditions else None
        storage.replace(self._lake, kind.TABLE, self._source, self._stamped(kind, rows), where)

    def forget(self, kind: type[R], *conditions: BooleanExpression) -> None:
        """Delete the rows of this source that the conditions name; without conditions all of them."""
        storage.delete(self._lake, kind.TABLE, self._source, self._where(*conditions))

    def last_cut(self) -> CutRow | None:
        """Return the newest cut, whatever its state."""
        return max(self.cuts(), key=lambda row: row.cut, default=None)

    def published_tables(self) -> dict[str, TableRow]:
        """Return by object the newest row that says where its published table stands, or why it stopped before it."""
        published = {row.cut for row in self.cuts(equals("state", CutState.PUBLISHED))}
        return {row.object: row for row in self.newest_tables(among("cut", published))}

    def targets(self) -> dict[str, Identifier]:
        """Return by object the table that it was last published as; a stopped one is published as it was before."""
        return {row.object: row.identifier for row in self.newest_tables(not_null("target"))}

    def request_rebuild(self, objects: Iterable[str], *, by_hand: bool = False) -> None:
        """Let the next compact build tables again; a table that was built for an earlier request is not enough."""
        request = datetime.now(UTC).isoformat() + (BY_HAND if by_hand else "")
        rows = [RebuildRow(object=name, asked=request) for name in sorted(set(objects))]
        if rows:
            self.replace(RebuildRow, rows, among("object", [row.object for row in rows]))

    def rebuild_requests(self) -> dict[str, str]:
        """Return by object the request to build it again; a request that a person made ends in ``BY_HAND``."""
        return {row.object: row.asked for row in self._rows(RebuildRow)}

    def answered(self, requests: Mapping[str, str]) -> None:
        """Drop requests to build tables again that were answered: by table, what ``rebuild_requests`` returned.

        Tables that were requested together have one moment in common, and are answered by different cuts.
        """
        for moment in sorted(set(requests.values())):
            tables = [name for name, each in requests.items() if each == moment]
            self.forget(RebuildRow, among("object", tables), equals("asked", moment))

    def landed_files(self, batch: int) -> list[FileRow]:
        """Return the files that are in ``raw``, which holds batches up to ``batch``, the oldest first.

        A file that grew has a row for each batch that took of it.
        """
        return sorted((row for row in self.files() if row.batch <= batch), key=lambda row: row.batch)

    def forget_attempts(self, batch: int) -> None:
        """Drop the files of an attempt that wrote them here and never reached ``raw``."""
        self.forget(FileRow, above("batch", batch))

    def write_contents(
        self, found: Mapping[int, Sequence[Tally]], done: int, *, instead_of: BooleanExpression | None = None
    ) -> None:
        """Write what batches hold of each table, in place of what an attempt left of batches above ``done``.

        Args:
            found: what was counted, by batch.
            done: batches up to it are in the change log, and their shapes stay.
            instead_of: the rows to replace, where they are not the rows above ``done``.
        """
        replaced = above("batch", done) if instead_of is None else instead_of
        counts = Counter[tuple[int, Content]]()
        shapes: dict[tuple[str, str], ShapeRow] = {}
        spans = defaultdict[tuple[int, str], Span](Span)
        statements: list[StatementRow] = []
        for batch, tallies in sorted(found.items()):
            for tally in tallies:
                for content, count in tally.contents:
                    counts[batch, content] += count
                for name, span in tally.spans.items():
                    spans[batch, name].add(span)
                for table, shape, columns in tally.shapes:
                    row = ShapeRow(batch=batch, object=str(table), shape=shape, columns=columns)
                    shapes.setdefault((row.object, shape), row)
                statements += [StatementRow.of(batch, statement) for statement in tally.statements]
        known = {(row.object, row.shape) for row in self.shapes() if row.batch <= done}
        fresh = [row for key, row in shapes.items() if key not in known]
        self._put(ContentRow, [ContentRow.of(*key, count) for key, count in counts.items()], replaced)
        self._put(SpanRow, [SpanRow.of(*key, span) for key, span in spans.items()], replaced)
        self._put(OffsetsRow, offset_rows.rows_of(found), replaced)
        self._put(ShapeRow, fresh, above("batch", done))
        self._put(StatementRow, statements, replaced)

    def _put(self, kind: type[R], rows: Sequence[R], replaced: BooleanExpression) -> None:
        """Put rows in the place of others, also where there are none: what a killed attempt wrote must not stay."""
        if rows:
            self.replace(kind, rows, replaced)
        elif self.read(kind.TABLE, replaced, columns=("batch",)):
            self.forget(kind, replaced)

    def _where(self, *conditions: BooleanExpression) -> BooleanExpression:
        return reduce(And, conditions, equals("source", self._source))

    def _stamped(self, kind: type[R], rows: Sequence[R]) -> pa.Table:
        own = {"source": self._source, "at": datetime.now(UTC)}
        columns = [name for name in kind.__struct_fields__ if name != "written_at"]
        stamped = [own | {name: value for name in columns if (value := getattr(row, name)) is not None} for row in rows]
        return pa.Table.from_pylist(stamped, schema=SCHEMAS[kind.TABLE])
