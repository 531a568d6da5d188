"""Spark expressions, one for each ``events.Encoding``, from a parsed JSON value to a value of the column's type.

One rule holds for all of them: a value that the column's type cannot hold exactly becomes null. It is never rounded,
truncated or replaced by a default. ``values.images`` then names its column as unreadable.

In this module ``wire`` is the value as Spark's JSON reader or ``prepare`` gives it, and ``target`` the table's type
string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Encoding
from tidemark.values.counted_times import (
    DAY_MICROS,
    FIRST_DAY,
    LAST_DAY,
    Reader,
    days,
    epoch,
    of_day,
    rescaled,
    whole_quotient,
)
from tidemark.values.digits import (
    SCALES,
    exact_decimal,
    integer_text,
    let,
    long_integer_text,
    long_of,
    power_of_ten,
    with_point,
)
from tidemark.values.message_types import decimal_declared
from tidemark.values.table_columns import Image
from tidemark.values.types import decimal_parts, spark_type
from tidemark.values.verbatim import QUOTED, as_written, if_bare, number_at_place

# With groups that do not capture and possessive quantifiers, Java needs half the time.
# The year 0 is left out: readers of the lake know the years 1 to 9999 only.
_DAY = r"^(?!0000)\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:\.0++)?+)?+)?+Z?$"

_WALL_CLOCK = r"^(?!0000)\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6}+0*+)?+)?+)?+Z?$"

_ZONED = (
    r"^(?!0000)\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6}+0*+)?+)?+(?:Z|[+-]\d{2}(?::?+\d{2})?+)?+)?+$"
)

_TEXT_OR_EPOCH = frozenset({Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})


def typed(wire: Expression, source: Column, kind: str) -> Expression:
    """Return the typed value of a column, made from what ``prepare`` returned; null where it does not fit.

    Args:
        wire: the prepared value.
        source: the column as the messages declare it. The type of an unscaled number gives its scale.
        kind: the table's type string.
    """
    if source.encoding is Encoding.UNSCALED_BASE64:
        _, scale = decimal_declared(source.type or kind) or (0, 0)
        return _unscaled(wire, scale, kind)
    return READERS[source.encoding](wire, kind)


def prepare(wire: Expression, image: Image, source: Column, kind: str) -> Expression:
    """Return what ``typed`` needs. It stands in a projection of its own, because ``typed`` uses it more than once."""
    if source.encoding in _TEXT_OR_EPOCH and kind not in {"string", "binary"}:
        wire = F.nullif(wire, F.lit(""))
    if source.encoding in {Encoding.PLAIN, Encoding.TEXT, *_TEXT_OR_EPOCH} and decimal_parts(kind):
        written = as_written(wire, image, source.name)
        return F.coalesce(written, F.when(wire.isNotNull(), F.lit("not a number")))
    if source.encoding is Encoding.SCALED_STRUCT:
        return F.when(wire.isNotNull(), wire.withField("value", _bytes(wire.getField("value"))))
    if source.encoding is Encoding.UNSCALED_BASE64:
        # With decimal.format=NUMERIC, Kafka Connect writes the number itself in place of Base64.
        number = if_bare(wire, image.text, source.name)
        return F.when(wire.isNotNull(), F.struct(number.alias("number"), _bytes(wire).alias("value")))
    return wire


def is_overflow(wire: Expression, image: Expression, name: str) -> Expression:
    """Return whether a number is too large for its type: it is read as infinity, and is not written as a word.

    Null where it is not infinite: Spark would work out the other half of an AND for each null too.
    """
    return F.when(wire.isin(float("inf"), float("-inf")), number_at_place(image, name) != QUOTED)


def _plain(wire: Expression, target: str) -> Expression:
    return _bytes(wire) if target == "binary" else _text(wire, target)


def _text(wire: Expression, target: str) -> Expression:
    if parts := decimal_parts(target):
        return exact_decimal(wire, *parts)
    return _TEXTREADERS.get(target, _cast)(wire, target)


def _cast(wire: Expression, target: str) -> Expression:
    return F.when(F.trim(wire) == wire, wire.try_cast(spark_type(target)))


def _floating(wire: Expression, target: str) -> Expression:
    value = _cast(wire, target)
    return F.when(~value.isin(float("inf"), float("-inf")) | wire.rlike("(?i)inf"), value)


def _date(wire: Expression, _target: str) -> Expression:
    return F.when(wire.rlike(_DAY), wire.substr(1, 10).try_cast("date"))


def _timestamp(wire: Expression, _target: str) -> Expression:
    return F.when(wire.rlike(_WALL_CLOCK), F.regexp_replace(wire, "Z$", "").try_cast("timestamp_ntz"))


def _timestamptz(wire: Expression, _target: str) -> Expression:
    value = wire.try_cast("timestamp")
    first, end = (F.timestamp_micros(F.lit(day * DAY_MICROS)) for day in (FIRST_DAY, LAST_DAY + 1))
    # Only on these days an offset shifts an instant out of the years that there are.
    inner = ~(wire.startswith("0001-01-01") | wire.startswith("9999-12-31"))
    return F.when(wire.rlike(_ZONED) & (inner | ((value >= first) & (value < end))), value)


def _utf8(wire: Expression, _target: str) -> Expression:
    return F.encode(wire, "UTF-8")


_TEXTREADERS: Mapping[str, Reader] = {
    "binary": _utf8,
    "date": _date,
    "float": _floating,
    "double": _floating,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}


def _bytes(wire: Expression) -> Expression:
    """Return the bytes of Base64 text (either alphabet, padding optional); null when the text is not Base64."""
    text = F.translate(F.rtrim(wire, F.lit("=")), "-_\r\n", "+/")
    rest = F.length(text) % 4
    padding = F.when(rest == 2, "==").when(rest == 3, "=").otherwise("")
    well_formed = wire.rlike(r"^[A-Za-z0-9+/_\r\n-]*={0,2}$")
    return F.when(well_formed, F.try_to_binary(F.concat(text, padding), F.lit("base64")))


def _as_bytes(bytes_of: Callable[[Expression], Expression]) -> Reader:
    """Return a reader of bytes. For a column other than ``binary``, the bytes are a text in UTF-8, which is read on."""

    def read(wire: Expression, target: str) -> Expression:
        value = bytes_of(wire)
        if target == "binary":
            return value
        text = F.try_validate_utf8(value.cast("string"))
        return text if target == "string" else let(text, lambda known: _text(known, target))

    return read


def _latin1(wire: Expression) -> Expression:
    return F.when(~wire.rlike(r"[^\x00-\xFF]"), F.encode(wire, "ISO-8859-1"))


def _hex(wire: Expression) -> Expression:
    return F.when(wire.rlike("^([0-9A-Fa-f]{2})*$"), F.unhex(wire))


def _bits(wire: Expression) -> Expression:
    pairs = F.split(F.regexp_replace(F.hex(_bytes(wire)), "(..)(?!$)", "$1 "), " ")
    return F.unhex(F.array_join(F.reverse(pairs), ""))


def _unscaled(wire: Expression, scale: int, target: str) -> Expression:
    unscaled = wire.getField("value")
    based = _shifted(unscaled, F.lit(scale), target)
    parts = decimal_parts(target)
    if parts is not None and 0 <= scale <= min(parts[1], 18):
        # The common case needs no text: at most eight bytes, and a product that fits the type's digits.
        whole = long_of(unscaled).cast("decimal(19,0)")
        short = whole * power_of_ten(scale) if scale else whole
        based = F.when(F.octet_length(unscaled).between(1, 8), short.try_cast(spark_type(target))).otherwise(based)
    number = wire.getField("number")
    return F.when(number != QUOTED, F.when(number != "", _text(number, target))).otherwise(based)


def _scaled_struct(wire: Expression, target: str) -> Expression:
    return _shifted(wire.getField("value"), wire.getField("scale"), target)


def _shifted(unscaled: Expression, scale: Expression, target: str) -> Expression:
    """Return the number of big-endian two's complement bytes and a scale. Its digits are read as text: none is lost."""
    digits = (
        F.coalesce(integer_text(unscaled), long_integer_text(unscaled))
        if target == "string"
        else integer_text(unscaled)
    )
    text = let(digits, lambda known: with_point(known, scale))
    return F.when(scale.between(*SCALES), let(text, lambda known: _text(known, target)))


def _text_or_epoch(per_second: int) -> Reader:
    instant = epoch(per_second)

    def read(wire: Expression, target: str) -> Expression:
        if target not in {"date", "timestamp", "timestamptz"}:
            return _plain(wire, target)
        count = F.when(wire.rlike(r"^[+-]?\d+$"), wire.try_cast("bigint"))
        if target != "date":
            return F.coalesce(instant(count, target), _text(wire, target))
        micros = rescaled(count, per_second, 1_000_000)
        day = F.when(micros % DAY_MICROS == 0, days(whole_quotient(micros, DAY_MICROS), target))
        return F.coalesce(day, _text(wire, target))

    return read


READERS: Mapping[Encoding, Reader] = {
    Encoding.PLAIN: _plain,
    Encoding.TEXT: _text,
    Encoding.SCALED_STRUCT: _scaled_struct,
    Encoding.BASE64: _as_bytes(_bytes),
    Encoding.LATIN1: _as_bytes(_latin1),
    Encoding.HEX: _as_bytes(_hex),
    Encoding.EPOCH_SECONDS: epoch(1),
    Encoding.EPOCH_MILLIS: epoch(1_000),
    Encoding.EPOCH_MICROS: epoch(1_000_000),
    Encoding.EPOCH_NANOS: epoch(1_000_000_000),
    Encoding.TEXT_OR_MILLIS: _text_or_epoch(1_000),
    Encoding.TEXT_OR_MICROS: _text_or_epoch(1_000_000),
    Encoding.EPOCH_DAYS: days,
    Encoding.MILLIS_OF_DAY: of_day(1_000),
    Encoding.MICROS_OF_DAY: of_day(1_000_000),
    Encoding.NANOS_OF_DAY: of_day(1_000_000_000),
    Encoding.BITS_LE_BASE64: _as_bytes(_bits),
}
