"""The Arrow schema of the ledger's comparisons with source databases."""

from __future__ import annotations

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT

RECONCILIATIONS = pa.schema(
    [
        ("source", pa.string()),
        ("run", pa.int32()),
        ("object", pa.string()),
        ("target", pa.string()),
        ("result", pa.string()),
        ("reason", pa.string()),
        ("cut", pa.int32()),
        ("batch", pa.int32()),
        ("source_rows", pa.int64()),
        ("lake_rows", pa.int64()),
        ("columns", pa.int32()),
        ("left_out", pa.string()),
        ("behind", pa.int64()),
        ("lost", pa.int64()),
        ("extra", pa.int64()),
        ("different", pa.int64()),
        ("keys", pa.string()),
        ("read_at", INSTANT),
        ("place", pa.string()),
        ("sequence", pa.string()),
        ("shown_through", INSTANT),
        ("verified_through", INSTANT),
        ("verified_place", pa.string()),
        ("at", INSTANT),
    ]
)
"""How published tables compared with the source database: see ``reconciliation_rows.ReconciliationRow``."""
