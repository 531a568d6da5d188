"""Source files, which are read strictly: an unknown key or value is an error."""

from __future__ import annotations

from tidemark.sources.files import find_source, load_sources, read_sources, validate
from tidemark.sources.model import DAG_PREFIX, Source

__all__ = ["DAG_PREFIX", "Source", "find_source", "load_sources", "read_sources", "validate"]
