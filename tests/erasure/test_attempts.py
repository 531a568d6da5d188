"""The time up to which events of an erased key are of the erased row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from tidemark.erasure.attempts import time_of
from tidemark.erasure.search import Places
from tidemark.ledger.erasure_rows import DONE, ErasureRow
from tidemark.values.iso8601 import to_micros

AHEAD = datetime.now(UTC) + timedelta(hours=8)
FIELDS = {"reading": "[]", "secret": "s", "horizon": "", "state": DONE}
ROW = ErasureRow(object="shop.people", digest="d", before=AHEAD, **FIELDS)


def _places(newest: datetime | int | None) -> Places:
    micros = to_micros(newest) if isinstance(newest, datetime) else newest
    return Places(events=frozenset(), newer=0, messages=frozenset(), unread=(), newest=micros)


def test_an_erased_event_is_covered_whatever_its_time() -> None:
    """The time is now, or that of the newest erased event, if it is later; also what Python has no time for."""
    started = datetime.now(UTC)
    assert started <= time_of(_places(None), [], []) <= datetime.now(UTC)
    assert started <= time_of(_places(started - timedelta(days=9)), [], []) <= datetime.now(UTC)
    assert time_of(_places(AHEAD), [], []) == AHEAD
    assert time_of(_places(2**62), [], []).year == 9999


def test_a_second_erasure_of_a_key_covers_what_the_first_did() -> None:
    """Its messages have no bytes any more, so only the ledger has their time."""
    assert time_of(_places(None), [ROW], [ROW]) == AHEAD


def test_two_commands_have_two_times() -> None:
    """The keys of one command are found by its time, so two rows whose events have one time stay apart."""
    later = msgspec.structs.replace(ROW, digest="e", before=AHEAD + timedelta(microseconds=1))
    assert time_of(_places(AHEAD), [], [ROW, later]) == AHEAD + timedelta(microseconds=2)
