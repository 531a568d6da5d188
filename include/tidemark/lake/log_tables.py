"""The log tables of a source, found or made: messages, change events, and what was set aside."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.lake import names
from tidemark.lake.lake import Lake, with_columns
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW
from tidemark.lake.properties import CHANGE_LOG_PROPERTIES, LOG_PROPERTIES


def raw(lake: Lake, source: str) -> Table:
    """Return the table of the source's messages."""
    return with_columns(lake.ensure(names.raw(source), RAW, LOG_PROPERTIES, partition_by=["batch"]), RAW)


def change_log(lake: Lake, source: str) -> Table:
    """Return the table of the source's events."""
    by = ["batch", "kind", "object"]
    table = lake.ensure(names.change_log(source), CHANGE_LOG, CHANGE_LOG_PROPERTIES, partition_by=by)
    return with_columns(table, CHANGE_LOG)


def find_change_log(lake: Lake, source: str) -> Table | None:
    """Return the table of the source's events; None if the source has none so far."""
    table = lake.find(names.change_log(source))
    return None if table is None else with_columns(table, CHANGE_LOG)


def quarantine(lake: Lake, source: str) -> Table:
    """Return the table of the messages that were set aside."""
    by = ["batch", "reason", "object"]
    table = lake.ensure(names.quarantine(source), QUARANTINE, LOG_PROPERTIES, partition_by=by)
    return with_columns(table, QUARANTINE)
