"""Changes at one place of a log: their order alone shows which were sent again."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.folding.redelivery import JUDGED, PlacedChange, judge, judged
from tidemark.positions import encode_position, placed


def _position(offset: int, *, row: int | None = 0, number: int = 0, partition: int = 0) -> str:
    rest = () if row is None else (row, 1)
    return encode_position(placed((1, 31, 4711), (number, 1, partition, offset), rest))


def _kept(changes: list[PlacedChange]) -> str:
    return "".join(
        chr(change.content) for change, said in zip(changes, judge(changes), strict=True) if not said.is_copy
    )


@pytest.mark.parametrize(
    ("delivered", "kept"),
    [
        ("ABCA", "ABCA"),
        ("AAB", "AAB"),
        ("AAAA", "AAAA"),
        ("ABCA.ABCA", "ABCA"),
        ("ABCA.ABCA.ABCA", "ABCA"),
        ("ABCA.AB", "ABCA"),
        ("ABABCA", ("ABC" "A")),
        ("ABABCABCAD", "ABCAD"),
        ("AB.ABCA", "ABCA"),
        ("A.A", "A"),
        ("A.A.A", "A"),
        ("A.AB", "AAB"),
        ("AB.CA", "ABCA"),
        ("ABCA.AB.CA", "ABCA"),
    ],
)  # fmt: skip
def test_what_was_delivered_of_one_place(delivered: str, kept: str) -> None:
    """A dot is a gap in the offsets: something else was delivered there."""
    changes = [PlacedChange(_position(offset), ord(what)) for offset, what in enumerate(delivered) if what != "."]
    assert sorted(_kept(changes)) == sorted(kept)


@pytest.mark.parametrize(
    ("delivered", "kept"),
    [("1A 2A 3A 1A 2A 3A 4B", "AAAB"), ("1A 1A 2B", "AB"), ("1A 1A 1A", "A"), ("9A 10A 9A 10A 11B", "AAB")],
)
def test_numbers_tell_what_contents_do_not(delivered: str, kept: str) -> None:
    """Equal changes have other numbers in their transaction, and the same ones when they are sent again.

    A connector may have been killed after the first of them.
    """
    entries = [(int(each[:-1]), each[-1]) for each in delivered.split()]
    changes = [
        PlacedChange(_position(offset, number=number), ord(what)) for offset, (number, what) in enumerate(entries)
    ]
    assert _kept(changes) == kept


def test_numbers_tell_over_partitions() -> None:
    """What is sent again may come in another partition."""
    entries = [(0, 1, "A"), (1, 2, "A"), (1, 1, "A"), (0, 2, "A")]
    changes = [
        PlacedChange(_position(offset, number=number, partition=partition), ord(what))
        for offset, (partition, number, what) in enumerate(entries)
    ]
    assert _kept(changes) == "AA"


@pytest.mark.parametrize(("partitions", "kept"), [((0, 1), "A"), ((0, 0), "AA")])
def test_rows_of_one_copy_statement(partitions: tuple[int, int], kept: str) -> None:
    """PostgreSQL: equal rows that stand side by side are several, one in another partition was sent again."""
    changes = [
        PlacedChange(_position(offset, row=None, partition=partition), ord("A"))
        for offset, partition in enumerate(partitions, start=5)
    ]
    assert _kept(changes) == kept


def test_a_file_that_repeats_another_is_a_run_of_its_own() -> None:
    """Places in two files say nothing of each other: the order is that of the files, and then of their lines."""
    entries = [("a", 1, "A"), ("a", 3, "B"), ("b", 2, "A"), ("b", 4, "B")]
    changes = [
        PlacedChange(encode_position(placed((1, 31, 4711), (0, 0, 0, file, place), (0, 1))), ord(what))
        for file, place, what in entries
    ]
    assert _kept(changes) == "AB"


def test_files_have_no_gap_for_entries_of_several_tables() -> None:
    """In files the changes of other tables stand between the changes of one transaction."""
    entries = [("a", 1, "A"), ("a", 5, "B"), ("b", 2, "A")]
    changes = [
        PlacedChange(encode_position(placed((1, 31, 4711), (0, 0, 0, file, place), (0, 1))), ord(what))
        for file, place, what in entries
    ]
    assert _kept(changes) == "ABA"


def test_a_guess_is_told_as_one() -> None:
    """Only where nothing but equal contents speaks for it."""
    for delivered, guesses in (("ABAB", 2), ("AB.AB", 0)):
        changes = [PlacedChange(_position(offset), ord(what)) for offset, what in enumerate(delivered) if what != "."]
        assert sum(said.is_guess for said in judge(changes)) == guesses


@given(st.data(), st.text("ABC", min_size=1, max_size=12), st.lists(st.integers(2, 12), max_size=4))
def test_any_restarts_give_the_changes_of_the_place(data: st.DataObject, made: str, kills: list[int]) -> None:
    """A first change that no other equals, any restarts behind two changes or more, in any order, at any time."""
    made = f"Z{made}"
    runs = [made[:kill] for kill in sorted(kill for kill in kills if kill < len(made))]
    delivered = "".join([*runs, made])
    changes = [PlacedChange(_position(offset), ord(what)) for offset, what in enumerate(delivered)]
    mixed = data.draw(st.permutations(changes))
    assert sorted(_kept(mixed)) == sorted(made)


@given(st.data(), st.text("ABC", min_size=1, max_size=12), st.lists(st.integers(1, 12), max_size=4))
def test_any_restarts_give_the_changes_that_have_numbers(data: st.DataObject, made: str, kills: list[int]) -> None:
    """Whatever the changes are, and also behind the first one."""
    runs = [made[:kill] for kill in sorted(kill for kill in kills if kill < len(made))]
    delivered = [(number, what) for run in (*runs, made) for number, what in enumerate(run, start=1)]
    changes = [
        PlacedChange(_position(offset, number=number), ord(what)) for offset, (number, what) in enumerate(delivered)
    ]
    assert sorted(_kept(data.draw(st.permutations(changes)))) == sorted(made)


def test_workers_judge_each_place_by_itself() -> None:
    """The changes of a place may lie in several batches, and those of another place beside them."""
    rows = [
        (place, _position(offset), ord(what))
        for place, sent in (("a", "AAB"), ("b", "ABAB"))
        for offset, what in enumerate(sent)
    ]
    names = ["log_place", "position", "content"]
    batches = [
        pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in part])
        for part in (rows[:2], rows[2:4], rows[4:])
    ]
    found = list(judged(batches))
    assert [batch.schema for batch in found] == [JUDGED, JUDGED]
    assert [batch.column("position").to_pylist() for batch in found] == [
        [row[1] for row in rows[:3]],
        [row[1] for row in rows[3:]],
    ]
    assert [batch.column("judged_copy").to_pylist() for batch in found] == [[False] * 3, [False, False, True, True]]
    assert [batch.column("judged_guess").to_pylist() for batch in found] == [[False] * 3, [False, False, True, True]]
