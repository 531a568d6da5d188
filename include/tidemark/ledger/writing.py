"""Writing a source: its lock, and what is to be done before the first write if another writer fell silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pyiceberg.table import Table

from tidemark.lake import fences, locks, log_tables, names
from tidemark.lake.branches import drop_branch
from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.schemas import NAMES
from tidemark.ledger.states import CutState


@contextmanager
def hold(source: str, *, patience: float = locks.PATIENCE) -> Iterator[None]:
    """Hold a source as its only writer. For arguments and errors see ``locks.hold``.

    A writer that held it before and fell silent is shut out first: it may be asleep, and wake.
    """
    with locks.hold(source, patience=patience, taken_over=partial(_shut_out, source)):
        yield


def _shut_out(source: str, token: int) -> None:
    """Make every commit fail that an earlier writer of a source still has under way or may make.

    The ledger comes first: from then on no earlier writer can add a table to it, or have a cut published. Tables that
    are missing are made, as one that comes later would have no fence.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source)
    for name in NAMES:
        fences.shut(storage.table_of(lake, name), source, token)
    for log_table in (log_tables.raw, log_tables.change_log, log_tables.quarantine):
        fences.shut(log_table(lake, source), source, token)
    targets = {row.identifier for row in ledger.tables() if row.target is not None}
    kinds = [
        (*names.moved_together(target), *names.beside(target), *names.whole_beside(target))
        for target in sorted(targets)
    ]
    found = [table for each in kinds for name in each if (table := lake.find(name)) is not None]
    for table in found:
        fences.shut(table, source, token)
    _leave_number(ledger, found)


def _leave_number(ledger: Ledger, tables: list[Table]) -> None:
    """Give the number of a cut that the earlier writer may be building to no other cut.

    Spark writes to the branches of such a cut, and asks no fence. What it still writes lies on branches that nobody
    reads.
    """
    last = ledger.last_cut()
    if last is not None and last.state not in {CutState.PUBLISHED, CutState.REPLACED}:
        return  # it was built whole
    number = max(last.cut if last else 0, ledger.left_number()) + 1
    ledger.leave_number(number)
    for table in tables:
        drop_branch(table.refresh(), names.candidate_branch(number))
