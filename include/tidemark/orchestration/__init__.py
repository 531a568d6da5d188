"""The only code that imports Airflow: DAGs, their operators, alerts, assets and intervals."""

from __future__ import annotations

from tidemark.orchestration.dags import (
    build_maintenance,
    build_on_demand,
    flow_dags,
    number_param,
    reconcile_dags,
    require_dags,
    table_param,
    text_param,
)
from tidemark.orchestration.notifiers import require as require_notifiers

__all__ = [
    "build_maintenance",
    "build_on_demand",
    "flow_dags",
    "number_param",
    "reconcile_dags",
    "require_dags",
    "require_notifiers",
    "table_param",
    "text_param",
]
