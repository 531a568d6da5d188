"""The events of one batch of messages, grouped by the partition of the change log or quarantine that they go to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from tidemark.events import ChangeEvent, ControlEvent, Event, Quarantined, TableId
from tidemark.lake.log_schemas import RowKind
from tidemark.normalization.erased_keys import ErasedEvent

NO_TABLE = TableId(None, None, "")
"""The table of events that belong to none."""


_KINDS = {ControlEvent: RowKind.CONTROL, ErasedEvent: RowKind.ERASED}


class EventGroup:
    """The events of one partition, in the order of their messages."""

    __slots__ = ("contents", "events", "indexes", "numbers")

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.indexes: list[int] = []
        """For each event, the index of its message in the batch."""
        self.numbers: list[int] = []
        """For each event, its number in its message, from 0."""
        self.contents = Counter[tuple[Any, ...]]()
        """Number of change events by operation, shape, ``partial``, key and ``half``. Filled when they become rows."""


class DecodedBatch:
    """The events of a batch of messages, and the messages that could not be decoded."""

    def __init__(self, decoded: Iterable[list[Event | ErasedEvent] | list[Event] | Quarantined]) -> None:
        """Group what the messages, in their order, were decoded to."""
        self.changes = defaultdict[TableId, EventGroup](EventGroup)
        self.others = defaultdict[tuple[RowKind, TableId], EventGroup](EventGroup)
        """Schema changes, control events, and what is left of events of erased rows."""
        self.refused = defaultdict[str, list[tuple[int, Quarantined]]](list)
        """By reason: the indexes of messages in the batch, and why each is set aside."""
        self.control = 0
        """Number of messages with control events only, or with no event."""
        for index, events in enumerate(decoded):
            if isinstance(events, Quarantined):
                self.refused[events.reason].append((index, events))
                continue
            control = True
            for number, event in enumerate(events):
                if type(event) is ChangeEvent:
                    group = self.changes[event.table]
                    control = False
                else:
                    kind = _KINDS.get(type(event), RowKind.SCHEMA_CHANGE)
                    group = self.others[kind, getattr(event, "table", None) or NO_TABLE]
                    control = control and kind is RowKind.CONTROL
                group.events.append(event)
                group.indexes.append(index)
                group.numbers.append(number)
            self.control += control
