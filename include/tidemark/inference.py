"""Types from the values seen, for columns that neither the source file nor the messages type."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StructType,
)

EXACT = "decimal(38, 18)"
"""What a number with a fraction is read as: exactly, or not at all."""


def types_of(images: DataFrame, columns: Sequence[str]) -> dict[str, str]:
    """Iceberg type strings of columns, from all their values at once; one pass, one row to the driver.

    Whole numbers are ``long``, numbers with a fraction ``decimal(38, 18)``, or ``double`` where one is written with an
    exponent; true and false ``boolean``; everything else, and what is mixed, ``string``. A column that is always null
    is left out.

    Args:
        images: JSON objects as text, in a column ``image``.
        columns: names of the columns to type.
    """
    found = images.agg(F.schema_of_variant_agg(F.try_parse_json("image")).alias("schema")).first()
    schema = DataType.fromDDL(str(found["schema"]).replace("OBJECT<", "STRUCT<")) if found else StructType()
    fields = {field.name: field.dataType for field in schema.fields} if isinstance(schema, StructType) else {}
    types = {name: _type(fields[name]) for name in columns if name in fields}
    return {name: kind for name, kind in types.items() if kind is not None}


def together(one: str, other: str) -> str:
    """The type of a column whose values were seen in two parts."""
    if one == other:
        return one
    if "double" in {one, other} and {one, other} <= {"double", "long"}:
        return "double"
    return EXACT if all(kind == "long" or kind.startswith("decimal") for kind in (one, other)) else "string"


def _type(seen: DataType) -> str | None:
    if isinstance(seen, LongType):
        return "long"
    if isinstance(seen, DecimalType):
        return "decimal(38, 0)" if seen.scale == 0 else EXACT
    if isinstance(seen, DoubleType | FloatType):
        return "double"
    if isinstance(seen, BooleanType):
        return "boolean"
    return None if seen.typeName() == "void" else "string"
