"""DAGs beside the flow: nightly maintenance; on demand the checks of a cut, a rebuild, a retry of the quarantine."""

from __future__ import annotations

from airflow.sdk import Param

from tidemark.orchestration import build_maintenance, build_on_demand, table_param
from tidemark.sources import read_sources
from tidemark.stages import REBUILD, RETRY

sources = read_sources()[0]

lake_maintenance = build_maintenance(sources)

lake_quality = build_on_demand(
    "quality",
    ["quality"],
    "Check the tables of a source as a cut published them, and report the trend.",
    sources,
    {"cut": Param(None, type=["null", "integer"], description="Cut; the newest without.")},
)

lake_rebuild = build_on_demand(
    "rebuild",
    REBUILD,
    "Fold the whole change log of a source again, beside its tables, then swap.",
    sources,
    {"table": table_param()},
)

lake_retry = build_on_demand(
    "retry",
    RETRY,
    "Decode the quarantined messages of a source again.",
    sources,
    {"reason": Param(None, type=["null", "string"], description="Only messages set aside for it; all without.")},
)
