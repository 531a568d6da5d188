"""Airflow DAGs beside the flow: maintenance each night; on demand checks of a cut, rebuilds, retries of the quarantine.

Airflow reads a file only if its text holds the words "airflow" and "dag".
"""

from __future__ import annotations

from tidemark.orchestration import build_maintenance, build_on_demand, number_param, table_param, text_param
from tidemark.sources import read_sources
from tidemark.stages import REBUILD, RETRY

sources = read_sources()[0]

lake_maintenance = build_maintenance(sources)

lake_quality = build_on_demand(
    "quality",
    ["quality"],
    "Check the tables of a source at a published cut, and report the results of each cut.",
    sources,
    {"cut": number_param("Cut (number)", "A published cut that is still kept, as 12. Empty: the newest.")},
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
    {"reason": text_param("Reason", "Only messages with this reason, as malformed. Empty: all.")},
)
