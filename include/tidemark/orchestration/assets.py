"""Airflow assets: one for each published table, announced when a cut moved it."""

from __future__ import annotations

from airflow.sdk import Asset, AssetAlias, Context

from tidemark.stages import StageReport


def table_asset(target: str) -> Asset:
    """The asset of a published table (``erp.orders``); schedule a DAG by it: ``Asset("tidemark://erp/orders")``."""
    namespace, _, name = target.partition(".")
    return Asset(f"tidemark://{namespace}/{name}")


def announce(report: StageReport, alias: AssetAlias, context: Context) -> None:
    """Tell Airflow of the tables that were published, so that DAGs scheduled by them run.

    A second attempt tells them again: the first may have been killed between publishing and telling.
    """
    if not (report.summary.get("fresh") or context["ti"].try_number > 1):
        return
    events = context["outlet_events"][alias]
    for target, told in report.details.items():
        events.add(table_asset(target), extra={"cut": report.summary["cut"], **told})
