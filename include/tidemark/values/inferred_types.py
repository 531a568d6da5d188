"""Types inferred from values, for columns whose type neither the source file nor the messages declare."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StructField,
    StructType,
    VariantType,
)

_LONG_TEXTS = {"maxStringLen": str(1 << 30)}
"""Spark's JSON reader takes no text of more than 20,000,000 characters by itself; a message may have longer ones."""

EXACT = "decimal(38, 18)"
"""The type of numbers with a fraction. A value that it cannot hold exactly is unreadable."""

WHOLE = "decimal(38, 0)"
"""The type of whole numbers where one of them needs more than 64 bits."""

DOUBLE = "double"
"""The type of numbers one of which is written with an exponent."""


def types_of(events: DataFrame, columns: Sequence[str], *, of_numbers: bool = False) -> dict[str, str]:
    """Return the Iceberg type strings of columns, inferred from all their values in one pass.

    Whole numbers give ``long``. Numbers with a fraction give ``decimal(38, 18)``, or ``double`` where one is written
    with an exponent. True and false give ``boolean``. Everything else, and a mixture, gives ``string``. A column that
    is always null is left out.

    A placeholder for a value that was not captured is not a value. The events are grouped by their absent columns, and
    the driver gets one row for each group.

    Args:
        events: row changes of the change log.
        columns: names of the columns, as the images have them.
        of_numbers: whether to ignore all values that are not numbers.
    """
    text = F.coalesce("after", "before")
    image = _numbers_of(text, columns) if of_numbers else F.try_parse_json(text)
    absent = F.array_intersect(F.array_sort("absent"), F.array(*map(F.lit, columns)))
    types: dict[str, str] = {}
    for row in events.groupBy(absent.alias("absent")).agg(F.schema_of_variant_agg(image).alias("schema")).collect():
        for name, kind in _types(row["schema"]).items():
            if name in columns and name not in (row["absent"] or ()):
                types[name] = joint_guess(types.get(name, kind), kind)
    return types


def _numbers_of(text: Expression, columns: Sequence[str]) -> Expression:
    parsed = F.from_json(text, StructType([StructField(name, VariantType()) for name in columns]), _LONG_TEXTS)
    values = {name: parsed.getField(name) for name in columns}
    is_number = {name: F.schema_of_variant(value).rlike("^(BIGINT|DECIMAL|DOUBLE)") for name, value in values.items()}
    return F.to_variant_object(F.struct(*(F.when(is_number[name], values[name]).alias(name) for name in columns)))


def _types(schema: str) -> dict[str, str]:
    found = DataType.fromDDL(schema.replace("OBJECT<", "STRUCT<"))
    types = ((field.name, _type(field.dataType)) for field in found.fields) if isinstance(found, StructType) else ()
    return {name: kind for name, kind in types if kind is not None}


NUMBERS = ("long", WHOLE, EXACT, DOUBLE)
"""From narrow to wide. Where values gave two of these types, the later one is the column's type."""


def joint_guess(one: str, other: str) -> str:
    """Return the guessed type of a column, of whose values one part gave the type ``one`` and the rest ``other``.

    Unlike a common type (``tables.common_types``) it need not hold every value exactly, and there always is one.

    >>> joint_guess("long", "double"), joint_guess("decimal(38, 18)", "decimal(38, 0)"), joint_guess("long", "boolean")
    ('double', 'decimal(38, 18)', 'string')
    """
    if one == other:
        return one
    return max(one, other, key=NUMBERS.index) if {one, other} <= set(NUMBERS) else "string"


def outgrows(new: str, old: str) -> bool:
    """Return whether numbers of the inferred type ``new`` need a wider type than ``old``, inferred from earlier values.

    >>> outgrows("decimal(38, 18)", "long"), outgrows("long", "decimal(38, 18)"), outgrows("string", "long")
    (True, False, False)
    """
    return {new, old} <= set(NUMBERS) and joint_guess(new, old) != old


def _type(seen: DataType) -> str | None:
    if isinstance(seen, LongType):
        return "long"
    if isinstance(seen, DecimalType):
        return WHOLE if seen.scale == 0 else EXACT
    if isinstance(seen, DoubleType | FloatType):
        return DOUBLE
    if isinstance(seen, BooleanType):
        return "boolean"
    return None if seen.typeName() == "void" else "string"
