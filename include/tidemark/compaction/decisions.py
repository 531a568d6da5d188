"""What a run does with one table: the values that finding, deciding and building hand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from tidemark.lake.names import Identifier
from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.rows import Snapshots
from tidemark.tables.plan import Found
from tidemark.tables.withheld import NOTHING, Withheld

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Events of one table that contradict its rows in one way."""

    kind: str
    events: int
    position: str
    """Of the first of them."""
    file: str
    place: int
    keys: tuple[str, ...]
    """Keys of the first of them, for people; masked as they are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The table has a candidate."""

    object: str
    target: Identifier
    counts: EventCounts
    rows_change: int
    """How many rows the table has more than before; of a table that is built again, than an empty one."""
    deleted: int | None
    """Rows that readers lose, other than by a new key; None: as many as the table shrinks by."""
    committed_at: int | None
    """When the newest event that was folded was committed; epoch µs, UTC."""
    snapshots: Snapshots
    request: str | None = None
    """The request to build the table again that this answers."""
    contradictions: Sequence[Contradiction] = ()
    """Events that contradict the rows, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The table is not made yet: nothing says which columns it has, or nobody asked for it. Its events wait."""

    found: Found
    reason: str
    request: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmoved:
    """The table has nothing to take in: its new events are held, or belong to transactions that were rolled back."""

    object: str
    target: Identifier | None
    """None: it was never published, and nothing says where it would be."""
    withheld: Withheld = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The table stays as it is, with a reason, until a person acts; its events wait."""

    found: Found
    reason: str


def stopped(found: Found, reason: str) -> Stopped:
    """Return that a table is stopped, and log it."""
    log.warning("table_stopped", object=found.object, reason=reason)
    return Stopped(found=found, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildAnew:
    """The table cannot go on from what is published: the run begins again and builds it from its whole change log."""

    object: str
    reason: str


Decision = Built | Waiting | Unmoved | Stopped | BuildAnew
