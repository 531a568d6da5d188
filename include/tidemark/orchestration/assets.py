"""Airflow assets: one for each published table, with an event for each cut that has the table."""

from __future__ import annotations

from airflow.sdk import Asset, AssetAlias, Context

from tidemark.lake.names import Identifier
from tidemark.stages import StageReport


def table_asset(target: str) -> Asset:
    """Return the asset of a published table (``erp.orders``).

    A DAG can be scheduled by it: ``Asset("tidemark://erp/orders")``.
    """
    identifier = Identifier.parse(target)
    return Asset(f"tidemark://{identifier.namespace}/{identifier.name}")


def announce(report: StageReport, alias: AssetAlias, context: Context) -> None:
    """Give Airflow an asset event for each published table, so that DAGs that are scheduled by it run.

    A second attempt of the task gives the events again, because the first may have been killed after publishing.
    """
    if not (report.summary.get("fresh") or context["ti"].try_number > 1):
        return
    events = context["outlet_events"][alias]
    for target, counts in report.details.items():
        events.add(table_asset(target), extra={"cut": report.summary["cut"], **counts})
