"""Types from the values seen, for columns that neither the source file nor the messages type."""

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

EXACT = "decimal(38, 18)"
"""What a number with a fraction is read as: exactly, or not at all."""

WHOLE = "decimal(38, 0)"
"""What whole numbers are read as where one is beyond 64 bits."""


def types_of(events: DataFrame, columns: Sequence[str], *, of_numbers: bool = False) -> dict[str, str]:
    """Iceberg type strings of columns, from all their values at once, in one pass.

    What stands for a value that was not captured is none. The driver gets one row for each set of such columns.

    Whole numbers are ``long``, numbers with a fraction ``decimal(38, 18)``, or ``double`` where one is written with an
    exponent; true and false ``boolean``; everything else, and what is mixed, ``string``. A column that is always null
    is left out.

    Args:
        events: row changes of the change log.
        columns: names of the columns to type, as the images have them.
        of_numbers: whether values of other kinds are passed over.
    """
    text = F.coalesce("after", "before")
    image = _numbers_of(text, columns) if of_numbers else F.try_parse_json(text)
    absent = F.array_intersect(F.array_sort("absent"), F.array(*map(F.lit, columns)))
    types: dict[str, str] = {}
    for row in events.groupBy(absent.alias("absent")).agg(F.schema_of_variant_agg(image).alias("schema")).collect():
        for name, kind in _types(row["schema"]).items():
            if name in columns and name not in (row["absent"] or ()):
                types[name] = common_type(types.get(name, kind), kind)
    return types


def _numbers_of(text: Expression, columns: Sequence[str]) -> Expression:
    parsed = F.from_json(text, StructType([StructField(name, VariantType()) for name in columns]))
    values = {name: parsed.getField(name) for name in columns}
    is_number = {name: F.schema_of_variant(value).rlike("^(BIGINT|DECIMAL|DOUBLE)") for name, value in values.items()}
    return F.to_variant_object(F.struct(*(F.when(is_number[name], values[name]).alias(name) for name in columns)))


def _types(schema: str) -> dict[str, str]:
    told = DataType.fromDDL(schema.replace("OBJECT<", "STRUCT<"))
    types = ((field.name, _type(field.dataType)) for field in told.fields) if isinstance(told, StructType) else ()
    return {name: kind for name, kind in types if kind is not None}


NUMBERS = ("long", WHOLE, EXACT, "double")
"""Each is read where one of those before it was seen too."""


def common_type(one: str, other: str) -> str:
    """The type of a column whose values were seen in two parts.

    >>> together("long", "double"), together("decimal(38, 18)", "decimal(38, 0)"), together("long", "boolean")
    ('double', 'decimal(38, 18)', 'string')
    """
    if one == other:
        return one
    return max(one, other, key=NUMBERS.index) if {one, other} <= set(NUMBERS) else "string"


def outgrows(new: str, old: str) -> bool:
    """Whether numbers of a type do not fit one that was told by earlier values, and would have told a wider one.

    >>> outgrows("decimal(38, 18)", "long"), outgrows("long", "decimal(38, 18)"), outgrows("string", "long")
    (True, False, False)
    """
    return {new, old} <= set(NUMBERS) and common_type(new, old) != old


def _type(seen: DataType) -> str | None:
    if isinstance(seen, LongType):
        return "long"
    if isinstance(seen, DecimalType):
        return WHOLE if seen.scale == 0 else EXACT
    if isinstance(seen, DoubleType | FloatType):
        return "double"
    if isinstance(seen, BooleanType):
        return "boolean"
    return None if seen.typeName() == "void" else "string"
