"""Spark expressions that find a number again in its image, with the digits that the message has."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

_REWRITTEN = r"^-?\d++\.\d++(?:E-?\d++)?+$"
"""How Spark's JSON reader writes a number that has a fraction or an exponent."""


def verbatim_number(wire: Expression, image: Expression, name: str) -> Expression:
    """The digits as they stand in the image: Spark's reader keeps a quoted number, and rewrites a bare one.

    A quoted number is found again between its quotes; else the bare digits behind the column's name are taken, and
    must be the same number as a double. A quotation mark inside a JSON text always has a backslash before it.
    """
    bare = F.regexp_extract(image, _bare(name), 1)
    same = bare.try_cast("double") == wire.try_cast("double")
    return F.when(wire.isNull() | is_quoted(wire, image), wire).when(same, bare).otherwise(F.lit("not a number"))


def as_written(text: Expression, image: Expression, name: str) -> Expression:
    """The text of a JSON value as the image has it: of a bare number Spark's reader may have written other digits.

    What begins as no number does, which is told by comparing bytes, is not looked at any further. Spark works out all
    of one condition early; that of the inner one would cost each text a microsecond in it.
    """
    bare = F.regexp_extract(image, _bare(name), 1)
    same = bare.try_cast("double") == text.try_cast("double")
    verbatim = F.when(~is_quoted(text, image) & same, bare).otherwise(text)
    return F.when((text < ":") & text.rlike(_REWRITTEN), verbatim).otherwise(text)


def _bare(name: str) -> str:
    return rf'(?<!\\)"{regex_quoted(name)}"\s*:\s*(-?[0-9][0-9.eE+-]*)'


def is_quoted(wire: Expression, image: Expression) -> Expression:
    """Return whether the value stands in the image between quotation marks."""
    return F.contains(image, F.concat(F.lit('"'), wire, F.lit('"')))


def regex_quoted(name: str) -> str:
    """A name as a regular expression that matches it and nothing else."""
    return "\\Q" + name.replace("\\E", "\\E\\\\E\\Q") + "\\E"
