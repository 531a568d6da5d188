"""Members of messages that their format does not know, as one task sees them in some of its messages."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from tidemark.formats import members_of

SAMPLED = 50
"""Messages that are looked at, of those that are decoded together (40,000 at most), evenly spread."""

_MOST = 20
"""Names that are kept. Whoever has more writes names of its own making."""

_LONGEST = 120


class UnknownMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member that no format knows, with the place of a message that has it."""

    member: str
    """Its path in the message."""
    batch: int
    file: str
    place: int


class MembersSeen:
    """Collects the unknown members of some messages."""

    def __init__(self, format_name: str) -> None:
        """Begin without messages, which are of a format."""
        self._known = members_of(format_name)
        self._found: dict[str, UnknownMember] = {}

    def add(self, batch: int, messages: pa.RecordBatch) -> None:
        """Look at some messages of a batch."""
        if self._known is None or not messages.num_rows:
            return
        spread = pa.array(range(0, messages.num_rows, -(-messages.num_rows // SAMPLED)))
        for each in messages.select(["value", "file", "place"]).take(spread).to_pylist():
            for member in self._known.unknown(each["value"] or b"null"):
                name = member[:_LONGEST]
                if name not in self._found and len(self._found) < _MOST:
                    found = UnknownMember(member=name, batch=batch, file=each["file"], place=each["place"])
                    self._found[name] = found

    def close(self) -> list[UnknownMember]:
        """Return what was seen."""
        return list(self._found.values())
