"""One Airflow DAG for each source whose file has ``reconcile``: its published tables against its database."""

from __future__ import annotations

from tidemark.orchestration import RECONCILE_PREFIX, build_reconciliation
from tidemark.sources import read_sources

for source in read_sources()[0]:
    if source.reconcile is not None:
        globals()[f"{RECONCILE_PREFIX}{source.source}"] = build_reconciliation(source)
