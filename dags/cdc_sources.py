"""One Airflow DAG for each CDC source declared in include/sources.

A wrong source file takes no other source with it: cdc_source_errors.py shows it as an import error.
"""

from __future__ import annotations

from tidemark.orchestration import build_dag
from tidemark.sources import read_sources

for source in read_sources()[0]:
    globals()[source.dag_id] = build_dag(source)
