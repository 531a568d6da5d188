"""What stages have to know of a format, beside its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import Enum


class Placing(Enum):
    """What a statement's position can be compared with."""

    LOG = "the rows of all tables: they share a log"
    DUMP = "rows that are dumped in the same order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a format module says of its messages, in ``TRAITS``.

    The functions take the parts of an encoded position (``positions.encode_position``).
    """

    pairs_updates: bool = False
    """Whether an update may come as two messages, the old row and the new one (``events.ChangeEvent``). An image that
    comes alone is then a whole row, and a column that it lacks is null."""
    orders_by_offset: bool = False
    """Whether the messages have no order of their own, so that a position is ``message.order``: a place in the dump."""
    ranks_copies: bool = False
    """Whether a position ends in ``message.order``, so that a copy of an event ranks as a new one."""
    moves_rows: bool = True
    """Whether an INSERT that lacks values may be the second half of a change of the key."""
    has_deliveries: bool = False
    """Whether positions say where an event was delivered (``positions.placed``), so that copies of it have several."""
    marks_loads: bool = False
    """Whether messages mark complete initial loads (``ChangeEvent.load``), so that other loaded rows replace
    nothing."""
    places_statements: bool = False
    """Whether all DDL has a position in the log that rows of all tables share: renames of tables are followed."""
    placing_of: Callable[[Sequence[str]], Placing | None] | None = None
    """Says what a position can be compared with, where only some statements have one in the log. A table some of whose
    rows have a place in the log, and others a place in the dump, holds the cut."""
    apart: str = "Give each of them a source of its own"
    """What keeps the rows of several databases apart that come as one table (``ChangeEvent.of_database``), said to a
    person. ``SOURCE`` stands for the name of the source."""
    ranks_by_commit: Callable[[Sequence[str]], bool] | None = None
    """Says whether a position rises with the commits of the log that it counts in, in each partition: a later change
    with a lower position is then of another log. None: nothing is concluded."""

    @property
    def orders_by_dump(self) -> bool:
        """Whether the place in the dump may be what places a statement among rows."""
        return self.orders_by_offset or self.placing_of is not None

    def rises_with_commits(self, position: str) -> bool:
        """Return whether the encoded position of a change rises with the commits in its log."""
        return self.ranks_by_commit is not None and self.ranks_by_commit(position.split("."))

    def placing(self, position: str) -> Placing | None:
        """Return what the encoded position of a statement can be compared with; None if with no row.

        The first part of a position is even where nothing ranks it among the changes (``positions.loaded``).
        """
        parts = position.split(".")
        if self.places_statements:
            return Placing.LOG
        if int(parts[0][2:]) % 2 == 0:
            return None
        if self.placing_of is not None:
            return self.placing_of(parts)
        return Placing.DUMP if self.orders_by_offset else None


def stale_names(module: object, traits: Traits) -> dict[str, tuple[str, str]]:
    """Return what a module says of its messages in names of its own, as formats did before there was ``TRAITS``.

    Returns:
        By the name in the module: the field of ``Traits``, and its value as Python writes it.
    """
    found = {}
    for field in fields(Traits):
        if isinstance(field.default, bool):
            name = field.name.upper()
            if hasattr(module, name):
                found[name] = (field.name, repr(bool(getattr(module, name))))
        elif hasattr(module, field.name) and getattr(traits, field.name) is None:
            found[field.name] = (field.name, field.name)
    return found
