"""Undecoded messages of the quarantine: those with the key of a row in their text, and those of which nobody knows.

Nothing but the text tells whose rows such a message has. It is searched as JSON, in every way to write a character
there, and may be nested in a text of another JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.dumps.json_text import is_valid
from tidemark.erasure.subject import ErasedRow
from tidemark.events import Encoding
from tidemark.lake import names
from tidemark.lake.filters import unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE
from tidemark.normalization import inputs
from tidemark.normalization.parts import messages_in
from tidemark.queries.row_events import Identity
from tidemark.tables.eras import names_of
from tidemark.values.sealed_messages import SEALED
from tidemark.values.sealing import Keys

_WRITTEN_AS_IS = frozenset({Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})

_BETWEEN = r"\W{1,20}"
"""What stands between the name of a column and its value: quotes, which may be escaped, a colon and blanks."""

_BACKSLASHES = r"\\{1,64}"
"""A backslash, doubled in each text that is nested in another. Without a bound, a run of them would be read from each
of its places on: that takes the square of its length."""

_SHORT = {"/": "/", '"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""Characters that JSON writes as a backslash and a letter (RFC 8259, section 7)."""

_DIVIDES = re.compile(rb"[\x00-\x1f\x7f\"',:;=|{}\[\]<>()/\\]")
"""Bytes that may stand between two values. Avro has some too: the number of a branch of a union, or a short length."""


class Undecoded(NamedTuple):
    """What a search found."""

    unread: Sequence[tuple[str, int]]
    """Files and places of the messages whose text has the table's name and the key."""
    unsearched: Mapping[str, int]
    """By file, how many messages may have the key, as their text does not show whether they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    """What is looked for in the texts of messages: one key of the row, under one name of its table."""

    table: re.Pattern[bytes]
    members: Sequence[re.Pattern[bytes]]
    """The columns of the key, as members of an object."""
    cells: Sequence[re.Pattern[bytes]]
    """The columns with their values."""
    values: Sequence[re.Pattern[bytes]]
    """The values alone."""
    as_is: bool
    """Whether messages have the values of the key as a person writes them."""

    def is_in(self, text: bytes) -> bool:
        """Return whether the text has the table's name and the key."""
        return bool(self.table.search(text)) and _all(self.cells, text)

    def may_be_in(self, text: bytes, *, is_whole: bool) -> bool:
        """Return whether a text that does not have both does not show either that the row is not in it.

        A whole message names its table. One that is cut off may have lost the name, or the columns of the key.
        """
        if not self.as_is:
            return True
        named = _all(self.members, text)
        return bool(self.table.search(text)) and not named if is_whole else not named or _all(self.cells, text)


def search(lake: Lake, subject: ErasedRow, keys: Keys | None) -> Undecoded:
    """Search the messages that could not be decoded, with the bytes that only ``raw`` has any more.

    Args:
        lake: the lake.
        subject: whose rows.
        keys: by which messages are encrypted.
    """
    quarantine = lake.find(names.quarantine(subject.source))
    sought = [each for identity in subject.identities for each in _sought(subject, identity)]
    unread, unsearched = list[tuple[str, int]](), Counter[str]()
    if quarantine is None:
        return Undecoded(unread, unsearched)
    parts = inputs.quarantined(quarantine, unset("object"), lake.load(names.raw(subject.source)))
    read_from, fields = lake.folder_of(quarantine, QUARANTINE), ["file", "place", "value", SEALED]
    for rows in (rows for part, _ in parts for rows in messages_in(part, read_from, keys, fields)):
        columns = (rows.column(name).to_pylist() for name in ("file", "place", "value"))
        for file, place, text in zip(*columns, strict=True):
            if text is None:
                continue  # its bytes are past their time
            if any(each.is_in(text) for each in sought):
                unread.append((file, place))
            elif may_hold(text, sought):
                unsearched[file] += 1
    return Undecoded(sorted(unread), dict(unsearched))


def may_hold(text: bytes, sought: Iterable[_Sought]) -> bool:
    """Return whether nothing shows that a message without the key in its text does not have the row."""
    if _is_one_value(text):
        return any(not each.as_is or any(pattern.search(text) for pattern in each.values) for each in sought)
    if not _is_text(text):
        return True
    is_whole = _is_whole(text)
    return any(each.may_be_in(text, is_whole=is_whole) for each in sought)


def _sought(subject: ErasedRow, identity: Identity) -> Iterator[_Sought]:
    columns = subject.key_columns(identity.era.key)
    key = [(column.called, str(identity.key[column.name])) for column in columns]
    encodings = {
        each.encoding
        for shape in subject.reader.shapes.values()
        for each in shape.columns
        if any(each.name in column.called for column in columns)
    }
    as_is = encodings <= _WRITTEN_AS_IS and all(column.type in {"int", "long", "string"} for column in columns)
    for name in (*names_of(identity.era.segments), *subject.copies.names):
        yield looked_for(name.rpartition(".")[2], key, as_is=as_is)


def looked_for(table: str, key: Iterable[tuple[Iterable[str], str]], *, as_is: bool) -> _Sought:
    """Return what is looked for in texts.

    Args:
        table: its name without the database.
        key: of each column of the key, the names that images have for it, and the value.
        as_is: whether messages have the values as a person writes them.
    """
    cells = [("|".join(map(spelled, called)), spelled(value)) for called, value in key]
    return _Sought(
        table=_pattern(spelled(table)),
        members=[_pattern(rf'(?:{called})\\*"\s*:') for called, _ in cells],
        cells=[_pattern(rf"(?:{called}){_BETWEEN}0*{value}(?:\W|$)") for called, value in cells],
        values=[_pattern(value) for _, value in cells],
        as_is=as_is,
    )


def spelled(text: str) -> str:
    r"""Return a pattern of all ways in which JSON writes a text; backslashes may be doubled six times.

    >>> bool(re.fullmatch(spelled("ü/1"), r"\u00FC\/1")), bool(re.fullmatch(spelled("ü/1"), r"\\u00fc/\u0031"))
    (True, True)
    """
    return "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    units = character.encode("utf-16-be")
    escapes = "".join(f"{_BACKSLASHES}u" + _hexadecimal(units[at : at + 2]) for at in range(0, len(units), 2))
    short = f"|{_BACKSLASHES}{re.escape(_SHORT[character])}" if character in _SHORT else ""
    return f"(?:{re.escape(character)}|{escapes}{short})"


def _hexadecimal(unit: bytes) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in unit.hex())


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode())


def _all(patterns: Iterable[re.Pattern[bytes]], text: bytes) -> bool:
    return all(pattern.search(text) for pattern in patterns)


def _is_one_value(message: bytes) -> bool:
    """Return whether a message is a text without anything that could divide the values of a row."""
    return not _DIVIDES.search(message) and _is_utf_8(message)


def _is_text(message: bytes) -> bool:
    """Return whether a message begins as JSON and is UTF-8, but for a character that it was cut off in."""
    return message.lstrip()[:1] in {b"{", b"[", b'"'} and b"\0" not in message and _is_utf_8(message)


def _is_utf_8(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _is_whole(text: bytes) -> bool:
    try:
        return is_valid(text)
    except RecursionError:
        return False
