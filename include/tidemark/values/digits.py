"""Spark expressions on the digits of a number that is written as text. None of them rounds."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know


def exact_decimal(text: Expression, precision: int, scale: int) -> Expression:
    """Return the text of a number as a decimal; null where the decimal type cannot hold it exactly."""
    value = text.try_cast(f"decimal({precision},{scale})")
    plain = text.rlike(rf"^[+-]?\d*\.?\d{{0,{scale}}}0*$")
    # A double holds up to 15 significant digits exactly. So it can confirm the cast of a number with an exponent.
    exponent = text.rlike(r"^[+-]?[\d.]{1,16}[eE][+-]?\d+$") & (value.cast("double") == text.try_cast("double"))
    return F.when(plain | exponent, value)


def long_of(unscaled: Expression) -> Expression:
    """Return the integer that up to eight bytes hold: big-endian, two's complement."""
    digits = F.hex(unscaled)
    return F.conv(F.lpad(digits, 16, F.when(digits >= "8", "F").otherwise("0")), 16, -10).cast("bigint")


def power_of_ten(scale: int) -> Expression:
    """Return the literal ``10 ** -scale``."""
    return F.lit(f"0.{'1'.rjust(scale, '0')}").cast(f"decimal({scale},{scale})")


def let(value: Expression, body: Callable[[Expression], Expression]) -> Expression:
    """Return ``body(value)``. Spark computes the value once, however often ``body`` uses it."""
    return F.element_at(F.transform(F.array(value), body), 1)


def with_point(digits: Expression, scale: Expression) -> Expression:
    """Return decimal digits with a decimal point ``scale`` places from the right."""
    zeros = F.repeat(F.lit("0"), F.when(digits == "0", F.lit(0)).otherwise(F.greatest(-scale, F.lit(0))))
    places = F.greatest(scale, F.lit(0))
    sign = F.when(F.startswith(digits, F.lit("-")), F.lit("-")).otherwise(F.lit(""))
    whole = F.concat(F.ltrim(digits, F.lit("-")), zeros)
    padded = F.lpad(whole, F.greatest(F.length(whole), places + 1), F.lit("0"))
    return let(
        padded,
        lambda number: F.concat(
            sign,
            number.substr(F.lit(1), F.length(number) - places),
            F.when(places > 0, F.lit(".")).otherwise(F.lit("")),
            number.substr(F.length(number) - places + 1, places),
        ),
    )


def integer_text(unscaled: Expression) -> Expression:
    """Return the decimal digits of a two's complement integer (bytes); null when it has more than 38 digits."""

    def signed(digits: Expression) -> Expression:
        # -x is ~x + 1. With complemented digits every step stays positive, so an overflow gives null.
        negative = digits >= "8"
        complement = F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210")

        def text(number: Expression) -> Expression:
            negated = F.try_add(number, F.lit(1).cast("decimal(1,0)")).try_cast("decimal(38,0)")
            with_sign = F.concat(F.lit("-"), negated.cast("string"))
            return F.when(negative, with_sign).when(digits != "", number.cast("string"))

        return let(_magnitude(F.when(negative, complement).otherwise(digits)), text)

    return let(F.hex(unscaled), signed)


def _magnitude(digits: Expression) -> Expression:
    """Return hexadecimal digits as a decimal(38, 0), computed 32 bits at a time; null when they are too many."""
    significant = F.ltrim(digits, F.lit("0"))
    wide = F.lpad(significant, 32, "0")
    words = F.array(*(F.conv(wide.substr(start, 8), 16, 10).cast("decimal(38,0)") for start in (1, 9, 17, 25)))

    def append(total: Expression, word: Expression) -> Expression:
        shifted = F.try_multiply(total, F.lit(1 << 32).cast("decimal(10,0)")).try_cast("decimal(38,0)")
        return F.try_add(shifted, word).try_cast("decimal(38,0)")

    return F.when(F.length(significant) <= 32, F.aggregate(words, F.lit(0).cast("decimal(38,0)"), append))


_LONGEST = 450
"""The most bytes of an integer: more than a thousand digits, which is the most that a database declares."""

SCALES = (-1100, 17_000)
"""The least and the greatest scale: PostgreSQL's numeric has up to 16,383 digits behind the point."""

_LIMB = 1_000_000_000

_WORD = 1 << 28


def long_integer_text(unscaled: Expression) -> Expression:
    """Return the decimal digits of a two's complement integer (bytes) of up to a thousand digits, as it is or longer.

    It computes with lists of nine decimal digits, the lowest first, and takes seven hexadecimal digits at a time.
    """

    def signed(digits: Expression) -> Expression:
        negative = digits >= "8"
        complement = F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210")
        sign, more = F.when(negative, F.lit("-")).otherwise(F.lit("")), F.when(negative, 1).otherwise(0)
        magnitude = _long_magnitude(F.when(negative, complement).otherwise(digits), more.cast("bigint"))
        return F.concat(sign, magnitude)

    usable = F.octet_length(unscaled).between(1, _LONGEST)
    return F.when(usable, let(F.hex(unscaled), signed))


def _long_magnitude(digits: Expression, more: Expression) -> Expression:
    """Return hexadecimal digits, plus ``more``, as decimal digits."""
    count = F.ceil(F.length(digits) / 7).cast("int")
    padded = F.lpad(digits, count * 7, F.lit("0"))
    words = F.transform(
        F.sequence(F.lit(0), count - 1),
        lambda word: (
            F.conv(padded.substr(word * 7 + 1, F.lit(7)), 16, 10).cast("bigint")
            + F.when(word == count - 1, more).otherwise(F.lit(0).cast("bigint"))
        ),
    )
    limbs = F.aggregate(words, F.array().cast("array<bigint>"), _append)
    text = F.array_join(F.transform(F.reverse(limbs), lambda limb: F.lpad(limb.cast("string"), 9, "0")), "")
    significant = F.ltrim(text, F.lit("0"))
    return let(significant, lambda found: F.when(found == "", F.lit("0")).otherwise(found))


def _append(limbs: Expression, word: Expression) -> Expression:
    """Return the limbs of a number times 2 ** 28, plus a word."""
    begun = F.struct(F.array().cast("array<bigint>").alias("limbs"), word.alias("carry"))

    def step(done: Expression, limb: Expression) -> Expression:
        total = limb * F.lit(_WORD).cast("bigint") + done.getField("carry")
        return F.struct(
            F.concat(done.getField("limbs"), F.array(total % _LIMB)).alias("limbs"),
            F.call_function("div", total, F.lit(_LIMB).cast("bigint")).alias("carry"),
        )

    return F.aggregate(
        limbs, begun, step, lambda done: F.concat(done.getField("limbs"), F.array(done.getField("carry")))
    )
