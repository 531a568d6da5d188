"""The log of the source that tables are in: 1, and one more for each restart and reload that the source file lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from tidemark.ledger.ledger import Ledger
from tidemark.ledger.tally import log_of
from tidemark.normalization import source_changes
from tidemark.queries.status_answer import LogState
from tidemark.values.declared_types import entry_for

_RESTARTS, _RELOADS = "log_restarts", "reloads"


class LogStates(NamedTuple):
    """The logs that a source and its tables are in; tables that are in the first one are left out."""

    source: LogState | None
    tables: Mapping[str, LogState]
    """By the table's name in source files."""


class _Opening(NamedTuple):
    """A moment that opens a log."""

    at: datetime
    by: str


def log_states(ledger: Ledger) -> LogStates:
    """Return the logs that the newest events are in, read from positions in the ledger."""
    newest: dict[str, str] = {}
    for span in ledger.spans():
        newest[span.object] = max(newest.get(span.object, ""), span.newest)
    numbers = {name: log_of(position) for name, position in newest.items()}
    if max(numbers.values(), default=1) == 1:
        return LogStates(None, {})
    declared = source_changes.known(ledger) or {}
    restarts = _openings(declared.get(_RESTARTS, ()), _RESTARTS)
    reloads = {name: entry.get(_RELOADS, ()) for name, entry in declared.get("tables", {}).items()}
    tables: dict[str, LogState] = {}
    restarted = 0
    for name, number in numbers.items():
        opened = sorted(restarts + _openings(entry_for(reloads, name) or (), _RELOADS))[: number - 1]
        restarted = max(restarted, sum(opening.by == _RESTARTS for opening in opened))
        if number > 1:
            tables[name] = _state(number, opened)
    return LogStates(_state(restarted + 1, restarts[:restarted]) if restarted else None, tables)


def _openings(moments: Iterable[str], by: str) -> list[_Opening]:
    return sorted(_Opening(datetime.fromisoformat(moment), by) for moment in moments)


def _state(number: int, opened: list[_Opening]) -> LogState:
    """Return the state of the log that the last of some moments opened; its moment is not known if one is missing."""
    last = opened[-1] if len(opened) == number - 1 else None
    return {"number": number, "since": last.at.isoformat() if last else None, "opened_by": last.by if last else None}
