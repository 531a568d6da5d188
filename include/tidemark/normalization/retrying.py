"""Finishes a retry of quarantined messages that was cut short."""

from __future__ import annotations

from tidemark.lake import names as table_names
from tidemark.lake.branches import drop_branch, fast_forward, marker
from tidemark.lake.lake import Lake


def finish_retry(lake: Lake, source: str) -> None:
    """Finish or undo a retry of a source that was cut short.

    If the change log has the events of the retried messages, they leave the quarantine. If not, they stay.
    """
    quarantine = lake.find(table_names.quarantine(source))
    for branch in [name for name in (quarantine.refs() if quarantine is not None else ()) if name.startswith(RETRY)]:
        table = lake.load(table_names.quarantine(source))
        if marker(lake.load(table_names.change_log(source)), "retry") == branch.removeprefix(RETRY):
            fast_forward(table, branch)
        else:
            drop_branch(table, branch)


RETRY = "retry_"
"""Prefix of the branch of the quarantine that a retry prepares. The last batch that the retry adds follows it."""
