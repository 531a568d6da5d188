"""Takes erased keys out of the ledger's comparisons with the source database, which list the keys that differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import And

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.lake import file_edits, names, purging
from tidemark.lake.data_files import Partition
from tidemark.lake.file_edits import Edit, RowsFound
from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake, with_columns
from tidemark.lake.retries import retried
from tidemark.ledger.reconciliation_rows import DifferingKey, ReconciliationRow
from tidemark.ledger.schemas import SCHEMAS
from tidemark.normalization.erased_keys import Erasure, KeyColumn, canonical, digest_of
from tidemark.values.plain import read_value

TABLE = names.ledger(ReconciliationRow.TABLE)

_retried = retried(CommitFailedException, ValidationException, attempts=12)
"""All sources write the table: their commits only have to queue."""

_keys = msgspec.json.Decoder(list[DifferingKey])


def edit(source: str, secret: bytes, erasures: Sequence[Erasure]) -> Edit:
    """Return the edit that leaves out the keys of erasures, as far as these cover what was compared.

    A comparison of the source as it was after the time of an erasure may have a new row. The numbers of keys that
    differ stay as they were.
    """

    def is_erased(table: str, read_at: int | None, key: DifferingKey) -> bool:
        return any(
            each.object == table
            and (read_at is None or read_at <= each.before)
            and _digest(secret, each, key.key) == each.digest
            for each in erasures
        )

    def holds(rows: pa.RecordBatch) -> pa.Array:
        changed = pa.array([kept != keys for keys, kept in _with_kept(rows, is_erased)], pa.bool_())
        return pc.and_(changed, pc.equal(rows.column("source"), source))

    def instead(partition: Partition, rows: pa.RecordBatch) -> list[tuple[Partition, pa.RecordBatch]]:
        texts = [msgspec.json.encode(kept).decode() for _, kept in _with_kept(rows, is_erased)]
        place = rows.schema.names.index("keys")
        return [(partition, rows.set_column(place, rows.schema.field(place), pa.array(texts, rows.column(place).type)))]

    objects = {each.object for each in erasures}
    return Edit(where=And(equals("source", source), among("object", objects)), holds=holds, instead=instead)


_IsErased = Callable[[str, int | None, DifferingKey], bool]


def _with_kept(rows: pa.RecordBatch, is_erased: _IsErased) -> list[tuple[list[DifferingKey], list[DifferingKey]]]:
    """Return for each row its keys, and those of them that stay."""
    tables, texts = (rows.column(name).to_pylist() for name in ("object", "keys"))
    times = rows.column("read_at").cast(pa.int64()).to_pylist()
    found = []
    for table, read_at, text in zip(tables, times, texts, strict=True):
        keys = _keys.decode(text or "[]")
        found.append((keys, [key for key in keys if not is_erased(table, read_at, key)]))
    return found


def _digest(secret: bytes, erasure: Erasure, key: dict[str, str]) -> str | None:
    """Return the keyed hash of a key as the erasure has it; None for a key of other columns, or that cannot be read."""
    values = []
    for column in erasure.columns:
        name = next((name for name in (column.name, *column.called) if name in key), None)
        value = None if name is None else _value(column, key[name])
        if value is None:
            return None
        values.append((column.name, value))
    return digest_of(secret, erasure.object, values) if len(values) == len(key) else None


def _value(column: KeyColumn, text: str) -> str | None:
    encoding = Encoding.BASE64 if column.type == "binary" else Encoding.TEXT
    try:
        return canonical(read_value(json.dumps(text).encode(), Column(column.name, column.type, encoding)), column.type)
    except UnreadableValueError:
        return None


@_retried
def erase(lake: Lake, edit: Edit) -> RowsFound:
    """Take the keys out, and return how many comparisons had one."""
    table, schema = lake.find(TABLE), SCHEMAS[ReconciliationRow.TABLE]
    if table is None or not file_edits.find(table, edit).files:
        return file_edits.NOTHING
    return file_edits.apply(lake, with_columns(table, schema), schema, edit)


@_retried
def purge(lake: Lake, source: str) -> None:
    """Remove, physically, what the source's comparisons were before."""
    table = lake.find(TABLE)
    if table is not None:
        purging.purge_shared(table, source)
