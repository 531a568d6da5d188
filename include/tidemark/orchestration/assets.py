"""Airflow assets: one for each published table, with an event for each cut that has the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias, Context

from tidemark.lake.names import Identifier
from tidemark.sources.model import Source
from tidemark.sources.routes import foreseen
from tidemark.stages import StageReport

Outlet = Asset | AssetAlias


def table_asset(target: Identifier) -> Asset:
    """Return the asset of a published table (``erp.orders``).

    A DAG can be scheduled by it: ``Asset("tidemark://erp/orders")``. Airflow's database may take ASCII alone (MySQL).
    Other characters of the name are percent-encoded there.
    """
    address = f"tidemark://{target.namespace}/{target.name}"
    try:
        return Asset(address)
    except ValueError:
        return Asset(quote(address, safe=":/ $"))


def outlets_of(source: Source) -> list[Outlet]:
    """Return what the task that publishes a source declares.

    These are the tables that the source file names, so that Airflow knows their assets before the first run, and an
    alias for the tables that are discovered.
    """
    return [alias_of(source.source), *(table_asset(Identifier(*target)) for target in foreseen(source))]


def alias_of(source: str | None) -> AssetAlias:
    """Return the alias that stands for the tables of a source that no source file names; None: of any source."""
    return AssetAlias(f"tidemark_{source or 'lake'}")


def unannounced(outlets: Sequence[Outlet]) -> list[Outlet]:
    """Return the outlets of a task that gives no event by its success alone.

    Airflow gives an event to each asset among the outlets that a task has when it succeeds, also to tables that it did
    not publish. An alias gives only the events that are added to it.
    """
    return [outlet for outlet in outlets if isinstance(outlet, AssetAlias)]


def announce(report: StageReport, declared: Sequence[Outlet], context: Context) -> list[Outlet]:
    """Give Airflow an asset event for each published table, so that DAGs that are scheduled by it run.

    A second attempt of the task gives the events again, because the first may have been killed after publishing.

    Args:
        report: of publish.
        declared: the outlets that the DAG declares.
        context: of the task.

    Returns:
        The outlets that the task must have when it succeeds.
    """
    outlets = unannounced(declared)
    if not (report.summary.get("fresh") or context["ti"].try_number > 1):
        return outlets
    events = context["outlet_events"]
    for target, counts in report.details.items():
        if "verdict" not in counts:  # events of it are held, and this cut does not have it
            continue
        asset = table_asset(Identifier.parse(target))
        extra: dict[str, Any] = {"cut": report.summary["cut"], **counts}
        if asset in declared:
            outlets.append(asset)
            events[asset].extra = extra
        else:
            events[outlets[0]].add(asset, extra=extra)
    return outlets
