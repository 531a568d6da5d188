"""Spark expressions that find a number in the text of its image, with the digits that the message has."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

_REWRITTEN = r"^-?\d++\.\d++(?:E-?\d++)?+$"
"""How Spark's JSON reader writes a number that has a fraction or an exponent."""


def verbatim_number(wire: Expression, image: Expression, name: str) -> Expression:
    """Return a number's digits as the image has them. Spark's reader keeps quoted numbers and rewrites bare ones.

    If the digits stand in the image between quotation marks, they are returned as they are. Otherwise the bare digits
    behind the column's name are returned; read as a double, they must be the same number. Inside a JSON text, every
    quotation mark has a backslash before it, so the pattern matches no text.
    """
    bare = F.regexp_extract(image, _bare(name), 1)
    same = bare.try_cast("double") == wire.try_cast("double")
    return F.when(wire.isNull() | is_quoted(wire, image), wire).when(same, bare).otherwise(F.lit("not a number"))


def as_written(text: Expression, image: Expression, name: str) -> Expression:
    """Return the text of a JSON value as the image has it. Spark's JSON reader may rewrite the digits of a bare number.

    Most texts do not begin as a number does. A comparison of bytes finds them, and they cost nothing more. Spark
    evaluates a whole condition early, so the inner condition stands apart: inside the outer one it would cost a
    microsecond for each text.
    """
    bare = F.regexp_extract(image, _bare(name), 1)
    same = bare.try_cast("double") == text.try_cast("double")
    verbatim = F.when(~is_quoted(text, image) & same, bare).otherwise(text)
    return F.when((text < ":") & text.rlike(_REWRITTEN), verbatim).otherwise(text)


def _bare(name: str) -> str:
    return rf'(?<!\\)"{regex_quoted(name)}"\s*:\s*(-?[0-9][0-9.eE+-]*)'


def is_quoted(wire: Expression, image: Expression) -> Expression:
    """Return whether the value stands between quotation marks in the image."""
    return F.contains(image, F.concat(F.lit('"'), wire, F.lit('"')))


def regex_quoted(name: str) -> str:
    """Return a regular expression that matches the name and nothing else."""
    return "\\Q" + name.replace("\\E", "\\E\\\\E\\Q") + "\\E"
