"""DAGs beside the flow: maintenance each night, and on demand checks of a cut, a rebuild, a retry of the quarantine."""

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
    "Check the tables of a source at a published cut, and report the results of each cut.",
    sources,
    {"cut": Param(None, type=["null", "integer"], description="Number of a cut; default: the newest.")},
)

lake_rebuild = build_on_demand(
    "rebuild",
    REBUILD,
    "Build tables of a source again from their whole change log, beside the published ones, then publish them.",
    sources,
    {"table": table_param()},
)

lake_retry = build_on_demand(
    "retry",
    RETRY,
    "Decode the quarantined messages of a source again.",
    sources,
    {"reason": Param(None, type=["null", "string"], description="Only messages with this reason; default: all.")},
)
