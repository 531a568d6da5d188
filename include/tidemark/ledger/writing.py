"""Writing a source: its lock, and what is to be done before the first write if another writer fell silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tidemark.lake import fences, locks, names
from tidemark.lake.branches import drop_branch
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.schemas import NAMES


@contextmanager
def hold(source: str, *, patience: float = locks.PATIENCE) -> Iterator[None]:
    """Hold a source as its only writer: ``locks.hold``, which tells arguments and errors.

    A writer that held it before and fell silent is shut out first: it may be asleep, and wake.
    """
    with locks.hold(source, patience=patience, taken_over=partial(_shut_out, source)):
        yield


def _shut_out(source: str, token: int) -> None:
    """Make every commit fail that an earlier writer of a source still has under way or may make.

    The ledger comes first: from then on no earlier writer can add a table to it.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source)
    logs = [names.raw(source), names.change_log(source), names.quarantine(source)]
    _shut(lake, source, token, [*map(names.ledger, NAMES), *logs])
    targets = {row.identifier for row in ledger.tables() if row.target is not None}
    kinds = [(*names.moved_together(target), *names.beside(target)) for target in sorted(targets)]
    tables = [name for each in kinds for name in each]
    _shut(lake, source, token, tables)
    _leave_number(lake, ledger, tables)


def _shut(lake: Lake, source: str, token: int, tables: list[names.Identifier]) -> None:
    for name in tables:
        table = lake.find(name)
        if table is not None:
            fences.shut(table, source, token)


def _leave_number(lake: Lake, ledger: Ledger, tables: list[names.Identifier]) -> None:
    """Give the number of a cut that the earlier writer may be building to no other cut.

    Spark writes to the branches of such a cut, and asks no fence. What it still writes lies on branches that nobody
    reads.
    """
    last = ledger.last_cut()
    if last is not None and last.state not in {cuts.PUBLISHED, cuts.REPLACED}:
        return  # it was built whole
    number = max(last.cut if last else 0, ledger.left_number()) + 1
    ledger.leave_number(number)
    for name in tables:
        table = lake.find(name)
        if table is not None:
            drop_branch(table, names.candidate_branch(number))
