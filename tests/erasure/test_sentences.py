"""What an erasure leaves is said with what to do about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tidemark.erasure import sentences
from tidemark.erasure.certificate import SearchedTable
from tidemark.erasure.subject import ErasedRow

ROW = cast(ErasedRow, SimpleNamespace(target="shop.people", source="shop"))
_PLACE = SearchedTable(files=1, unused_files=0)
_FOUND = SearchedTable(files=1, unused_files=0, found=2)


@pytest.mark.parametrize(
    ("table", "left", "said"),
    [
        (None, {}, []),
        ("shop.people", {}, ["shop.people: rows are left, erase again"]),
        ("shop.people", {"day1.json": [2]}, []),
    ],
)
def test_rows_that_are_left_are_erased_again(table: str | None, left: dict[str, list[int]], said: list[str]) -> None:
    """Not where a message has them that cannot be decoded: that has a sentence of its own, and another remedy."""
    places = {"shop.people": _PLACE, "changelog.shop": _PLACE} | ({table: _FOUND} if table else {})
    assert list(sentences.rows_left(ROW, places, left)) == said


def test_a_comparison_of_the_last_hour_is_waited_for() -> None:
    """Its file may be of a commit that is under way, and all sources share the table."""
    (said,) = sentences.rows_left(ROW, {str(sentences.compared_keys.TABLE): _FOUND}, {"day1.json": [2]})
    assert said.endswith("Erase again in an hour")


def test_messages_are_named_by_file() -> None:
    """In quarantine with their remedy, in dump files as what Tidemark does not touch."""
    (said,) = sentences.undecoded("shop", {"day1.json": [2, 7]})
    assert said == (
        "day1.json, messages 2, 7: not decoded, in quarantine, and the text has the table's name and the key. Correct "
        "the cause and `tidemark quarantine retry shop`, or erase with `--unread`"
    )
    (said,) = sentences.retriable("shop", {"day1.json": [2, 7]})
    assert said == (
        "day1.json, messages 2, 7: in quarantine, and can be decoded now. They have the row, and perhaps rows of "
        "others, which are nowhere else: `tidemark quarantine retry shop`, then give the command again"
    )
    assert list(sentences.in_dumps({"day1.json": [2, 7]})) == [
        "day1.json holds rows of the key at 2, 7: Tidemark does not touch dump files"
    ]
    assert [text.partition(": ")[2][:9] for text in sentences.unsearched(ROW, {"b": 1, "a": 2})] == [
        "2 message",
        "1 message",
    ]


def test_nothing_is_said_of_what_is_known() -> None:
    """No events are past their time, and no folder has files of others."""
    assert [*sentences.unfollowed(ROW, 0), *sentences.unknown_files({"shop.people": _PLACE})] == []
