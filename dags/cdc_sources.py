"""One Airflow DAG for each source in include/sources.

A wrong source file, or one that gives no DAG, does not affect other sources. cdc_source_errors.py shows it as an import
error.
"""

from __future__ import annotations

from airflow.sdk import get_parsing_context

from tidemark.orchestration import flow_dags

for dag in flow_dags(get_parsing_context().dag_id):
    globals()[dag.dag_id] = dag
