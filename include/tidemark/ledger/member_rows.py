"""The rows of the ledger's table of members that messages have and their format does not know."""

from __future__ import annotations

from collections.abc import Iterable

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


def unknown_members(ledger: Ledger, *conditions: BooleanExpression) -> list[UnknownMemberRow]:
    """Return the members that are unknown, each with the first batch that had it."""
    columns = ("batch", "member", "file", "place")
    rows = ledger.read(UnknownMemberRow.TABLE, *conditions, columns=columns)
    return [UnknownMemberRow(**{name: row[name] for name in columns}) for row in rows]


def note(ledger: Ledger, found: Iterable[UnknownMemberRow], replaced: BooleanExpression) -> None:
    """Write down the members that no earlier message had, in place of what was noted for batches decoded again."""
    first: dict[str, UnknownMemberRow] = {}
    for row in sorted(found, key=lambda row: (row.batch, row.file, row.place)):
        first.setdefault(row.member, row)
    known = {row.member for row in unknown_members(ledger, Not(replaced))} if first else set()
    fresh = [row for member, row in first.items() if member not in known]
    if fresh or unknown_members(ledger, replaced):
        ledger.replace(UnknownMemberRow, fresh, replaced)
