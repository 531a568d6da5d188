"""Bounds of labels that come joined in one text, with commas and backslashes in them."""

from __future__ import annotations

import time

import pytest

from tidemark.values import bounds


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("new,paid", ("new", "paid")),
        (r"so\, so,x\\y,x", ("so\\", " so", r"x\\y", "x", "so, so", r"x\y")),
        (r"a\,b,a\,b,a", ("a\\", "b", "a\\", "b", "a", "a,b", "a,b")),
    ],
)
def test_labels_are_allowed_as_written_and_as_they_are(labels: str, expected: tuple[str, ...]) -> None:
    """The text of the bounds is part of a stored shape, so it stays as it is."""
    assert bounds.parsed(bounds.one_of_joined(labels)).labels == expected


def test_the_most_labels_of_an_enum_are_read_at_once() -> None:
    """MySQL has up to 65,535 of them, and each may be escaped."""
    labels = ",".join(rf"label {number}\, long" for number in range(65_535))
    began = time.process_time()
    found = bounds.parsed(bounds.one_of_joined(labels)).labels or ()
    assert time.process_time() - began < 5  # less than 1; in the square of the labels it is minutes
    assert len(found) == 3 * 65_535
