"""Events that are past their time (``retention: changelog_days``), as far as the ledger still counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.lake import names, retention
from tidemark.lake.filters import among
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow


class Expired:
    """The events that the change log of a source does not hold any more."""

    def __init__(self, lake: Lake, source: str) -> None:
        self._ledger = Ledger(lake, source)
        self._log = lake.load(names.change_log(source))
        self._up_to = retention.gone_up_to(self._log)

    def left_of(
        self, contents: Sequence[ContentRow], after: int, emptied: Iterable[str]
    ) -> tuple[Sequence[ContentRow], str | None]:
        """Return the contents that a table can be built from, and why it cannot be built; None if it can.

        Args:
            contents: of the batches whose events the table takes in.
            after: the batch that the table stands at.
            emptied: positions of the complete loads and the statements that emptied it. One that is later than all
                expired events settles them.
        """
        expired = self._of(row for row in contents if row.batch > after)
        if not expired:
            return contents, None
        spans = self._ledger.spans(among("object", {name for name, _ in expired}))
        newest = max((row.newest for row in spans if (row.object, row.batch) in expired), default=None)
        if newest is None or max(emptied, default="") <= newest:
            return contents, _problem(expired)
        return [row for row in contents if (row.object, row.batch) not in expired], None

    def problem_of(self, objects: Iterable[str]) -> str | None:
        """Return why all events of some tables cannot be folded again; None if they can."""
        expired = self.among(objects)
        return _problem(expired) if expired else None

    def among(self, objects: Iterable[str] | None = None) -> set[tuple[str, int]]:
        """Return the tables and batches whose events are past their time, of some tables or of all."""
        conditions = [] if objects is None else [among("object", objects)]
        return self._of(self._ledger.contents(*conditions)) if self._up_to else set()

    def _of(self, contents: Iterable[ContentRow]) -> set[tuple[str, int]]:
        batches = {(row.object, row.batch) for row in contents if row.batch <= self._up_to}
        if not batches:
            return set()
        return batches - retention.batches_of(self._log, {name for name, _ in batches}, self._up_to)


def _problem(expired: Iterable[tuple[str, int]]) -> str:
    return (
        f"it has to be built from all its events, and those of batches up to {max(batch for _, batch in expired)} are "
        "past their time (`retention: changelog_days`). Load it anew at the source: a complete load replaces what came "
        "before. Or decode all of them again, as long as raw has their messages, with `tidemark run SOURCE "
        "--reprocess` and no dates"
    )
