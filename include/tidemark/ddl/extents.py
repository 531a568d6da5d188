"""Between which positions the events of a name may lie."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.ledger.order_rows import SpanRow


class Extents:
    """The oldest and the newest position of the events of each name, whatever the case of its letters.

    Both are those of all batches together: what they say does not depend on the split into runs.
    """

    def __init__(self, objects: Iterable[str], spans: Iterable[SpanRow] = ()) -> None:
        """Take the names that have events, and what their events span; of a name without spans, nothing is excluded."""
        self._names = {name.casefold() for name in objects}
        self._of: dict[str, tuple[str, str]] = {}
        for span in spans:
            name, oldest = span.object.casefold(), span.oldest or ""
            first, last = self._of.get(name, (oldest, span.newest))
            self._of[name] = min(first, oldest), max(last, span.newest)

    def may_have(self, name: str, begins: str, ends: str) -> bool:
        """Return whether events may have come under a name, in small letters, from a position on, before another."""
        return self.spans(name, begins, ends) if name in self._of else name in self._names

    def spans(self, name: str, begins: str, ends: str) -> bool:
        """Return whether the known events of a name lie on both sides of such a place, or in it."""
        oldest, newest = self._of.get(name, (ends, ""))
        return newest >= begins and oldest < ends
