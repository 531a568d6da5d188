"""Unknown members in the ledger: each once, with the first batch that had it."""

from __future__ import annotations

from tidemark.lake.filters import above, among
from tidemark.lake.lake import Lake
from tidemark.ledger import member_rows
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.member_rows import UnknownMemberRow


def _row(batch: int, member: str, place: int = 1) -> UnknownMemberRow:
    return UnknownMemberRow(batch=batch, member=member, file="a.json", place=place)


def test_a_member_is_noted_once(lake: Lake) -> None:
    """In the batch that had it first, whatever later ones have; decoded again, a batch keeps what it had."""
    ledger = Ledger(lake, "of_members")
    member_rows.note(ledger, [], above("batch", 0))
    assert member_rows.unknown_members(ledger) == []
    member_rows.note(ledger, [_row(1, "part", 9), _row(1, "part", 4)], above("batch", 0))
    member_rows.note(ledger, [_row(2, "part"), _row(2, "more")], above("batch", 1))
    member_rows.note(ledger, [], above("batch", 2))
    expected = [_row(1, "part", 4), _row(2, "more")]
    assert sorted(member_rows.unknown_members(ledger), key=lambda row: row.batch) == expected
    member_rows.note(ledger, [_row(2, "part"), _row(2, "more")], among("batch", [2]))
    assert sorted(member_rows.unknown_members(ledger), key=lambda row: row.batch) == expected
    member_rows.note(ledger, [], among("batch", [2]))
    assert member_rows.unknown_members(ledger) == expected[:1], "a newer version knows the other one"


def test_members_that_a_reprocessing_finds_are_told_from_those_known_before(lake: Lake) -> None:
    """One that was known stays what it was; one that it finds has its number, until a later one finds it no more."""
    ledger = Ledger(lake, "of_reprocessed_members")
    member_rows.note(ledger, [_row(1, "part")], above("batch", 0))
    everything = among("batch", [1])
    for number in (1, 2):
        member_rows.note(ledger, [_row(1, "part"), _row(1, "more")], everything, number)
        found = {row.member: row.reprocessed for row in member_rows.unknown_members(ledger)}
        assert found == {"part": None, "more": 1}
