"""What the ledger keeps of an erasure: its keys as hashes, and the time up to which their events are of the erased row.

A command that was cut short is given again. It finds what it began by the key, or by the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce

import msgspec
from pyiceberg.expressions import And, BooleanExpression, Or

from tidemark.erasure.search import Places
from tidemark.erasure.subject import ErasedRow
from tidemark.lake.filters import equals, unset
from tidemark.ledger.erasure_rows import BEGUN, ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.erased_keys import Erasure, fingerprint
from tidemark.values.iso8601 import DAY, from_micros, to_micros

_LAST = to_micros(datetime.max.replace(tzinfo=UTC)) - DAY
"""The newest commit time that is taken as a time: Python has none later."""


def of_command(known: Sequence[ErasureRow], erasures: Sequence[Erasure]) -> list[ErasureRow]:
    """Return the rows of earlier attempts: for these keys, and for keys that a command began together with them.

    Once its events are erased, nothing shows which keys a row had in earlier eras.
    """
    wanted = {(each.digest, each.begins) for each in erasures}
    mine = [row for row in known if (row.digest, row.begins or "") in wanted]
    times = {row.before for row in mine}
    return [*mine, *(row for row in known if row.before in times and row not in mine)]


def are(rows: Sequence[ErasureRow]) -> BooleanExpression:
    """Return the condition that a row of the ledger is one of these."""
    each: list[BooleanExpression] = []
    for row in rows:
        begins = Or(equals("begins", row.begins or ""), unset("begins"))
        each.append(And(equals("digest", row.digest), begins))
    return reduce(Or, each)


def begin(
    ledger: Ledger, subject: ErasedRow, secret: bytes, earlier: Sequence[ErasureRow], before: datetime, unfollowed: int
) -> list[ErasureRow]:
    """Write to the ledger that the keys are erased, before anything is; with those that an attempt before began.

    Args:
        ledger: of the source.
        subject: whose rows.
        secret: of the keyed hashes.
        earlier: the rows of earlier attempts (``of_command``).
        before: ``time_of`` the erasure.
        unfollowed: the last batch whose events are past their time; 0 for none.
    """
    unpaired = max([subject.unpaired, *(row.unpaired or 0 for row in earlier)])  # events that are erased show none
    spans = [span.newest for span in ledger.spans() if span.object in {*subject.names, *subject.copies.names}]
    rows = [
        ErasureRow(
            object=each.object,
            digest=each.digest,
            reading=msgspec.json.encode(each.columns).decode(),
            secret=fingerprint(secret),
            before=before,
            horizon=each.horizon,
            state=BEGUN,
            begins=each.begins,
            ends=each.ends,
            unfollowed=unfollowed or None,
            unpaired=unpaired or None,
        )
        for each in subject.erasures(secret, to_micros(before), max(spans, default=""))
    ]
    identities = {(row.digest, row.begins) for row in rows}
    others = [row for row in earlier if row.state == BEGUN and (row.digest, row.begins) not in identities]
    rows += [msgspec.structs.replace(row, before=before) for row in others]
    ledger.replace(ErasureRow, rows, are(rows))
    return rows


def time_of(places: Places, earlier: Sequence[ErasureRow], known: Sequence[ErasureRow]) -> datetime:
    """Return the time up to which events of the keys are of the erased row: now, or later if an erased event is.

    The clock of a source may be ahead, and some write their local time as UTC. The keys of one command are recognised
    by this time, so it is no time of another command.
    """
    newest = min(places.newest or 0, _LAST)
    before = max([datetime.now(UTC), from_micros(newest), *(row.before for row in earlier)])
    while any(row.before == before for row in known if row not in earlier):
        before += timedelta(microseconds=1)
    return before
