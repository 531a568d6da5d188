"""The doubt about tables whose rows come from several databases, where the table's name leaves the database out."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.tally import SEVERAL
from tidemark.quality.doubt import Doubt
from tidemark.sources.model import Source
from tidemark.text import harmless

SEVERAL_DATABASES = "tables whose rows come from several databases"


def of_databases(source: Source, old: Iterable[SpanRow], new: Iterable[SpanRow]) -> list[Doubt]:
    """Return the doubt about new rows of another database than the rows of their table that are there.

    Once rows of several databases are published, a batch with rows of several is no doubt: it is not known of which. A
    batch of one further database is, unless a published batch had several.
    """
    before, now = ({span.database for span in spans if span.database} for spans in (old, new))
    together = before | now
    approved = before | {SEVERAL} if len(before) > 1 else before
    if SEVERAL in before or now <= approved or (len(together) == 1 and SEVERAL not in together):
        return []
    named = ", ".join(sorted(harmless(name) for name in together)).replace(SEVERAL, "...")
    reason = (
        f"its rows come from several databases or schemas ({named}), and rows of equal keys overwrite each other. "
        f"{source.traits.apart.replace('SOURCE', source.source)}. If it is one database that got another name, approve "
        "the cut"
    )
    return [Doubt(SEVERAL_DATABASES, 1, reason)]
