"""Erasures that were cut short: nothing else works on their source until they are continued."""

from __future__ import annotations

from tidemark.errors import ErasureError
from tidemark.ledger.erasure_rows import BEGUN
from tidemark.ledger.ledger import Ledger


def require_none(ledger: Ledger, source: str) -> None:
    """Refuse to work on a source whose ledger counts rows that an erasure, cut short, has removed in part.

    Raises:
        ErasureError: an erasure was cut short.
    """
    begun = {row.object for row in ledger.erasures() if row.state == BEGUN}
    if begun:
        raise ErasureError(
            f"{source}: an erasure of {', '.join(sorted(begun))} was cut short. Give the same `tidemark erase` "
            "command again: it continues where it was. Only its key is needed, which Tidemark does not keep."
        )
