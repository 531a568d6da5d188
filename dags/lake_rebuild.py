"""A table (or all of a source) again from its change log."""

from __future__ import annotations

from tidemark.orchestration import build_on_demand, table_param
from tidemark.sources import read_sources

lake_rebuild = build_on_demand(
    "rebuild",
    "Fold the whole change log of a source again, beside its tables, then swap.",
    read_sources()[0],
    {"table": table_param()},
)
