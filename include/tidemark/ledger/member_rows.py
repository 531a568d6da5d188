"""The rows of the ledger's table of members that messages have and their format does not know."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from pyiceberg.expressions import BooleanExpression, Not

from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import LedgerRow


class UnknownMemberRow(LedgerRow, frozen=True, kw_only=True):
    """A member that messages of a source have since a batch, with the place of one of them."""

    TABLE = "unknown_members"
    batch: int
    member: str
    """Its path in the message."""
    file: str
    place: int
    reprocessed: int | None = None
    """The reprocessing that found it first; None: it was found when the batch was read first."""


def unknown_members(ledger: Ledger, *conditions: BooleanExpression) -> list[UnknownMemberRow]:
    """Return the members that are unknown, each with the first batch that had it."""
    return msgspec.convert(ledger.read(UnknownMemberRow.TABLE, *conditions), list[UnknownMemberRow])


def note(
    ledger: Ledger, found: Iterable[UnknownMemberRow], replaced: BooleanExpression, reprocessed: int | None = None
) -> None:
    """Write down the members that no earlier message had, in place of what was noted for batches decoded again.

    ``reprocessed`` is the number of the reprocessing that found them.
    """
    first: dict[str, UnknownMemberRow] = {}
    for row in sorted(found, key=lambda row: (row.batch, row.file, row.place)):
        first.setdefault(row.member, row)
    known = {row.member for row in unknown_members(ledger, Not(replaced))} if first else set()
    before = {row.member: row.reprocessed for row in unknown_members(ledger, replaced)}
    fresh = [
        msgspec.structs.replace(row, reprocessed=before.get(member, reprocessed))
        for member, row in first.items()
        if member not in known
    ]
    if fresh or before:
        ledger.replace(UnknownMemberRow, fresh, replaced)
