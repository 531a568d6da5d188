"""Kafka records as Kafka's console consumer writes them: fields of one line, with a tab between two.

The properties of its formatter decide which fields a line has: ``CreateTime:1700000000000``, ``Partition:0``,
``Offset:12``, key and value. A key may hold tabs, and so may a value, between the parts of its JSON. So the value is
the first rest of a line that is a JSON object, an array or ``null``. A line that is not certain stays as it is.

https://github.com/apache/kafka/blob/trunk/tools/src/main/java/org/apache/kafka/tools/consumer/DefaultMessageFormatter.java
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.dumps.json_text import is_valid
from tidemark.dumps.kafka_records import Row

_FIELDS: Final = re.compile(
    rb"(?:(?:(?:CreateTime|LogAppendTime):(?P<timestamp>-?[0-9]{1,18})|NO_TIMESTAMP)\t)?"
    rb"(?:Partition:(?P<partition>[0-9]{1,9})\t)?"
    rb"(?:Offset:(?P<offset>[0-9]{1,18})\t)?"
    rb"(?:(?:Delivery:[0-9]+|NOT_PRESENT)\t)?"
    rb"(?:Epoch:[0-9]+\t)?"
    rb"(?:NO_HEADERS\t)?"
)
"""The fields before key and value. All have a name that no JSON begins with."""

_NULL: Final = b"null"
"""``null.literal`` of the formatter."""

_MOST_TABS: Final = 64
"""Tabs at which a value is looked for. Each look may read the rest of the line."""

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

_WITH_SCHEMA: Final = {"schema", "payload"}


def unwrapped(line: bytes) -> Row | None:
    """Return the message of a line; None if the line has no fields before it, or they are not certain."""
    fields = _FIELDS.match(line)
    end = fields.end() if fields else 0
    found = _key_and_value(line[end:])
    if fields is None or found is None or (found[0] is None and not end):
        return None
    key, value = found
    at = {name: None if text is None else int(text) for name, text in fields.groupdict().items()}
    if at["partition"] is None or at["offset"] is None:  # an offset orders the records of one partition
        at["partition"] = at["offset"] = None
    message = None if value == _NULL else value
    return None if key == _NULL else key, message, None, at["partition"], at["offset"], at["timestamp"]


def is_whole(line: bytes) -> bool:
    """Return whether a line without its end is a whole record."""
    return unwrapped(line) is not None


def _key_and_value(rest: bytes) -> tuple[bytes | None, bytes] | None:
    """Return key and value behind the other fields, without a key if there is none; None if they are not certain."""
    if not rest.startswith(b"\t") and _is_value(rest):
        return None, rest
    for tab in _tabs(rest):
        if _is_value(rest[tab + 1 :]):
            key = rest[:tab]
            # Headers are a text with tabs behind it, and may look like the beginning of a key.
            certain = is_valid(key) or (b"\t" not in key and key[:1] not in {b"{", b"[", b'"'})
            return (key, rest[tab + 1 :]) if certain else None
    return None


def _tabs(text: bytes) -> Iterator[int]:
    at = -1
    for _ in range(_MOST_TABS):
        at = text.find(b"\t", at + 1)
        if at < 0:
            return
        yield at


def _is_value(text: bytes) -> bool:
    return text == _NULL or (text[:1] in {b"{", b"["} and is_valid(text))


def are_records(text: bytes, *, whole: bool) -> bool:
    """Return whether a text was written by the console consumer, judged by its beginning.

    Most lines are then such records, and none is JSON by itself.

    Args:
        text: the beginning of a text.
        whole: whether the text ends there.
    """
    records = broken = 0
    *ended, last = text.split(b"\n")
    lines = [line for line in ended if line.strip()] or ([last] if whole else [])  # the last one may be half a line
    for line in lines:
        if line.startswith(b"\t"):
            continue  # an empty key, or blanks before JSON
        if is_valid(line):
            return False
        row = unwrapped(line.removesuffix(b"\r"))
        if row is None:
            broken += 1
        elif _may_be_two_messages(line, row):
            return False
        else:
            records += 1
    return records > broken


def _may_be_two_messages(line: bytes, row: Row) -> bool:
    """Return whether two JSON values in a line may be two messages.

    The first is a key if it has other fields than the value, or some of the value's fields, with the same content.
    """
    key, value = row[:2]
    if key is None or value is None or not line.startswith((b"{", b"[")):
        return False
    one, other = _fields(key), _fields(value)
    if one.keys() == other.keys() == _WITH_SCHEMA:
        one, other = _fields(one["payload"]), _fields(other["payload"])
    if not one:
        return True
    shared = one.keys() & other.keys()
    return bool(shared) and not (one.keys() < other.keys() and all(one[name] == other[name] for name in shared))


def _fields(text: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the fields of an object; none if the text is no object."""
    try:
        return _OBJECT.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return {}
