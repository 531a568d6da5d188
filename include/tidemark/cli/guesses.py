"""Types and encodings guessed from the values of a sample, for columns whose type the messages do not give.

A guess is taken only if every value of the sample can be read by it, exactly. It stays a guess: what it was made from
is shown with it, so that a person can judge it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.values.plain import read_value, text_of

_SCALE = 2
"""Digits after the point that are assumed where only the unscaled number is written."""

_FIRST, _AFTER = 946_684_800, 4_102_444_800
"""2000-01-01 and 2100-01-01 in seconds: times of a business lie between."""

_UNITS = {
    Encoding.EPOCH_NANOS: 1_000_000_000,
    Encoding.EPOCH_MICROS: 1_000_000,
    Encoding.EPOCH_MILLIS: 1000,
    Encoding.EPOCH_SECONDS: 1,
    Encoding.EPOCH_DAYS: 1 / 86_400,
    Encoding.TEXT_OR_MILLIS: 1000,
    Encoding.TEXT_OR_MICROS: 1_000_000,
}
"""Units in a second."""

_SMALL = frozenset({Encoding.EPOCH_SECONDS, Encoding.EPOCH_DAYS})
"""Units whose counts look like any number: only a column whose name says so holds them."""

_TIME_NAME = re.compile(
    r"(^|_)(at|on|date|day|time|timestamp|ts|dt|when|since|until|born|birth\w*|placed|paid|created|updated|modified"
    r"|deleted|shipped|expires?|valid_(from|to))($|_)|(At|On|Date|Time|Day)$",
)

_NUMBER_NAME = re.compile(r"(^|_)(id|no|nr|num|number|phone|mobile|code|zip|sku|ean|version|seq\w*)$|(Id|No|Number)$")

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_FRACTION = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """How the values of a column can be read."""

    type: str
    """An Iceberg type string."""
    encoding: Encoding | None = None
    """What the source file has to say; None where the type alone is enough."""
    example: str = ""
    """A value of the sample, as it is written; empty if all are null."""
    read_as: str = ""
    """The same value as the guess reads it, where that is another text."""
    assumed: str = ""
    """What the values do not show; empty if they cannot be read in another way of the kind."""


def guess(column: Column, values: Sequence[bytes], *, is_key: bool = False) -> Guess:
    """Return how the values of a column can be read.

    Args:
        column: as the messages describe it, without a type.
        values: the values of the sample that are not null, as JSON.
        is_key: whether the column belongs to the key: a time is none.
    """
    if not values:
        return Guess(type="string")
    for kind, encoding, assumed in _candidates(column, values, is_key=is_key):
        candidate = Column(column.name, kind, encoding)
        if all(_reads(raw, candidate) for raw in values):
            example = max(values[:20], key=len)
            shown, read = text_of(example), str(read_value(example, candidate)).removesuffix(".000000")
            written = None if encoding in {Encoding.PLAIN, column.encoding} else encoding
            return Guess(
                type=kind,
                encoding=written,
                example=shown,
                read_as="" if kind == "boolean" or read == shown else read,
                assumed=assumed,
            )
    return Guess(type="string", example=text_of(values[0]))


def _reads(raw: bytes, column: Column) -> bool:
    try:
        read_value(raw, column)
    except UnreadableValueError:
        return False
    return True


_Candidate = tuple[str, Encoding, str]
"""Type, encoding, and what is assumed."""


def _candidates(column: Column, values: Sequence[bytes], *, is_key: bool) -> Iterator[_Candidate]:
    """Yield what may be tried, the best guess first. An encoding that the messages give stays: only types are tried."""
    kinds = {_kind(raw) for raw in values}
    if len(kinds) > 1:
        return
    (kind,) = kinds
    found = {"true": _of_flags, "number": _of_numbers, "text": _of_texts, "object": _of_objects}.get(kind)
    if found is None:
        return
    texts = [text_of(raw) for raw in values]
    times = () if is_key or _NUMBER_NAME.search(column.name) else _times(column, texts)
    for each in (*times, *found(texts)):
        if column.encoding is Encoding.PLAIN:
            yield each
        elif each[1] in {Encoding.PLAIN, Encoding.TEXT, column.encoding}:
            yield each[0], column.encoding, each[2]


def _kind(raw: bytes) -> str:
    first = raw[:1]
    return {b'"': "text", b"t": "true", b"f": "true", b"{": "object", b"[": "list"}.get(first, "number")


def _of_flags(_texts: Sequence[str]) -> Iterator[_Candidate]:
    yield "boolean", Encoding.PLAIN, ""


def _of_numbers(texts: Sequence[str]) -> Iterator[_Candidate]:
    if all(map(_WHOLE.fullmatch, texts)):
        yield "long", Encoding.PLAIN, ""
        yield "decimal(38, 0)", Encoding.PLAIN, ""
    elif any("e" in text.lower() for text in texts):
        yield "double", Encoding.PLAIN, ""
    else:
        yield "decimal(38, 18)", Encoding.PLAIN, ""


def _of_texts(texts: Sequence[str]) -> Iterator[_Candidate]:
    if all(map(_DATE.fullmatch, texts)):
        yield "date", Encoding.PLAIN, "the text is a date"
    if all(found := [_MOMENT.fullmatch(text) for text in texts]):
        zoned = any(match and match[3] for match in found)
        what = "an instant" if zoned else "a wall clock"
        yield "timestamptz" if zoned else "timestamp", Encoding.PLAIN, f"the text is {what}"
    if set(texts) <= {"true", "false"}:
        yield "boolean", Encoding.TEXT, "the text is a truth value"
    if all(_WHOLE.fullmatch(text) and len(text) < 19 for text in texts):
        yield "long", Encoding.TEXT, "the text is a number"
    if all(_WHOLE.fullmatch(text) or _FRACTION.fullmatch(text) for text in texts) and any(
        "." in each for each in texts
    ):
        yield "decimal(38, 18)", Encoding.TEXT, "the text is a number"
    if all(map(_BASE64.fullmatch, texts)) and any(text.endswith("=") for text in texts):
        assumed = f"the text is an unscaled number in Base64, {_SCALE} digits after the point are assumed"
        yield f"decimal(38, {_SCALE})", Encoding.UNSCALED_BASE64, assumed


def _of_objects(_texts: Sequence[str]) -> Iterator[_Candidate]:
    yield "decimal(38, 18)", Encoding.SCALED_STRUCT, "the object is a number with its scale"


def _times(column: Column, texts: Sequence[str]) -> Iterator[_Candidate]:
    """Yield the units in which all values are times of our days."""
    if not all(_WHOLE.fullmatch(text) and len(text) < 20 for text in texts):
        return
    numbers = [int(text) for text in texts]
    named = _TIME_NAME.search(column.name) is not None
    for encoding, units in _UNITS.items():
        is_own = encoding is column.encoding
        if not is_own and (column.encoding is not Encoding.PLAIN or not encoding.value.startswith("epoch")):
            continue
        if encoding in _SMALL and not named:
            continue
        if all(_FIRST * units <= number < _AFTER * units for number in numbers):
            kind = "date" if encoding is Encoding.EPOCH_DAYS else "timestamp"
            yield kind, encoding, "the number counts the time since 1970"
