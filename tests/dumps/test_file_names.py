"""Numbers in paths of files are ordered as numbers, in any delivery, and padded ones keep the positions they had."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidemark.dumps.file_names import FileOrder, widths
from tidemark.positions import encode_position

names = st.lists(
    st.sampled_from(["a", "b", "-", "/", ":", ".", "0", "00", "7", "9", "10", "010", "99", "100"]), max_size=6
)
paths = st.lists(names.map("".join), min_size=1, max_size=12, unique=True)


def in_order(path: str, landed: Iterable[str]) -> str:
    """The text of a path in the order of a source that such files landed in."""
    return FileOrder(width_at=widths(landed)).text(path)


def position(path: str, landed: list[str], place: int = 1) -> str:
    """A position as the change log has it, of an event that its format does not order."""
    return encode_position((1, 0, 0, in_order(path, landed), place))


@pytest.mark.parametrize(
    "ordered",
    [
        ["changes-8.jsonl", "changes-9.jsonl", "changes-10.jsonl", "changes-11.jsonl", "changes-100.jsonl"],
        ["p0/f9.gz", "p0/f10.gz", "p2/f1.gz", "p10/f0.gz"],
        ["0998", "0999", "1000", "1001", "10000"],
        ["f98", "f099", "f100", "f0101"],
        ["2026-9-1/f1", "2026-09-01/f2", "2026-9-01/f3", "2026-09-1/f4", "2026-9-10/f0", "2026-10-1/f0"],
        ["p9/1", "p010/1", "p10/2", "p0010/3", "p10/04", "p010/5"],
        ["a.jsonl", "a1.jsonl", "ab.jsonl"],
        ["x-18446744073709551615", "x-18446744073709551616", "x-" + "9" * 60, "x-1" + "0" * 60],
    ],
    ids=lambda ordered: ordered[0],
)
def test_numbers_are_in_order_whichever_landed_first(ordered: list[str]) -> None:
    """Also if they land one by one, so that positions are stored before the next names are known."""
    for first in ordered:
        positions = [position(path, [first, *ordered]) for path in ordered]
        assert positions == sorted(positions)


@given(landed=paths)
@example(landed=["010a0", "10a7"])
def test_the_order_of_paths(landed: list[str]) -> None:
    """Numbers count as numbers, no two paths have one place, and what landed before stays as it was written."""
    texts = {path: in_order(path, landed) for path in landed}
    assert len(set(texts.values())) == len(landed)
    for count in range(1, len(landed) + 1):
        assert all(in_order(path, landed[:count]) == texts[path] for path in landed[:count])
    for one, other in itertools.combinations(landed, 2):
        shapes = [re.sub("[0-9]+", "#", path) for path in (one, other)]
        values = [list(map(int, re.findall("[0-9]+", path))) for path in (one, other)]
        if shapes[0] == shapes[1] and values[0] != values[1]:
            assert (texts[one] < texts[other]) == (values[0] < values[1])


@given(numbers=st.lists(st.integers(0, 9999), min_size=1, max_size=9, unique=True))
def test_padded_names_are_written_as_they_are(numbers: list[int]) -> None:
    """So lakes with such names go on with the positions that they have."""
    landed = [f"/landing/shop/2026-01-{number % 28 + 1:02d}/changes-{number:04d}.jsonl" for number in numbers]
    assert widths(landed) == {}
    assert [in_order(path, landed) for path in landed] == landed


@pytest.mark.parametrize(
    ("path", "earlier", "now"),
    [
        ("p10/f10", "p10/f10", "p10/f10"),
        ("p10/f9", "p10/f09\x000001", "p10/f09\x000001"),
        ("p10/f100", "p10/f:\x000003100", "p10/f:\x000003100"),
        ("p10/f0100", "p10/f:\x000003100\x000004", "p10/f:\x000003100\x000004"),
        ("p100/f10", "p:\x000003100/f10", "p:\x000003100/f10"),
        ("p2/f1", "p02\x000001/f01\x000001", "p02/f01\x000001\0\x000000\x000001"),
        ("p0100/f10", "p:\x000003100\x000004/f10", "p:\x000003100/f10\0\x000000\x000004"),
    ],
    ids=["as_first", "shorter", "larger", "larger_padded", "larger_folder", "shorter_folder", "larger_padded_folder"],
)
def test_stored_texts_stay(path: str, earlier: str, now: str) -> None:
    """Change logs have them. In earlier versions the length of a number always stood behind it."""
    width_at = {"p": 2, "p\0/f": 2}
    assert FileOrder(width_at=width_at, lengths_in_place=True).text(path) == earlier
    assert FileOrder(width_at=width_at).text(path) == now


def test_paths_that_look_like_marks_stay_apart() -> None:
    """A path is a hostile text, and two files at one place would be one file."""
    landed = ["a9", "a10", "a:10", "a:\x0010", "a:0002\x0010", "a0009", "a09", "a9\x000001", "a:\x00000210"]
    texts = [in_order(path, landed) for path in landed if "\0" not in path]
    assert len(set(texts)) == len(texts)
