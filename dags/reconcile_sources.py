"""One Airflow DAG for each source whose file has ``reconcile``: its published tables against its database.

A source whose DAG cannot be built does not affect other sources. cdc_source_errors.py shows it as an import error.
"""

from __future__ import annotations

from airflow.sdk import get_parsing_context

from tidemark.orchestration import reconcile_dags

for dag in reconcile_dags(get_parsing_context().dag_id):
    globals()[dag.dag_id] = dag
