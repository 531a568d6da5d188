"""The checks of a source at any cut, on demand, and how they went from cut to cut."""

from __future__ import annotations

from airflow.sdk import Param

from tidemark.orchestration import build_on_demand
from tidemark.sources import read_sources

lake_quality = build_on_demand(
    "quality",
    "Check the tables of a source as a cut published them, and report the trend.",
    read_sources()[0],
    {"cut": Param(None, type=["null", "integer"], description="Cut; the newest without.")},
)
