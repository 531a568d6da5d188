"""Quarantined messages again, after a fix."""

from __future__ import annotations

from airflow.sdk import Param

from tidemark.orchestration import build_on_demand
from tidemark.sources import read_sources

lake_retry = build_on_demand(
    "retry",
    "Decode the quarantined messages of a source again.",
    read_sources()[0],
    {"reason": Param(None, type=["null", "string"], description="Only messages set aside for it; all without.")},
)
