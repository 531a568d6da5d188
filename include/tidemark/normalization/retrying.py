"""Finishes a retry of quarantined messages that was cut short."""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from tidemark.lake import names as table_names
from tidemark.lake.branches import MARKER, descends_from_main, drop_branch, fast_forward, marker
from tidemark.lake.filters import equals, unset
from tidemark.lake.lake import Lake
from tidemark.lake.retries import retried

RETRY = "retry_"
"""Prefix of the branch of the quarantine that a retry prepares. The last batch that the retry adds follows it."""


def tried(reason: str | None) -> BooleanExpression:
    """Return the condition for the messages in quarantine that a retry tries: of one reason, or all."""
    undecoded = unset("object")
    return And(undecoded, equals("reason", reason)) if reason else undecoded


def marks(last: int, reason: str | None) -> dict[str, str]:
    """Return what a retry notes on the branch that it prepares.

    Args:
        last: the last batch that the retry adds.
        reason: of the messages that it tries; None for all.
    """
    return {"retry": str(last), **({"reason": reason} if reason else {})}


def finish_retry(lake: Lake, source: str) -> None:
    """Finish or undo a retry of a source that was cut short.

    If the change log has the events of the retried messages, they leave the quarantine. If not, they stay.
    """
    quarantine = lake.find(table_names.quarantine(source))
    for branch in [name for name in (quarantine.refs() if quarantine is not None else ()) if name.startswith(RETRY)]:
        table = lake.load(table_names.quarantine(source))
        if marker(lake.load(table_names.change_log(source)), "retry") != branch.removeprefix(RETRY):
            drop_branch(table, branch)
        elif descends_from_main(table, branch):
            fast_forward(table, branch)
        else:
            _take_in(table, branch)
            drop_branch(table.refresh(), branch)


# Whoever moved main may be moving it again.
@retried(CommitFailedException, ValidationException)
def _take_in(table: Table, branch: str) -> None:
    """Let ``main``, which moved since a retry began, have what the branch has of the messages that were tried.

    A rewrite of files, or of what is past its time, moves ``main``. It adds no message: whatever sets messages aside
    finishes the retry first.
    """
    table.refresh()
    prepared = table.snapshot_by_name(branch)
    noted = prepared.summary.additional_properties if prepared is not None and prepared.summary is not None else {}
    where = tried(noted.get(f"{MARKER}reason"))
    stale, left = _files(table, where, MAIN_BRANCH), _files(table, where, branch)
    if stale.keys() == left.keys():
        return
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as exchange:
        for path in stale.keys() - left.keys():
            exchange.delete_data_file(stale[path])
        for path in left.keys() - stale.keys():
            exchange.append_data_file(left[path])


def _files(table: Table, where: BooleanExpression, ref: str) -> dict[str, DataFile]:
    return {task.file.file_path: task.file for task in table.scan(row_filter=where).use_ref(ref).plan_files()}
