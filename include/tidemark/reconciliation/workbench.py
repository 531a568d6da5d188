"""DuckDB beside the lake: streams of rows go in, buckets and differences come out, and what is large goes to disk.

Every statement here is fixed text, or a tree of ``statements``: no name of a table or a column of the lake is in it.
Columns of the lake's table are called ``c0``, ``c1`` and so on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.table import Table

from tidemark.lake.earlier_schemas import names_with
from tidemark.reconciliation import canonical, statements
from tidemark.reconciliation.kinds import ColumnPairs, ValueKind
from tidemark.tables.schemas import DELETED

_MEMORY = "1GB"
"""Beyond it DuckDB writes to disk."""

_ROWS = "lake_rows"

_DIFFERING = """
CREATE TABLE differing AS
SELECT coalesce(s.k, l.k) AS k,
       CASE WHEN l.k IS NULL THEN 'lost' WHEN s.k IS NULL THEN 'extra' ELSE 'different' END AS kind,
       abs(coalesce(s.n, 0) - coalesce(l.n, 0)) AS n
  FROM (SELECT k, count(*) AS n, string_agg(d, ' ' ORDER BY d) AS d FROM source_keys GROUP BY k) s
  FULL JOIN (SELECT k, count(*) AS n, string_agg(d, ' ' ORDER BY d) AS d FROM lake_keys GROUP BY k) l ON s.k = l.k
 WHERE s.d IS DISTINCT FROM l.d
"""

_DIFFERING_ROWS = """
CREATE TABLE differing AS
SELECT coalesce(s.k, l.k) AS k, CASE WHEN coalesce(s.n, 0) > coalesce(l.n, 0) THEN 'lost' ELSE 'extra' END AS kind,
       abs(coalesce(s.n, 0) - coalesce(l.n, 0)) AS n
  FROM (SELECT k, count(*) AS n FROM source_keys GROUP BY k) s
  FULL JOIN (SELECT k, count(*) AS n FROM lake_keys GROUP BY k) l ON s.k = l.k
 WHERE s.n IS DISTINCT FROM l.n
"""
"""Of a table without a key: how many of each row are too few or too many."""

_CLASSED = """
CREATE TABLE classed AS
SELECT d.k, d.kind, d.n,
       coalesce(p.pending, false) AS pending,
       CASE WHEN coalesce(p.pending, false) THEN 'behind'
            WHEN $reached OR (u.k IS NOT NULL AND p.k IS NULL) THEN d.kind
            ELSE 'behind' END AS class
  FROM differing d
  LEFT JOIN (SELECT k, bool_or(pending) AS pending FROM changed GROUP BY k) p ON p.k = d.k
  LEFT JOIN (SELECT DISTINCT k FROM suspected) u ON u.k = d.k
"""
"""See ``classing`` for what makes a difference one that the lake is only behind with."""


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A published table at one of its snapshots, as far as it is compared."""

    table: Table
    snapshot: int | None
    """None: it has no rows yet."""
    pairs: ColumnPairs
    soft: bool
    """Whether rows may be there that are deleted at the source."""
    shortened: bool = False
    """As ``statements.Side``."""

    @property
    def side(self) -> statements.Side:
        """The table as the other side of a comparison."""
        deleted = statements.column(f"c{len(self.pairs.all)}")
        return statements.Side(
            dialect=canonical.LAKE,
            table=statements.table(_ROWS),
            key=self._named(len(self.pairs.key)),
            columns=self._named(len(self.pairs.all)),
            where=statements.not_true(deleted) if self.soft else None,
            shortened=self.shortened,
        )

    def _named(self, count: int) -> list[tuple[str, ValueKind]]:
        return [(f"c{place}", pair.kind) for place, pair in enumerate(self.pairs.all[:count])]

    def _written(self, snapshot: int, names: Sequence[str]) -> list[str]:
        """Return the names that the columns have in the files of a snapshot."""
        written = {shown: name for name, shown in names_with(self.table, snapshot).items()}
        return [written[name] for name in names]

    def rows(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, with the columns ``c0``, ``c1``, ..."""
        names = [pair.lake for pair in self.pairs.all] + ([DELETED] if self.soft else [])
        written = names if self.snapshot is None else self._written(self.snapshot, names)
        scan = self.table.scan(snapshot_id=self.snapshot, selected_fields=tuple(written))
        reader = scan.to_arrow_batch_reader()
        fields = [_named(place, reader.schema.field(name).type) for place, name in enumerate(written)]
        schema = pa.schema(fields)
        if self.snapshot is None:
            return pa.RecordBatchReader.from_batches(schema, iter(()))
        batches = (
            pa.RecordBatch.from_arrays(
                [batch.column(name).cast(field.type) for name, field in zip(written, fields, strict=True)],
                schema=schema,
            )
            for batch in reader
        )
        return pa.RecordBatchReader.from_batches(schema, batches)


def _named(place: int, kind: pa.DataType) -> pa.Field:
    """Return a field. An instant loses its zone, which is UTC: DuckDB then shows it as it is."""
    return pa.field(f"c{place}", pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind)


class Workbench(AbstractContextManager["Workbench"]):
    """One DuckDB for one comparison."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tidemark-reconcile-")
        self._duck = duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": self._folder.name})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duck.close()
        self._folder.cleanup()

    def ask(self, lake: LakeTable, statement: str) -> list[tuple[Any, ...]]:
        """Return the answer to a query of the lake's table, which is read once."""
        self._duck.register(_ROWS, lake.rows())
        try:
            return self._duck.execute(statement).fetchall()
        finally:
            self._duck.unregister(_ROWS)

    def take_lake(self, lake: LakeTable, statement: str) -> None:
        """Keep the keys and digests that a query of the lake's table gives."""
        self._duck.execute("CREATE TABLE lake_keys (k VARCHAR, d VARCHAR)")
        self._duck.register(_ROWS, lake.rows())
        self._duck.execute(f"INSERT INTO lake_keys {statement}")
        self._duck.unregister(_ROWS)

    def take_source(self, rows: Iterator[Sequence[tuple[Any, ...]]]) -> None:
        """Keep the keys and digests that a query of the source gives."""
        self._keep("source_keys", ("k", "d"), rows)

    def take_changed(self, rows: Iterable[Sequence[tuple[str, bool]]]) -> None:
        """Keep the keys that events of the change log concern, each with whether the event is not published yet."""
        self._duck.execute("CREATE TABLE changed (k VARCHAR, pending BOOLEAN)")
        for some in rows:
            if some:
                keys, pending = zip(*some, strict=True)
                part = pa.table({"k": pa.array(keys, pa.string()), "pending": pa.array(pending, pa.bool_())})
                self._insert("changed", part)

    def take_suspected(self, keys: Iterable[str]) -> None:
        """Keep the keys that an earlier comparison found different."""
        self._keep("suspected", ("k",), iter([[(key,) for key in keys]]))

    def _keep(self, name: str, columns: Sequence[str], rows: Iterator[Sequence[tuple[Any, ...]]]) -> None:
        described = ", ".join(f"{column} VARCHAR" for column in columns)
        self._duck.execute(f"CREATE TABLE {name} ({described})")
        for some in rows:
            if some:
                values = zip(*some, strict=True)
                self._insert(name, pa.table([pa.array(each, pa.string()) for each in values], names=list(columns)))

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._duck.register("part", rows)
        self._duck.execute(f"INSERT INTO {name} FROM part")
        self._duck.unregister("part")

    def differ(self, *, keyed: bool) -> int:
        """Find the keys that differ, and return how many; of a table without a key, how many rows."""
        self._duck.execute(_DIFFERING if keyed else _DIFFERING_ROWS)
        return self._number("SELECT coalesce(sum(CASE WHEN kind = 'different' THEN 1 ELSE n END), 0) FROM differing")

    def classify(self, *, reached: bool) -> dict[str, int]:
        """Say of each key that differs why, and return how many there are of each class; see ``classing``."""
        self._duck.execute(_CLASSED, {"reached": reached})
        counts = (
            "SELECT class, sum(CASE WHEN kind = 'different' THEN 1 ELSE greatest(n, 1) END) FROM classed GROUP BY 1"
        )
        return {str(name): int(count) for name, count in self._duck.execute(counts).fetchall()}

    def differ_still(self, keys: Sequence[str]) -> bool:
        """Return whether any of some keys differs."""
        self._keep("before", ("k",), iter([[(key,) for key in keys]]))
        return self._number("SELECT count(*) FROM differing SEMI JOIN before USING (k)") > 0

    def listed(self, most: int) -> list[tuple[str, str, str, bool]]:
        """Return keys that differ, each with class, kind and whether an event waits; those behind come last."""
        order = "SELECT k, class, kind, pending FROM classed ORDER BY class = 'behind', class, k LIMIT $most"
        return [tuple(row) for row in self._duck.execute(order, {"most": most}).fetchall()]

    def _number(self, statement: str) -> int:
        return int(self._duck.execute(statement).fetchall()[0][0])
