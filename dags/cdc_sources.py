"""One Airflow DAG for each source in include/sources.

A wrong source file, or one that gives no DAG, does not affect other sources. cdc_source_errors.py shows it as an import
error.
"""

from __future__ import annotations

from airflow.sdk import get_parsing_context

from tidemark.orchestration import build_dag, build_dags
from tidemark.sources import DAG_PREFIX, find_source, read_sources

# Each task reads this file again and needs only its own DAG. The DAG processor needs all of them.
wanted = get_parsing_context().dag_id
for dag in [build_dag(find_source(wanted.removeprefix(DAG_PREFIX)))] if wanted else build_dags(read_sources()[0]):
    globals()[dag.dag_id] = dag
