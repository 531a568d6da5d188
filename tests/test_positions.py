"""Positions as text: the order of the text is the order of the positions, and parts stay apart."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tidemark.positions import encode_position, identity, log_number, placed

_NAMES = st.text() | st.text("./%~-0A", max_size=4)
"""Names of files: of any characters, and of those that stand near the separator."""


@given(_NAMES, _NAMES)
@example("d.10/x", "d")
@example("a.b", "a/b")
@example("a.~.b", "a")
def test_a_name_is_one_part_of_its_own(one: str, other: str) -> None:
    """Whatever characters it has: none is read as the separator, and no two names have one text."""
    first, second = (encode_position((1, name, 5)) for name in (one, other))
    assert first.count(".") == second.count(".") == 2
    assert (first == second) is (one == other)


@given(_NAMES, _NAMES)
@example("a.b", "a/b")
@example("a%b", "a-b")
@example("a~", "a/")
def test_names_keep_their_order(one: str, other: str) -> None:
    """As text and as bytes, before any number behind them, where neither name is the beginning of the other."""
    assume(not one.startswith(other) and not other.startswith(one))
    first, second = (encode_position((1, name, number)) for name, number in ((one, 10), (other, 9)))
    assert (first < second) is (first.encode() < second.encode()) is (one < other)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("a.json.1", "a.json"),
        ("a-2", "a"),
        ("a b", "a"),
        ("a%", "a"),
        ("a", "a2"),
        ("a", "aa"),
        ("a", "a:"),
        ("a", "aé"),
    ],
)
def test_a_name_that_begins_another_has_the_place_that_is_documented(earlier: str, later: str) -> None:
    """Stored positions have it: behind the longer one, unless that goes on with a digit or a letter."""
    assert encode_position((1, earlier, 9)) < encode_position((1, later, 1))


@given(_NAMES)
@example("x.~.~y")
def test_a_delivery_is_told_whatever_the_name_of_its_file(name: str) -> None:
    """Copies of a change that come in two files have one identity, and what stands around the delivery stays."""
    for file in (name, f"{name}.again"):
        assert identity(encode_position(placed((1, 31), (0, 0, 0, file, 4), (2,)))) == "011.0231.012"


@pytest.mark.parametrize(
    "files",
    [
        ["mysql-bin.000009", "mysql-bin.000010", "mysql-bin.1000000"],
        ["binlog-202512.000040", "binlog-202601.000001", "binlog-202601.000002"],
        ["db1-2026-01-31.7", "db1-2026-02-01.1", "db1-2026-02-01.2"],
        ["log3.000001", "log3.000002"],
    ],
)
def test_numbers_rise_with_the_files_of_a_binary_log(files: list[str]) -> None:
    """Also where they start again with the month or the day that a base name has."""
    numbers = [log_number(file) or 0 for file in files]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("file", [None, "", "mysql-bin", "mysql-bin.index", "1.", "mysql-bin." + "9" * 18 + "x"])
def test_a_name_without_a_number_at_its_end_has_none(file: str | None) -> None:
    """Then nothing orders the files."""
    assert log_number(file) is None
