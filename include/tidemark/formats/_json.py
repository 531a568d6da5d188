"""Strict JSON for decoders: envelopes, and the columns of an image, found without reading its values.

Images travel as verbatim bytes, and another JSON reader reads them later. So input that two readers could understand
differently is refused here: bytes that are not UTF-8, and an image that names a column twice.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TypeVar

import msgspec

from tidemark.errors import MalformedMessageError, MissingTableError
from tidemark.events import Column, Encoding, Shape, TableId

T = TypeVar("T")

ABSENT = msgspec.Raw()
"""Default of an envelope field whose JSON is passed on unread. It has no bytes, so it is false."""

NULL = b"null"

_EMPTY = b"{}"

_OPENS = frozenset({b"{", b"n"})
"""First bytes of an object and of null."""

_MARK = b"\xef\xbb\xbf"
"""UTF-8 byte order mark. Some dump tools write one before the first message."""

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])

_encode = msgspec.json.Encoder().encode


def read(decoder: msgspec.json.Decoder[T], value: bytes) -> T:
    """Return one message, decoded.

    Raises:
        MalformedMessageError: broken JSON, invalid UTF-8, lone surrogates, ``NaN``, or a field of the wrong type.
    """
    try:
        return decoder.decode(value if value.isascii() else without_mark(value))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessageError(f"not the JSON that the format describes: {error}") from error


def check_utf8(value: bytes) -> None:
    """Check that a whole message is UTF-8. msgspec checks the strings that it decodes, but not the bytes of a ``Raw``.

    Raises:
        MalformedMessageError: it is not.
    """
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"not UTF-8: {error}") from error


def without_mark(value: bytes) -> bytes:
    """Return a whole message without a byte order mark.

    Raises:
        MalformedMessageError: it is not UTF-8.
    """
    check_utf8(value)
    return value.removeprefix(_MARK)


def members(image: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object in their order, without reading their values.

    Raises:
        MalformedMessageError: not a JSON object, or one that names a member twice.
    """
    try:
        found = _object.decode(image)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"a row image must be a JSON object: {error}, in {image[:60]!r}") from error
    shortest = _encode(found)
    if image != shortest and _tightened(image) != shortest:
        _refuse_duplicates(image)
    return found


def _tightened(image: bytes) -> bytes:
    """Return the image without the blanks that Python and other writers put behind colons and commas.

    It keeps every bracket, quotation mark and comma, and so all its members. If a name is repeated, it therefore
    cannot equal the shortest form, which has unique members.
    """
    return image.replace(b'": ', b'":').replace(b', "', b',"')


def is_empty(value: bytes) -> bool:
    """Return whether a JSON value holds nothing: it is missing, null, an empty object or an empty list."""
    return value.translate(None, b" \t\r\n") in {b"", NULL, b"{}", b"[]"}


def image_of(raw: msgspec.Raw) -> bytes | None:
    """Return the bytes of an image; None if it is missing, null, or an object without columns."""
    image = bytes(raw)
    return image if image and image not in (NULL, _EMPTY) else None


def unwrap(value: bytes) -> tuple[bytes, bytes | None]:
    """Return the payload and the schema of ``{schema, payload}``; for any other object, ``value`` itself and None.

    A schema is an object or null: with anything else, both are columns of these names. Some tools write ``{payload}``
    alone. If it is neither an object nor null, it is a column of that name.

    Raises:
        MalformedMessageError: not a JSON object, or not UTF-8.
    """
    if not value.isascii():
        value = without_mark(value)
    try:
        found = _object.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"not a JSON object: {error}, in {value[:60]!r}") from error
    if len(found) == 2 and bytes(found.get("schema", ABSENT))[:1] in _OPENS and "payload" in found:
        return bytes(found["payload"]), bytes(found["schema"])
    if len(found) == 1 and bytes(found.get("payload", ABSENT))[:1] in _OPENS:
        return bytes(found["payload"]), None
    return value, None


def _refuse_duplicates(image: bytes) -> None:
    """Refuse an object that names a member twice.

    It reads every member, so it is only called for an object that is not written in the shortest form, which nearly all
    producers use. If decoding and encoding gives the same bytes, no name is repeated: a value would have been lost.
    """
    pairs = json.loads(image, object_pairs_hook=list, parse_int=str, parse_float=str)
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise MalformedMessageError(f"a row image names a column twice: {', '.join(twice)}")


class RowLayout:
    """A shape, and a compiled test whether an image has exactly its columns.

    Layouts are cached by their input, so equal schema bytes give the same ``shape`` object.
    """

    __slots__ = ("_decode", "latin1", "names", "shape")

    def __init__(self, columns: Iterable[Column]) -> None:
        self.shape = Shape(columns=tuple(columns))
        self.names: Mapping[str, Column] = {column.name: column for column in self.shape.columns}
        self.latin1 = tuple(column.name for column in self.shape.columns if column.encoding is Encoding.LATIN1)
        self._decode = _exactly(tuple(self.names))

    def fits(self, image: bytes) -> bool:
        """Return True if ``image`` has each column of the shape once, in this order, and no other column.

        This test is fast. False may also mean that the image is written in another way: look closer, with ``members``.
        """
        try:
            return _encode(self._decode(image)) == image
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False

    def missing(self, found: Container[str]) -> tuple[str, ...]:
        """Return the columns of the shape that are not in ``found``."""
        return tuple(name for name in self.names if name not in found)

    def widened(self, found: Iterable[str], typed: RowLayout | None = None) -> RowLayout:
        """Return this layout, or one that also has the columns of ``found`` that it lacks.

        They have the types of ``typed``, and without it no types.
        """
        extra = tuple(name for name in found if name not in self.names)
        return _widened(self, extra, typed) if extra else self


def _exactly(names: tuple[str, ...]) -> Callable[[bytes], object]:
    """Return a function that decodes an object with exactly these members."""
    fields = [(f"c{index}", msgspec.Raw) for index in range(len(names))]
    rename = {f"c{index}": name for index, name in enumerate(names)}
    try:
        row = msgspec.defstruct("Row", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    except ValueError:
        # msgspec refuses a quotation mark, a backslash or a control character in a name
        return functools.partial(_exactly_slowly, names)
    return msgspec.json.Decoder(row).decode


def _exactly_slowly(names: tuple[str, ...], image: bytes) -> object:
    found = _object.decode(image)
    if tuple(found) != names:
        raise msgspec.ValidationError("other columns")
    return found


@functools.lru_cache(maxsize=1024)
def _widened(layout: RowLayout, extra: tuple[str, ...], typed: RowLayout | None) -> RowLayout:
    known = typed.names if typed is not None else {}
    return RowLayout((*layout.shape.columns, *(known.get(name) or Column(name=name) for name in extra)))


@functools.lru_cache(maxsize=1024)
def untyped(names: tuple[str, ...], type_: str | None = None, encoding: Encoding = Encoding.PLAIN) -> RowLayout:
    """Return the layout of columns with names only, or with one type and encoding for all of them."""
    return RowLayout(Column(name=name, type=type_, encoding=encoding) for name in names)


@functools.lru_cache(maxsize=1024)
def table_id(text: str) -> TableId:
    """Return the table that a text names: ``table``, ``database.table`` or ``database.schema.table``."""
    match text.split(".", 2):
        case [database, schema, name]:
            return TableId(database=database, schema=schema, name=name)
        case [database, name]:
            return TableId(database=database, schema=None, name=name)
        case _:
            return TableId(database=None, schema=None, name=text)


def table_of_option(text: str | None) -> TableId:
    """Return the table that the option ``table`` names, for a message that names none.

    Raises:
        MissingTableError: the option is not set.
    """
    if not text:
        raise MissingTableError("the message names no table; set the option `table` in the source file")
    return table_id(text)
