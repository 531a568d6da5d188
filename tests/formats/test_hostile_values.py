"""Any value in any place of a JSON message: decoding gives events or a DecodeError, and nothing else ends it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from support.cases import Case, case_name, cases
from tidemark import formats
from tidemark.errors import DecodeError

NINES = "9" * 5000
"""Python refuses to make an int of so many figures."""

HOSTILE = [
    None, -1, 2**64, {}, [[]], "", "٣", NINES, "9999-99-99", "1e999999999", "\0",
    f"varchar({NINES})", f"decimal({NINES})", f"decimal(9,{NINES})",
    *(msgspec.Raw(number) for number in (b"1e400", b"-0", NINES.encode())),
]  # fmt: skip


def places(tree: Any) -> Iterator[list[Any]]:
    """Return the path of every member and element of a tree of JSON, its root first."""
    yield []
    steps = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for step in steps:
        yield from ([step, *path] for path in places(tree[step]))


def at(tree: Any, path: list[Any]) -> Any:
    """Return what stands at a path."""
    return at(tree[path[0]], path[1:]) if path else tree


def replaced(tree: Any, path: list[Any], value: Any) -> Any:
    """Return the tree with ``value`` at a path."""
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


def variants(tree: Any) -> Iterator[Any]:
    """Return the tree with one place changed: each place takes each hostile value, and texts grow and shrink."""
    for path in places(tree):
        found = at(tree, path)
        texts = [re.sub(r"\d+", NINES, found, count=1), f"-{found}", found[:-1]] if isinstance(found, str) else []
        for value in [*HOSTILE, *texts]:
            yield replaced(tree, path, value)


def chosen() -> Iterator[Any]:
    """Return the cases of JSON: the largest of each format, and for ``make prove`` the others."""
    for name in formats.names():
        found = [case for case in cases(name) if json_of(case.messages[0].value) is not None]
        largest = max(found, key=lambda case: len(case.messages[0].value or b""), default=None)
        for case in found:
            yield pytest.param(case, marks=() if case is largest else pytest.mark.prove, id=case_name(case))


def json_of(content: bytes | None) -> Any:
    """Return the value that bytes of JSON hold; None for null and for other bytes."""
    try:
        return msgspec.json.decode(content or b"null")
    except msgspec.DecodeError:
        return None


@pytest.mark.parametrize("case", chosen())
def test_a_hostile_value_raises_decode_errors_only(case: Case) -> None:
    """Each place of the first message takes each hostile value; the record key, too."""
    message = case.messages[0]
    for part in ("value", "key"):
        tree = json_of(getattr(message, part))
        for variant in variants(tree) if tree is not None else ():
            with contextlib.suppress(DecodeError):
                case.decode(msgspec.structs.replace(message, **{part: msgspec.json.encode(variant)}))
