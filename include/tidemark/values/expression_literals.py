"""Texts that an expression casts to another type: read once, so that no row decides whether they hold a value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from tidemark.values.plain_types import EXACT

_WHOLE: Final = {"int": 1 << 31, "long": 1 << 63}
"""Type -> the first number above its own."""


def literal(text: str, kind: str) -> str:
    """Return the text that Spark reads as a value of a type, with all that the text says.

    Raises:
        ValueError, KeyError, ArithmeticError: the type has no such value.
    """
    if kind == "date":
        return date.fromisoformat(text).isoformat()
    if kind in {"timestamp", "timestamptz"}:
        found = datetime.fromisoformat(text)
        if (found.tzinfo is None) == (kind == "timestamptz"):
            raise ValueError(text)
        return found.astimezone(UTC).isoformat(" ") if found.tzinfo else found.isoformat(" ")
    if kind == "boolean":
        return {"true": "true", "false": "false"}[text.lower()]
    return repr(float(text)) if kind == "double" else _exact(text, kind)


def _exact(text: str, kind: str) -> str:
    """Return a whole number or a decimal that the type holds with all its digits.

    >>> _exact("-12345678901234567890123456789.50", "decimal(38, 1)")
    '-12345678901234567890123456789.5'
    """
    from tidemark.values.types import decimal_parts  # noqa: PLC0415  it imports PyIceberg, which `validate` does without

    number = Decimal(text)
    digits, scale = decimal_parts(kind) or (19, 0)
    most = _WHOLE.get(kind, 10 ** (digits - scale))
    if not (-most - 1 if kind in _WHOLE else -most) < number < most:
        raise ValueError(text)
    return f"{number.quantize(Decimal(1).scaleb(-scale), context=EXACT):f}"
