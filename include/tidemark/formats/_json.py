"""Strict JSON for decoders: envelopes, and the columns that an image holds, told without touching a value.

Images travel as verbatim bytes and are read later by another JSON reader. So whatever two readers could take
differently is refused here: bytes that are no UTF-8, and an image that names one column twice.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from tidemark.errors import MalformedMessageError, MissingTableError
from tidemark.events import Column, Encoding, Shape, TableId

T = TypeVar("T")

ABSENT = msgspec.Raw()
"""Default of an envelope field whose JSON is carried on unread: zero bytes, so false."""

NULL = b"null"

_MARK = b"\xef\xbb\xbf"
"""UTF-8 byte order mark: some dump tools write one before the first message."""

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])

_encode = msgspec.json.Encoder().encode


def read(decoder: msgspec.json.Decoder[T], value: bytes) -> T:
    """Decode one message.

    Raises:
        MalformedMessageError: broken JSON, invalid UTF-8, lone surrogates, ``NaN``, or a field of the wrong type.
    """
    try:
        if not value.isascii():
            check_utf8(value)
            value = value.removeprefix(_MARK)
        return decoder.decode(value)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessageError(f"not the JSON that the format describes: {error}") from error


def check_utf8(value: bytes) -> None:
    """Check all of a message: msgspec looks at the strings that it decodes, but not into a Raw.

    Raises:
        MalformedMessageError: invalid UTF-8.
    """
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"not UTF-8: {error}") from error


def members(image: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object, values unread, in their order.

    Raises:
        MalformedMessageError: not an object, or one that names a member twice.
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
    """Take out the blanks that Python's and other writers put behind colons and commas.

    No bracket, quotation mark or comma goes, so the text has as many members as before: it equals the shortest form
    of unique members only where no name is repeated.
    """
    return image.replace(b'": ', b'":').replace(b', "', b',"')


def unwrap(value: bytes) -> tuple[bytes, bytes | None]:
    """Return the payload and the schema of ``{schema, payload}``, or ``value`` itself and None.

    Raises:
        MalformedMessageError: not an object.
    """
    try:
        found = _object.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"not a JSON object: {error}, in {value[:60]!r}") from error
    if len(found) == 2 and "schema" in found and "payload" in found:
        return bytes(found["payload"]), bytes(found["schema"])
    return value, None


def _refuse_duplicates(image: bytes) -> None:
    """Look at each member of an object that is not written in the shortest form, as nearly all producers write it.

    What decoding and encoding gives back byte for byte needs no look: the value of a repeated name would be lacking.
    """
    pairs = json.loads(image, object_pairs_hook=list, parse_int=str, parse_float=str)
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise MalformedMessageError(f"a row image names a column twice: {', '.join(twice)}")


class RowLayout:
    """A shape, and a compiled test that an image holds exactly its columns.

    Layouts are cached by what they are built from, so equal schema bytes give the same ``shape`` object.
    """

    __slots__ = ("_decode", "names", "shape")

    def __init__(self, columns: Iterable[Column]) -> None:
        self.shape = Shape(columns=tuple(columns))
        self.names: Mapping[str, Column] = {column.name: column for column in self.shape.columns}
        self._decode = _exactly(tuple(self.names))

    def fits(self, image: bytes) -> bool:
        """Tell, fast, that ``image`` has each column of the shape once, in this order, and no other.

        False means: look closer, with ``members``.
        """
        try:
            return _encode(self._decode(image)) == image
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False

    def missing(self, found: Mapping[str, object]) -> tuple[str, ...]:
        """Return the columns of the shape that are not in ``found``."""
        return tuple(name for name in self.names if name not in found)

    def widened(self, found: Iterable[str]) -> RowLayout:
        """Return this layout, or one that also has the columns of ``found`` that it lacks, type untold."""
        extra = tuple(name for name in found if name not in self.names)
        return _widened(self, extra) if extra else self


def _exactly(names: tuple[str, ...]) -> Callable[[bytes], object]:
    """Return a function that decodes an object with exactly these members."""
    fields = [(f"c{index}", msgspec.Raw) for index in range(len(names))]
    rename = {f"c{index}": name for index, name in enumerate(names)}
    try:
        row = msgspec.defstruct("Row", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    except ValueError:
        # msgspec refuses a quote, a backslash or a control character in a name
        return functools.partial(_exactly_slowly, names)
    return msgspec.json.Decoder(row).decode


def _exactly_slowly(names: tuple[str, ...], image: bytes) -> object:
    found = _object.decode(image)
    if tuple(found) != names:
        raise msgspec.ValidationError("other columns")
    return found


@functools.lru_cache(maxsize=1024)
def _widened(layout: RowLayout, extra: tuple[str, ...]) -> RowLayout:
    return RowLayout((*layout.shape.columns, *(Column(name=name) for name in extra)))


@functools.lru_cache(maxsize=1024)
def untyped(names: tuple[str, ...], type_: str | None = None, encoding: Encoding = Encoding.PLAIN) -> RowLayout:
    """Return the layout of columns of which the messages tell the names only (or one type for all of them)."""
    return RowLayout(Column(name=name, type=type_, encoding=encoding) for name in names)


@functools.lru_cache(maxsize=1024)
def table_id(text: str) -> TableId:
    """Read a table from an option: ``table``, ``database.table`` or ``database.schema.table``."""
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
