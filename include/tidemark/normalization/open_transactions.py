"""Open transactions: settles which transactions are open, and writes them to the ledger.

The events of an open transaction wait until its end lands. The events of a transaction that was undone wait for good.
Normalize settles the states of transactions here, and the ledger keeps them by batch. Compact leaves out the events of
open transactions, and takes in the events of transactions that closed since (``tables.withheld``,
``compaction.event_log``). Transactions that begin and end in one run of normalize are never written to the ledger.

A whole transaction may lack events of a table that had never landed. When that table lands after all, the transactions
of its time are looked at again. Those that still lack events are open then, and their tables are built again without
them. So it makes no difference which of the two landed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from tidemark.lake.filters import above
from tidemark.ledger import completeness, tally
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.completeness import LandedTables, Scope, Times, is_whole, not_awaited
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.tally import Seen
from tidemark.ledger.transactions import MARKED, OPEN, UNDONE, WHOLE, Facts, States, facts, marked, seen_of, states
from tidemark.normalization import transaction_tracker
from tidemark.normalization.tasks import Done
from tidemark.normalization.transaction_search import ChangeLog
from tidemark.normalization.transaction_tracker import TransactionsSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsBefore:
    """What is known of the transactions of a source before new batches."""

    states: States
    facts: Facts
    undelivered: tuple[str, ...]
    """Patterns of collections that never land, by the source file."""

    @property
    def marked(self) -> bool:
        """Whether the source is known to send markers."""
        return marked(self.states)

    def landed(self, *more: Mapping[str, int | None]) -> LandedTables:
        """Return what has landed with these tables."""
        return LandedTables(tables=completeness.earliest([self.facts.tables, *more]), undelivered=self.undelivered)


def known(ledger: Ledger, log: ChangeLog, undelivered: tuple[str, ...]) -> TransactionsBefore:
    """Return what is known of transactions as of the last batch that is committed."""
    before = states(ledger, log.done)
    found = facts(before)
    if found is None:
        found = Facts(tables=log.tables() if marked(before) else {})
    return TransactionsBefore(states=before, facts=found, undelivered=undelivered)


def settle(ledger: Ledger, before: TransactionsBefore, results: Sequence[Done], log: ChangeLog, newest: int) -> None:
    """Write to the ledger which transactions the new batches opened, closed or undid.

    The rows replace those that an interrupted attempt left.

    Args:
        ledger: of the source.
        before: what was known as of the last batch that is committed.
        results: what the tasks of normalize wrote and saw.
        log: the change log, which is searched for a transaction that is not known before it counts as open.
        newest: last of the new batches.
    """
    by_task = [task.transactions for task in results if task.transactions is not None]
    written = [file for task in results for file in task.files]
    first_marked = any(task.marked for task in by_task) and not before.marked
    landed = before.landed(*(task.tables for task in by_task), log.tables() if first_marked else {})
    scope = landed.scope()
    # A task that saw no marker has reported no transaction. One that knew too few tables has reported too few.
    if (first_marked and len(by_task) > 1) or any(awaited(scope, task.elsewhere) for task in by_task):
        by_task = log.look_in(written, landed, ledger_transactions.unsettled(before.states))
    exact = len(by_task) <= 1 and all(task.exact for task in by_task)
    look = partial(log.look, written=[] if exact else written, landed=landed, ever=first_marked)
    found = _with_earlier_parts(_transactions_seen(before.states, by_task), before.states, scope, look)
    found |= {id_: seen for id_, seen in closed_by(before, scope).items() if id_ not in found}
    elsewhere = [task.elsewhere for task in by_task]
    late = awaited(scope, before.facts.elsewhere)
    if late:
        everywhere = log.look_everywhere(landed, written)
        there = {id_: seen for id_, seen in transaction_tracker.all_of(everywhere).items() if seen.tables}
        again = _opened_again(before.states, there, late, scope)
        ledger.request_rebuild(name for seen in again.values() if seen.since <= log.done for name in seen.tables)
        found |= again
        elsewhere += [*(task.elsewhere for task in everywhere), _elsewhere(there.values(), scope)]
    elsewhere += [_elsewhere(found.values(), scope)]
    elsewhere += [{name: at for name, at in before.facts.elsewhere.items() if name not in late}]
    rows = [_row(newest, seen, scope) for seen in found.values()]
    rows = [row for row in rows if row.state != WHOLE or row.id in before.states]
    if before.marked or first_marked:
        source_facts = _facts(landed, elsewhere)
        rows += [_marked(newest, source_facts)] if source_facts != before.facts or first_marked else []
    done = above("batch", log.done)
    if rows:
        ledger.replace(TransactionRow, rows, done)
    else:
        ledger.forget(TransactionRow, done)


def _transactions_seen(known_states: States, by_task: Sequence[TransactionsSeen]) -> dict[str, Seen]:
    """Return what the new batches show of transactions, with what was known of those that were open or undone."""
    found: dict[str, Seen] = {}
    for id_, seen in transaction_tracker.all_of(by_task).items():
        row = known_states.get(id_)
        if row is None:
            found |= {id_: seen} if seen.tables else {}
        elif row.state != WHOLE:
            found[id_] = tally.merged(seen_of(row), seen)
    return found


def _with_earlier_parts(
    reported: dict[str, Seen], known_states: States, scope: Scope, look: Callable[..., list[TransactionsSeen]]
) -> dict[str, Seen]:
    """Return the transactions with what the change log has of those that seem to have been opened just now.

    They are most likely open. But they may be copies of transactions that were whole before, or an end may have landed
    before its events.
    """
    wanted = [
        seen for id_, seen in reported.items() if id_ not in known_states and not (is_whole(seen, scope) or seen.undone)
    ]
    if not wanted:
        return reported
    found = dict(reported)
    for seen in transaction_tracker.all_of(look(wanted)).values():
        apart = msgspec.structs.replace(seen, tables={}, since=found[seen.id].since)
        found[seen.id] = tally.merged(found[seen.id], apart)
    return found


def closed_by(before: TransactionsBefore, scope: Scope) -> dict[str, Seen]:
    """Return the open transactions that are whole, as the source file has changed since."""
    waiting = {row.id: seen_of(row) for row in before.states.values() if row.id is not None and row.state == OPEN}
    return {id_: seen for id_, seen in waiting.items() if is_whole(seen, scope)}


def awaited(scope: Scope, elsewhere: Times) -> frozenset[str]:
    """Return the collections that transactions did not wait for, and should have waited for, by what has landed now."""
    return frozenset(name for name, last in elsewhere.items() if scope.waits_for(name, last))


def _opened_again(
    known_states: States, everywhere: Mapping[str, Seen], late: frozenset[str], scope: Scope
) -> dict[str, Seen]:
    """Return the transactions that lack events of collections that have landed late, and that are not open already."""
    return {
        id_: seen
        for id_, seen in everywhere.items()
        if seen.ended
        and not (seen.undone or is_whole(seen, scope))
        and late & set(seen.counts or ())
        and (id_ not in known_states or known_states[id_].state == WHOLE)
    }


def _elsewhere(found: Iterable[Seen], scope: Scope) -> Times:
    """Return the collections that whole transactions among these did not wait for."""
    whole = [seen for seen in found if is_whole(seen, scope)]
    return completeness.newest(dict.fromkeys(not_awaited(seen, scope), seen.last) for seen in whole)


def settle_again(ledger: Ledger, undelivered: tuple[str, ...], results: Sequence[Done], log: ChangeLog) -> None:
    """Write to the ledger which transactions of the whole change log are open or undone, in place of all earlier rows.

    Used after batches of the change log were replaced.

    Args:
        ledger: of the source.
        undelivered: patterns of collections that never land, by the source file.
        results: what the tasks that decoded the batches again wrote and saw.
        log: the change log with the new batches.
    """
    by_task = [task.transactions for task in results if task.transactions is not None]
    before = states(ledger, log.done)
    with_markers = marked(before) or any(task.marked for task in by_task)
    if not (with_markers or before or any(task.seen for task in by_task)):
        return
    landed = LandedTables(tables=log.tables(), undelivered=undelivered)
    scope = landed.scope()
    # Without markers, these rows alone say that the source has transactions over several batches.
    kept = frozenset() if with_markers else frozenset(id_ for id_ in before if id_ is not None)
    everywhere = log.look_everywhere(landed, marked=with_markers, keep=kept)
    found = [seen for seen in transaction_tracker.all_of(everywhere).values() if seen.tables]
    elsewhere = [_elsewhere(found, scope), *(task.elsewhere for task in everywhere)]
    rows = [_row(log.done, seen, scope) for seen in found if seen.id in kept or not is_whole(seen, scope)]
    opened = {row.id for row in rows if row.state != WHOLE and (row.id not in before or before[row.id].state == WHOLE)}
    ledger.request_rebuild(name for seen in found if seen.id in opened for name in seen.tables)
    if with_markers:
        rows.append(_marked(log.done, _facts(landed, elsewhere)))
    if rows:
        ledger.replace(TransactionRow, rows, above("batch", 0))
    else:
        ledger.forget(TransactionRow)


def _facts(landed: LandedTables, elsewhere: Iterable[Times]) -> Facts:
    return Facts(tables=landed.tables, elsewhere=completeness.newest(elsewhere), undelivered=landed.undelivered)


def _marked(batch: int, source_facts: Facts) -> TransactionRow:
    """Return the row of a source that is known to send markers."""
    text = msgspec.json.encode(source_facts).decode()
    return TransactionRow(batch=batch, id=None, state=MARKED, since=batch, events=0, seen=text)


def _row(batch: int, seen: Seen, scope: Scope) -> TransactionRow:
    state = UNDONE if seen.undone else WHOLE if is_whole(seen, scope) else OPEN
    events = sum(count for count, _ in seen.tables.values())
    text = msgspec.json.encode(seen).decode()
    return TransactionRow(batch=batch, id=seen.id, state=state, since=seen.since, events=events, seen=text)
