"""Spark expressions that find a number in the text of its image, with the digits that the message has.

Spark's JSON reader gives the text of a quoted value as it is, but writes a bare number that has a fraction or an
exponent anew, as a double. Whether a value stands in quotation marks, and with which digits, is therefore read from the
image, at the value's own place: a member of the row itself, whatever texts, keys and nested values stand around it.
"""

from __future__ import annotations

import functools
import json

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.values.digits import let
from tidemark.values.table_columns import Image

_REWRITTEN = r'^(?:-?\d++\.\d++(?:E-?\d++)?+|"-?Infinity")$'
"""How Spark's JSON reader writes a number that has a fraction or an exponent, or is too large for a double."""

_BARE = r"^(?:-?\d[\d.eE+-]*+|true|false)$"
"""Texts that may stand without quotation marks."""

QUOTED = '"'
"""What ``number_at_place`` gives for a text."""

_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'

_DEPTH = 48
"""How deeply the values in front of a number may be nested. Behind deeper ones, no number is found."""


_MAY_BE_BARE = r'(?:(?<!\\)|(?<=\\\\))"\s*+:\s*+(?:-?\d++[.eE]|-0)'
"""A member whose value is such a number. In a text, the quotation mark in front of the colon has a backslash."""


def may_be_bare(image: Expression) -> Expression:
    """Return whether an image may have a number without quotation marks that the JSON reader writes anew.

    Where it is false, and so it is in all images of writers that quote all values, every value is as it is written.
    """
    return image.rlike(_MAY_BE_BARE)


def as_written(text: Expression, image: Image, name: str) -> Expression:
    """Return the text of a JSON value as the image has it; null where its digits are not found.

    Most texts do not begin as a number does. A comparison of bytes finds them, and they cost nothing more. Spark
    evaluates a whole condition early, so the inner condition stands apart: inside the outer one it would cost a
    microsecond for each text.
    """
    own = F.replace(number_at_place(image.text, name), F.lit(QUOTED), text)
    found = let(own, lambda number: F.when(number != "", number))
    verbatim = F.when(_is_surely_quoted(text, image.text, name), text).otherwise(found)
    minus_zero = (text == "0") & F.contains(image.text, F.lit("-0"))
    may_be = image.may_be_bare & (text < ":") & (text.rlike(_REWRITTEN) | minus_zero)
    return F.when(may_be, verbatim).otherwise(text)


def is_lost(text: Expression, image: Image, name: str) -> Expression:
    """Return whether ``as_written`` does not find the digits of a text."""
    return text.isNotNull() & as_written(text, image, name).isNull()


def if_bare(wire: Expression, image: Expression, name: str) -> Expression:
    """Return ``number_at_place`` for a text that may stand without quotation marks; null for any other text."""
    return F.when(wire.rlike(_BARE), number_at_place(image, name))


def number_at_place(image: Expression, name: str) -> Expression:
    """Return the number that a column has in the image; a quotation mark for a text; empty for every other value."""
    return F.regexp_extract(image, _member(name), 1)


def _is_surely_quoted(text: Expression, image: Expression, name: str) -> Expression:
    """Return whether the value certainly stands between quotation marks; False where a closer look must tell.

    A comma and a quotation mark begin a member wherever a name and a colon follow them. The member belongs to the row
    if the row has no nested object.
    """
    member = json.dumps(name, ensure_ascii=False)
    flat = ~F.contains(F.ltrim(image, F.lit("{")), F.lit("{"))  # a third of the time of `locate`
    return F.contains(image, F.concat(F.lit(f',{member}:"'), text, F.lit('"'))) & flat


@functools.lru_cache(maxsize=1024)
def _member(name: str) -> str:
    """Return a pattern that finds a member of a JSON object by its name, with the beginning of its value as group 1.

    The pattern goes from member to member, over whole texts and nested values. All its quantifiers are possessive, so
    it needs one pass and no stack.
    """
    nested = r'[\[{](?:[^"\[\]{}]++|' + _TEXT + r")*+[\]}]"
    for _ in range(_DEPTH - 1):
        nested = r'[\[{](?:[^"\[\]{}]++|' + _TEXT + "|" + nested + r")*+[\]}]"
    own = rf'"{"".join(map(_character, name))}"\s*+:'
    value = r'("|-?+[0-9][0-9.eE+-]*+)'
    return rf'^\s*+\{{(?:[^"\[\]{{}}]++|(?!{own}){_TEXT}|{nested})*+{own}\s*+{value}'


_SHORT_ESCAPES = {'"': '"', "\\": r"\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def _character(character: str) -> str:
    """Return a pattern for one character of a JSON text: as it is, or escaped in any way."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\u(?i:{units[start : start + 4]})" for start in range(0, len(units), 4))
    if character in _SHORT_ESCAPES:
        escape += rf"|\\{_SHORT_ESCAPES[character]}"
    if character in {'"', "\\"} or character < " ":
        return f"(?:{escape})"
    return rf"(?:\x{{{ord(character):x}}}|{escape})"
