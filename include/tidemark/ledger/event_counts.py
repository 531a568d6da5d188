"""What became of the change events of a table: the counts, and the equation that they must meet."""

from __future__ import annotations

import msgspec


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the change events of one table in one cut.

    The counts close where ``events = applied + superseded + duplicate + held + quarantined + erased``.
    """

    events: int = 0
    """Change events that the table had to account for."""
    applied: int = 0
    """They changed a row, or removed rows as a TRUNCATE does."""
    superseded: int = 0
    """A newer event of their key, a TRUNCATE or the rollback of their transaction left nothing of them."""
    duplicate: int = 0
    """Copies of an event that was counted."""
    held: int = 0
    """They wait for the end of their transaction, or for their table to be freed."""
    quarantined: int = 0
    """A value, key or image could not be taken in."""
    erased: int = 0
    """Their row was erased. The cut of the erasure counts them once more."""

    @property
    def accounted(self) -> int:
        """Events whose fate is known."""
        return self.applied + self.superseded + self.duplicate + self.held + self.quarantined + self.erased

    @property
    def closes(self) -> bool:
        """Whether every event is accounted for, once."""
        return self.events == self.accounted

    def __add__(self, other: EventCounts) -> EventCounts:
        return EventCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    def by_name(self) -> dict[str, int]:
        """Return the counts by their names, ``events`` first."""
        return msgspec.structs.asdict(self)


NO_EVENTS = EventCounts()
"""Where sums of counts begin."""
