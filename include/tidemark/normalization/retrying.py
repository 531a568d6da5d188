"""Finish a retry that was cut short."""

from __future__ import annotations

from tidemark.lake import names as table_names
from tidemark.lake.branches import drop_ref, fast_forward, marker
from tidemark.lake.lake import Lake


def finish_retry(lake: Lake, source: str) -> None:
    """Finish or undo a retry that was cut short: the quarantine without the messages that the change log has now."""
    quarantine = lake.find(table_names.quarantine(source))
    for branch in [name for name in (quarantine.refs() if quarantine is not None else ()) if name.startswith(RETRY)]:
        table = lake.load(table_names.quarantine(source))
        if marker(lake.load(table_names.change_log(source)), "retry") == branch.removeprefix(RETRY):
            fast_forward(table, branch)
        drop_ref(lake.load(table_names.quarantine(source)), branch)


RETRY = "retry_"
"""Begins the branch of the quarantine that a retry prepares; its number is the last batch that the retry adds."""
