"""Where an event is from: its position, and its message as the change log has it."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.lake.filters import equals


def first_place(position: str | None, changelog: Table | None) -> str:
    """Return a position, and the message that it is of, if the change log has it."""
    if position is None:
        return "no position: another writer's row"
    if changelog is None:
        return f"position {position}"
    scan = changelog.scan(row_filter=equals("position", position), selected_fields=("file", "place"), limit=1)
    messages = (f", message {each['place']} of {each['file']}" for each in scan.to_arrow().to_pylist())
    return f"position {position}{''.join(messages)}"
