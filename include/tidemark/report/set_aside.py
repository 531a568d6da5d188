"""What is in quarantine: how many messages for each reason, and examples of where they came from, never their bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.lake import names as table_names
from tidemark.lake.lake import Lake

MOST_READ = 20_000
"""Most messages in quarantine that are read: a report costs little, however much is in quarantine."""

_EXAMPLES = 5

_COLUMNS = ("reason", "object", "file", "place")


def set_aside(lake: Lake, source: str) -> dict[str, Any]:
    """Return how many messages are in quarantine, and for each reason and table some of their origins.

    Keys: ``messages``, ``all_read`` (false: there are more), ``reasons``: a list of ``reason``, ``table`` (null where
    the message was not decoded), ``messages``, ``examples`` (``file``, ``place``), most messages first.
    """
    table = lake.find(table_names.quarantine(source))
    if table is None:
        return {"messages": 0, "all_read": True, "reasons": []}
    rows = table.scan(selected_fields=_COLUMNS, limit=MOST_READ).to_arrow()
    groups = rows.group_by(["reason", "object"]).aggregate([("place", "count")])
    found = [
        {
            "reason": group["reason"],
            "table": group["object"],
            "messages": group["place_count"],
            "examples": _examples(rows, group["reason"], group["object"]),
        }
        for group in groups.to_pylist()
    ]
    found.sort(key=lambda each: (-each["messages"], each["reason"], each["table"] or ""))
    return {"messages": rows.num_rows, "all_read": rows.num_rows < MOST_READ, "reasons": found}


def _examples(rows: pa.Table, reason: str, name: str | None) -> list[dict[str, Any]]:
    same = pc.equal(rows["object"], name) if name is not None else pc.is_null(rows["object"])
    found = rows.filter(pc.and_(pc.equal(rows["reason"], reason), same)).select(["file", "place"])
    ordered = found.sort_by([("file", "ascending"), ("place", "ascending")])
    examples: list[dict[str, Any]] = ordered.slice(0, _EXAMPLES).to_pylist()
    return examples
