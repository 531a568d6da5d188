"""The only code that imports Airflow: DAGs, their operators, alerts, assets and intervals."""

from __future__ import annotations

from tidemark.orchestration.dags import (
    build_dag,
    build_dags,
    build_maintenance,
    build_on_demand,
    number_param,
    require_dags,
    table_param,
    text_param,
)
from tidemark.orchestration.notifiers import require as require_notifiers
from tidemark.orchestration.reconcile_operator import RECONCILE_PREFIX, build_reconciliation

__all__ = [
    "RECONCILE_PREFIX",
    "build_dag",
    "build_dags",
    "build_maintenance",
    "build_on_demand",
    "build_reconciliation",
    "number_param",
    "require_dags",
    "require_notifiers",
    "table_param",
    "text_param",
]
