"""The row images of a message: where there may be none, and which columns the old values of an UPDATE belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from tidemark.errors import MalformedMessageError
from tidemark.formats._json import NULL, RowLayout, is_empty, members


def refuse_rows(kind: str, type_: str | None, *images: Iterable[msgspec.Raw] | None) -> None:
    """Refuse a message that has rows and is no row change: the rows would be lost.

    Args:
        kind: what the message is.
        type_: of the message.
        images: ``data`` and ``old``.

    Raises:
        MalformedMessageError: it has rows.
    """
    if any(not is_empty(bytes(image)) for listed in images for image in listed or ()):
        raise MalformedMessageError(f"{kind} carries a row, and the type is {type_}: what is to become of it?")


def old_values(
    old: msgspec.Raw, row: bytes, layout: RowLayout, absent: Collection[str]
) -> tuple[bytes | None, RowLayout]:
    """Return the old values of an UPDATE (None if there are none for the row), and the layout widened by them.

    Args:
        old: of the row.
        row: the new row.
        layout: of the new row.
        absent: the columns of the layout that the new row lacks.

    Raises:
        MalformedMessageError: a column of ``old`` has another case than that of the row.
    """
    image = bytes(old)
    if image == NULL:
        return None, layout
    found = members(image)
    widened = layout.widened(found)
    if widened is not layout or not found.keys().isdisjoint(absent):
        _refuse_other_case(found, members(row))
    return image if found else None, widened


def _refuse_other_case(old: Collection[str], row: Collection[str]) -> None:
    """Refuse old values of columns that the row spells otherwise: MySQL's names of columns do not differ by their case.

    Such a value would become a column of its own, and a change of the key would not be seen.
    """
    spelled = {name.casefold(): name for name in row}
    for name in old:
        if name not in row and name.casefold() in spelled:
            raise MalformedMessageError(
                f"`old` has the column {name[:60]!r}, and `data` has {spelled[name.casefold()][:60]!r}: are they one?"
            )
