"""Spark expressions for dates and times that are written as counts of days, seconds or fractions of a second.

As in ``values.encodings``, what the column's type cannot hold exactly becomes null.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.values.types import spark_type

Reader = Callable[[Expression, str], Expression]
"""(prepared value, the table's type string) to the typed value; null where it does not fit."""

DAY_MICROS = 86_400_000_000

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Days since 1970 of the years 1 to 9999. PyIceberg and DuckDB read no date or time outside of them."""

_TIMES = frozenset({"date", "timestamp", "timestamptz"})


def days(wire: Expression, target: str) -> Expression:
    """Return the date or midnight of a count of days since 1970; its text in any year."""
    day = F.date_add(F.lit("1970-01-01").cast("date"), wire.try_cast("int"))
    if target == "string":
        return day.cast("string")
    return F.when(wire.between(FIRST_DAY, LAST_DAY), day.cast(spark_type(target))) if target in _TIMES else F.lit(None)


def epoch(per_second: int) -> Reader:
    """Return a reader of counts since 1970, with so many counts a second."""

    def read(wire: Expression, target: str) -> Expression:
        if target == "string":
            return _instant_text(wire, per_second)
        micros = rescaled(wire, per_second, 1_000_000)
        if target == "date":  # a time of day does not fit
            micros = F.when(micros % DAY_MICROS == 0, micros)
        if target not in _TIMES:
            return F.lit(None)
        instant = F.timestamp_micros(micros)
        value = instant if target == "timestamptz" else instant.cast(spark_type(target))
        first, end = (day * 86_400 * per_second for day in (FIRST_DAY, LAST_DAY + 1))
        # a count of nanoseconds in 64 bits reaches the years 1677 to 2262
        return F.when(wire.between(first, end - 1), value) if per_second <= 1_000_000 else value

    return read


def _instant_text(wire: Expression, per_second: int) -> Expression:
    """Return the text of a count since 1970, in any year: microseconds, and nanoseconds where there are some."""
    per_day = F.lit(86_400 * per_second).cast("bigint")
    rest = F.pmod(wire, per_day)
    day = whole_quotient(wire, 86_400 * per_second) - F.when((rest != 0) & (wire < 0), 1).otherwise(0)
    fraction = _fraction(F.pmod(rest, F.lit(per_second).cast("bigint")), per_second)
    return F.concat(days(day, "string"), F.lit("T"), _clock(rest, per_second), F.lit("."), fraction)


def _clock(count: Expression, per_second: int) -> Expression:
    """Return ``HH:MM:SS`` of a count that is not negative; the hours may have more digits."""
    return F.format_string(
        "%02d:%02d:%02d",
        whole_quotient(count, 3600 * per_second),
        whole_quotient(count, 60 * per_second) % 60,
        whole_quotient(count, per_second) % 60,
    )


def _fraction(count: Expression, per_second: int) -> Expression:
    """Return the digits of a fraction of a second: six, or up to nine where they are not zeros."""
    if per_second <= 1_000_000:
        return F.format_string("%06d", count * (1_000_000 // per_second))
    return F.regexp_replace(F.format_string("%09d", count), "0{1,3}$", "")


def of_day(per_second: int) -> Reader:
    """Return a reader of counts since midnight, with so many counts a second. A time of day is a text."""

    def read(wire: Expression, target: str) -> Expression:
        if target != "string":
            return F.lit(None)
        size = F.abs(wire)
        rest = size % per_second
        sign = F.when(wire < 0, F.lit("-")).otherwise(F.lit(""))
        fraction = F.when(rest != 0, F.concat(F.lit("."), _fraction(rest, per_second))).otherwise(F.lit(""))
        # The most negative count has no positive one.
        return F.when(wire > -(1 << 63), F.concat(sign, _clock(size, per_second), fraction))

    return read


def rescaled(wire: Expression, source: int, target: int) -> Expression:
    """Return a count of ``source`` parts of a second as one of ``target`` parts; null where it is no whole number."""
    if source <= target:
        return F.try_multiply(wire, F.lit(target // source).cast("bigint"))
    ratio = source // target
    return F.when(wire % ratio == 0, whole_quotient(wire, ratio))


def whole_quotient(number: Expression, by: int) -> Expression:
    """Return the whole-number quotient, computed without doubles."""
    return F.call_function("div", number, F.lit(by).cast("bigint"))
