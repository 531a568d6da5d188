"""The nightly maintenance of all tables: small files, old snapshots, orphans."""

from __future__ import annotations

from tidemark.orchestration import build_maintenance
from tidemark.sources import read_sources

lake_maintenance = build_maintenance(read_sources()[0])
