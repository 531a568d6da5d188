"""The Arrow schemas of what checks found, and of events that contradict rows."""

from __future__ import annotations

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT

CHECKS = pa.schema(
    [
        ("source", pa.string()),
        ("cut", pa.int32()),
        ("stage", pa.string()),
        ("target", pa.string()),
        ("place", pa.int32()),
        ("name", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("severity", pa.string()),
        ("success", pa.bool_()),
        ("observed", pa.string()),
        ("expected", pa.string()),
        ("at", INSTANT),
    ]
)
"""What each check of a cut found: counts and figures, never a value of a row. ``stage`` is ``check`` (before the cut is
published) or ``quality`` (the newest time that it was judged again). ``place`` is the check's place among the checks
of its table."""

CONTRADICTIONS = pa.schema(
    [
        ("source", pa.string()),
        ("cut", pa.int32()),
        ("object", pa.string()),
        ("kind", pa.string()),
        ("events", pa.int64()),
        ("position", pa.string()),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("at", INSTANT),
    ]
)
"""Events of a table in a cut that contradict its rows, by kind (``missing_rows``, ``existing_rows``, ``before_images``,
``different_copies``, ``loaded_again``): how many, and the position and origin of the first."""
