"""What the text of an undecoded message tells of a row."""

from __future__ import annotations

import json
import time

import pytest

from tidemark.erasure.undecoded import _Sought, looked_for, may_hold


def _sought(value: str, *, as_is: bool = True) -> _Sought:
    return looked_for("people", [(["email"], value)], as_is=as_is)


@pytest.mark.parametrize("value", ["müller@x.org", "a/b", 'quo"te\\', "tab\there", "\U0001f600", "<1>"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_key_is_found_however_json_writes_it(value: str, depth: int) -> None:
    """As UTF-8 and in escapes of either case, with a slash escaped or not, in a text in a text, and cut off."""
    for ascii_only in (True, False):
        text: object = {"table": "people", "data": {"email": value, "age": 1}}
        for _ in range(depth):
            text = json.dumps(text, ensure_ascii=ascii_only)
        assert isinstance(text, str)
        for written in (
            text,
            text.replace("\\u00f", "\\u00F"),
            text.replace("/", r"\/"),
            text[: text.index("age") + 1],
        ):
            assert _sought(value).is_in(written.encode()), written
    assert not _sought(value + "x").is_in(text.encode())


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (b'{"table": "people", "data": {"email": "other", "age": 1}}', False),
        (b'{"table": "orders", "data": {"buyer": "other"}}', False),
        (b'{"table": "people", "data": {"email": "other", "ag', False),
        (b'{"table": "people", "data": [["other", 1]]}', True),
        (b'{"table": "people", "columns": [{"name": "email", "value": "me@x.org"}]}', True),
        (b'{"table": "people", "data": {"age": 1, "em', True),
        (b'{"data": {"email": "me@x.org", "age": 1}, "tab', True),
        (b"\x00\x08Obj\x14me@x.org", True),
        (b"me@x.org,people", True),
        (b"me@x.org", True),
        (b"no json", False),
        (b"no\x00json", True),
        (b"", False),
        ('{"table": "people", "name": "Müller", "email": "a"}'.encode("latin-1"), True),
        ('{"table": "people", "email": "a", "name": "Mü'.encode()[:-1], False),
    ],
)
def test_a_message_is_not_cleared_by_a_text_that_does_not_show_the_key(text: bytes, *, unknown: bool) -> None:
    """No JSON, no UTF-8, rows without names of columns, and what is cut off before the key: nobody knows."""
    assert not _sought("me@x.org").is_in(text)
    assert may_hold(text, [_sought("me@x.org")]) is unknown
    assert may_hold(text, [_sought("me@x.org", as_is=False)])


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        (b'{"table":"people","data":[{"id":"1","n', True),
        (b'{"table":"people","data":[{"id":"1', True),
        (b'{"table":"people","data":[{"id":1}]', True),
        (b'{"table":"people","data":[{"number":"001","n', True),
        (b'{"table":"people","data":[{"id":"12","n', False),
        (b'{"table":"people","data":[{"id":"21","n', False),
        (b'{"table":"orders","data":[{"id":"1","n', False),
    ],
)
def test_a_key_is_no_part_of_a_longer_one(text: bytes, *, is_there: bool) -> None:
    """Messages of other people stay, also of those whose key begins or ends alike."""
    assert looked_for("people", [(["id", "number"], "1")], as_is=True).is_in(text) is is_there


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        (b'{"table":"people","region":"eu","id":1,"na', True),
        (b'{"table":"people","id":1,"na":"x","region":"eu', True),
        (b'{"table":"people","region":"us","id":1,"na', False),
        (b'{"table":"people","region":"eu","id":2,"na', False),
        (b'{"table":"people","id":1,"reg', False),
    ],
)
def test_every_column_of_a_key_is_looked_for(text: bytes, *, is_there: bool) -> None:
    """A message that has one of them alone is of another row, or nobody knows."""
    assert looked_for("people", [(["region"], "eu"), (["id"], "1")], as_is=True).is_in(text) is is_there


def test_a_run_of_backslashes_costs_no_more_than_other_texts() -> None:
    """Whoever sends a message that cannot be decoded may fill it with them: an erasure must not take hours for it."""
    sought, size = _sought("a/b"), 200_000

    def seconds(filled: bytes) -> float:
        began = time.process_time()
        for _ in range(3):
            assert not sought.is_in(b'{"people": "' + filled * (size // len(filled)))
            may_hold(b'{"people": "' + filled * (size // len(filled)), [sought])
        return time.process_time() - began

    assert seconds(b"\\") < 100 * max(seconds(b"ab"), 0.01)
