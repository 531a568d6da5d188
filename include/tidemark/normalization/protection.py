"""Encryption of what cannot be masked, of a source with ``mask_at: landing``: bytes of messages, and statements.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pyarrow as pa

from tidemark.lake.data_files import Partition
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger.tally import LoggedStatement, Tally
from tidemark.normalization.masked_events import Masking
from tidemark.values.sealed_messages import exchanged, sealed_messages
from tidemark.values.sealing import Keys, sealed_statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What the workers of a source with ``mask_at: landing`` know."""

    keys: Keys
    masking: Masking

    def sealed_log(self, partition: Partition, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of one partition of the change log, with their statements encrypted."""
        if partition[1] != RowKind.SCHEMA_CHANGE:
            return rows
        pairs = zip(rows.column("operation").to_pylist(), rows.column("detail").to_pylist(), strict=True)
        sealed = [sealed_statement(dialect, text, self.keys) for dialect, text in pairs]
        instead = {
            "operation": pa.array([dialect for dialect, _ in sealed], pa.string()),
            "detail": pa.array([text for _, text in sealed], pa.string()),
        }
        return exchanged(rows, instead)

    def sealed_tally(self, tally: Tally) -> Tally:
        """Return what was counted, with its statements encrypted."""
        return msgspec.structs.replace(tally, statements=[self._sealed(each) for each in tally.statements])

    def set_aside(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the quarantine with their bytes encrypted."""
        return sealed_messages(rows, self.keys)

    def _sealed(self, statement: LoggedStatement) -> LoggedStatement:
        if statement.is_load:
            return statement
        dialect, text = sealed_statement(statement.dialect, statement.text, self.keys)
        return msgspec.structs.replace(statement, dialect=dialect, text=text)
