"""The ledger of messages: what became of each that landed, or that was tried again. None may go missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tidemark.errors import LedgerError
from tidemark.lake.filters import among
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, instant_of
from tidemark.ledger.tally import Tally


def accounted(ledger: Ledger, found: Mapping[int, Sequence[Tally]], reprocessed: int | None) -> list[BatchRow]:
    """Return what became of the messages of each batch, beside how many messages its files had."""
    landed = Counter[int]()
    for file in ledger.files(among("batch", found)):
        landed[file.batch] += file.messages
    return [
        BatchRow(
            batch=batch,
            landed=landed[batch],
            decoded=sum(tally.decoded for tally in tallies),
            control=sum(tally.control for tally in tallies),
            quarantined=sum(tally.quarantined for tally in tallies),
            events=sum(count for tally in tallies for _, count in tally.contents),
            logs=tuple(sorted({log for tally in tallies for log in tally.logs})[:2]),
            heard=instant_of(max((tally.heard for tally in tallies if tally.heard is not None), default=None)),
            reprocessed=reprocessed,
        )
        for batch, tallies in sorted(found.items())
    ]


def require_closed(source: str, row: BatchRow) -> None:
    """Refuse a batch if messages of it went missing.

    Raises:
        LedgerError: the messages that landed are not all decoded, control messages nor quarantined.
    """
    if row.landed != row.accounted:
        raise LedgerError(
            f"{source}, batch {row.batch}: {row.landed} messages landed, but {row.decoded} decoded + "
            f"{row.control} control + {row.quarantined} quarantined = {row.accounted}. Nothing of it is published."
        )


def retried(batch: int, landed_with: int, tallies: Iterable[Tally]) -> BatchRow:
    """Return the row of messages that decode now. None of them landed again, and so many are quarantined no more.

    Raises:
        LedgerError: a message that was tried again went missing.
    """
    totals = Counter[str]()
    for tally in tallies:
        totals.update({name: getattr(tally, name) for name in ("landed", "decoded", "control", "quarantined")})
        totals["events"] += sum(count for _, count in tally.contents)
    taken = totals["decoded"] + totals["control"]
    if totals["landed"] != taken + totals["quarantined"]:
        raise LedgerError(
            f"batch {landed_with}: {totals['landed']} quarantined messages were tried again, but {taken} decoded now + "
            f"{totals['quarantined']} still quarantined. Nothing of it is kept."
        )
    return BatchRow(
        batch=batch,
        landed=0,
        decoded=totals["decoded"],
        control=totals["control"],
        quarantined=-taken,
        events=totals["events"],
        retry_of=landed_with,
    )
