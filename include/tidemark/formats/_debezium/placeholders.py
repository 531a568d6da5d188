"""Debezium's placeholder for a large value that an UPDATE did not touch, so that the database's log does not have it.

Debezium writes it in the form of the column: text, bytes, hstore, or an array of one element or of the text's bytes
(``UnchangedToastedReplicationMessageColumn`` and ``UnchangedToastedPlaceholder`` of its PostgreSQL connector). Where
``binary.handling.mode`` makes text of bytes, it makes text of the placeholder's bytes too. A real value may contain the
same text, so a column counts only if the placeholder is its whole value.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from typing import NamedTuple

from tidemark.events import Encoding, Operation
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import RowLayout, members

_BYTES = frozenset({Encoding.BASE64, Encoding.UNSCALED_BASE64})

_SHORT = 4
"""Bytes. A text may well be the Base64 or the hexadecimal digits of fewer (``00``)."""

Needle = tuple[int, bytes]
"""One byte that many images lack, and the bytes to look for. The search for the one byte comes first: it is fast."""

_RARE = b"=+zqjxk"
"""Bytes that many images lack, the rarest ones first."""


class Forms(NamedTuple):
    """One placeholder: the bytes to look for in an image, and the JSON values that stand for it."""

    needles: tuple[Needle, Needle, Needle, Needle]
    texts: frozenset[bytes]
    binaries: frozenset[bytes]
    """The placeholder in a column of bytes, also as the connector's ``binary.handling.mode`` writes bytes."""
    in_texts: frozenset[bytes]
    """The same in a column of type ``string``, which texts and bytes as text share."""


@functools.lru_cache(maxsize=16)
def forms(text: str) -> Forms:
    """Return the forms of the placeholder ``text`` (the connector's ``unavailable.value.placeholder``).

    The prefix ``hex:`` means that its bytes follow in hexadecimal, as in the connector's setting.
    """
    raw = _octets(text)
    text = raw.decode(errors="replace")
    quoted, numbers = json.dumps(text, ensure_ascii=False).encode(), ",".join(map(str, raw)).encode()
    based, of_urls, hexadecimal = base64.b64encode(raw), base64.urlsafe_b64encode(raw), raw.hex().encode()
    in_both = max(re.split(rb"[+/=]", based), key=len)
    pair = b"{%b:%b}" % (quoted, quoted)
    texts = {quoted, b"[%b]" % quoted, b"[%b]" % numbers, pair, json.dumps(pair.decode(), ensure_ascii=False).encode()}
    unpadded = based.rstrip(b"="), of_urls.rstrip(b"=")
    binaries = frozenset(b'"%b"' % form for form in (based, of_urls, *unpadded, hexadecimal))
    return Forms(
        needles=(_needle(quoted[1:-1]), _needle(in_both), _needle(hexadecimal), (ord("["), numbers)),
        texts=frozenset(texts),
        binaries=binaries,
        in_texts=binaries if len(raw) >= _SHORT else frozenset(),
    )


def _needle(form: bytes) -> Needle:
    return next((byte for byte in _RARE if byte in form), (form or b"{")[0]), form


def _octets(text: str) -> bytes:
    digits = text.removeprefix("hex:")
    try:
        return text.encode() if digits == text else bytes.fromhex(digits)
    except ValueError:
        return text.encode()


def is_selected(operation: Operation, source: Source | None) -> bool:
    """Return whether a query of PostgreSQL read the row, which has every value: a placeholder in it is data.

    Oracle's connector puts placeholders into the rows of a load as well, where it does not capture LOBs.
    """
    return operation is Operation.SNAPSHOT and source is not None and source.connector == "postgresql"


def unavailable(image: bytes, layout: RowLayout, text: str) -> tuple[str, ...]:
    """Return the columns of ``image`` whose whole value is the placeholder ``text``."""
    looked_for = forms(text)
    (a, first), (b, second), (c, third), (d, fourth) = looked_for.needles
    if not (
        (a in image and first in image)
        or (b in image and second in image)
        or (c in image and third in image)
        or (d in image and fourth in image)
    ):
        return ()
    return tuple(
        name
        for name, raw in members(image).items()
        if name in layout.names and _stands_for(looked_for, bytes(raw), name, layout)
    )


def _stands_for(looked_for: Forms, value: bytes, name: str, layout: RowLayout) -> bool:
    column = layout.names[name]
    if column.encoding in _BYTES:
        return value in looked_for.binaries
    compact = value.replace(b" ", b"") if value[:1] in b"[{" else value
    if compact in looked_for.texts:
        return True
    return value in (looked_for.in_texts if column.type == "string" else looked_for.binaries)
