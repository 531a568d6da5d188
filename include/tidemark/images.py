"""Reading images: from the verbatim JSON of a row to typed columns, by Spark expressions, exactly or not at all.

One expression for each ``events.Encoding``. The rule for all of them: a value that its column's type cannot hold
exactly is *unreadable* and named, never rounded, truncated or defaulted.

Traps this module steps around, each with a test: ``from_json`` rewrites unquoted numbers on their way to text
(``1.10`` to ``1.1``, 20 digits to a double); casts to decimal round, casts to date and timestamp drop what is behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import DataType, StringType, StructField, StructType

from tidemark.events import Column, Encoding, Shape
from tidemark.lake import quoted
from tidemark.types import decimal_parts, spark_type

UNREADABLE = "unreadable"
"""Field of a read image: the name of the first column whose value does not fit, else null."""

_CORRUPT = "tidemark corrupt"
_DIRECT = frozenset({"boolean", "int", "long", "float", "double", "string"})
_WALL_CLOCK = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6}0*)?)?Z?$"
_ZONED = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6}0*)?)?(Z|[+-]\d{2}(:?\d{2})?)?$"


class TableColumn(NamedTuple):
    """A column of a published table."""

    name: str
    type: str
    """Iceberg type string."""


def field(number: int) -> str:
    """Name of the field that holds column ``number`` in a read image: free of what column names may contain."""
    return f"c{number}"


def read_images(
    frame: DataFrame, *, image: Expression, shapes: Mapping[str, Shape], columns: Sequence[TableColumn], into: str
) -> DataFrame:
    """Read images as a struct of ``c0 .. cn`` (the table's columns in order, with its types) and ``unreadable``.

    Each step is a projection of its own, so that Spark parses an image once, however many columns it has.

    Args:
        frame: has a column ``shape``, the id of the shape that the image was delivered under.
        image: JSON object as text; null gives null fields.
        shapes: every shape that occurs. Columns of the table that a shape lacks are null.
        columns: the table's columns.
        into: name of the struct column that is added.
    """
    readings = [_Reading(number, *pair) for number, pair in enumerate(_readings(shapes, columns).items())]
    kept = [F.col(quoted(name)) for name in frame.columns]
    parsed = frame.select(*kept, *(reading.parsed(image, columns, len(readings)) for reading in readings))
    prepared = parsed.select(*kept, *(column for reading in readings for column in reading.prepared(image, columns)))
    typed = prepared.select(*kept, *(column for reading in readings for column in reading.typed(columns)))
    values = [
        F.coalesce(F.lit(None), *(reading.value(number) for reading in readings if reading.told[number]))
        .cast(spark_type(column.type))
        .alias(field(number))
        for number, column in enumerate(columns)
    ]
    faults = F.coalesce(F.lit(None), *(reading.fault() for reading in readings)).cast("string").alias(UNREADABLE)
    return typed.select(*kept, F.struct(*values, faults).alias(into))


def _readings(
    shapes: Mapping[str, Shape], columns: Sequence[TableColumn]
) -> Mapping[tuple[Column | None, ...], list[str]]:
    """Ids of the shapes that are read alike, by what they tell of each of the table's columns."""
    readings: dict[tuple[Column | None, ...], list[str]] = {}
    for shape_id, shape in shapes.items():
        by_name = {column.name: column for column in shape.columns}
        readings.setdefault(tuple(by_name.get(column.name) for column in columns), []).append(shape_id)
    return readings


class _Reading(NamedTuple):
    """One way to read the images of a table: the columns as some of its shapes tell them."""

    number: int
    told: tuple[Column | None, ...]
    ids: list[str]

    def _name(self, step: str, number: int | str = "") -> str:
        return f"tidemark {step} {self.number} {number}"

    def _sources(self, columns: Sequence[TableColumn]) -> Iterator[tuple[int, Column, TableColumn]]:
        for number, (source, target) in enumerate(zip(self.told, columns, strict=True)):
            if source is not None:
                yield number, source, target

    def parsed(self, image: Expression, columns: Sequence[TableColumn], readings: int) -> Expression:
        fields = [
            StructField(source.name, DataType.fromDDL(_wire_type(source, target)))
            for _, source, target in self._sources(columns)
        ]
        schema = StructType([*fields, StructField(_CORRUPT, StringType())])
        json = F.from_json(image, schema, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})
        mine = json if readings == 1 else F.when(F.col("shape").isin(*self.ids), json)
        return mine.alias(self._name("parsed"))

    def prepared(self, image: Expression, columns: Sequence[TableColumn]) -> Iterator[Expression]:
        parsed = F.col(quoted(self._name("parsed")))
        yield parsed.getField(_CORRUPT).isNotNull().alias(self._name("corrupt"))
        for number, source, target in self._sources(columns):
            wire = parsed.getField(source.name)
            yield _prepare(wire, image, source, target).alias(self._name("wire", number))

    def typed(self, columns: Sequence[TableColumn]) -> Iterator[Expression]:
        faults = []
        for number, source, target in self._sources(columns):
            wire = F.col(quoted(self._name("wire", number)))
            value = wire if _is_direct(source, target) else _READERS[source.encoding](wire, target.type)
            yield value.alias(self._name("value", number))
            if not _is_direct(source, target):
                faults.append(F.when(wire.isNotNull() & value.isNull(), F.lit(source.name)))
        faults.append(F.when(F.col(quoted(self._name("corrupt"))), F.lit("the image as a whole")))
        yield F.coalesce(*faults).alias(self._name("fault"))

    def value(self, number: int) -> Expression:
        return F.col(quoted(self._name("value", number)))

    def fault(self) -> Expression:
        return F.col(quoted(self._name("fault")))


_Reader = Callable[[Expression, str], Expression]
"""(value as prepared, the table's type string) to the typed value; null where it does not fit."""


def _is_direct(source: Column, target: TableColumn) -> bool:
    """Spark's JSON reader gives the typed value itself; a misfit shows in the corrupt record."""
    if source.encoding is not Encoding.PLAIN:
        return source.encoding is Encoding.TEXT and target.type == "string"
    return target.type in _DIRECT and (source.type is not None or target.type == "string")


def _wire_type(source: Column, target: TableColumn) -> str:
    if _is_direct(source, target):
        return spark_type(target.type)
    return _WIRE_TYPES.get(source.encoding, "string")


_WIRE_TYPES: Mapping[Encoding, str] = {
    **dict.fromkeys(
        (
            Encoding.EPOCH_SECONDS,
            Encoding.EPOCH_MILLIS,
            Encoding.EPOCH_MICROS,
            Encoding.EPOCH_NANOS,
            Encoding.EPOCH_DAYS,
            Encoding.MILLIS_OF_DAY,
            Encoding.MICROS_OF_DAY,
            Encoding.NANOS_OF_DAY,
        ),
        "bigint",
    ),
    Encoding.SCALED_STRUCT: "struct<scale int, value string>",
}


def _prepare(wire: Expression, image: Expression, source: Column, target: TableColumn) -> Expression:
    """What the typed value is made of, in a projection of its own because it is used more than once."""
    if source.encoding in {Encoding.PLAIN, Encoding.TEXT} and decimal_parts(target.type):
        return _verbatim_number(wire, image, source.name)
    if source.encoding is Encoding.SCALED_STRUCT:
        return F.when(wire.isNotNull(), wire.withField("value", _bytes(wire.getField("value"))))
    if source.encoding is Encoding.UNSCALED_BASE64:
        return F.when(wire.isNotNull(), F.struct(wire.alias("text"), _bytes(wire).alias("value")))
    if target.type in {"float", "double"} and _is_direct(source, target):
        # A number too large for a double is read as infinity; only the word may be.
        infinite = wire.isin(float("inf"), float("-inf"))
        return F.when(~infinite | F.contains(image, F.lit("Infinity")), wire)
    return wire


def _verbatim_number(wire: Expression, image: Expression, name: str) -> Expression:
    """The digits as they stand in the image: Spark's reader keeps a quoted number, and rewrites a bare one.

    A quoted number is found again between its quotes; else the bare digits behind the column's name are taken, and
    must be the same number as a double. A quotation mark inside a JSON text always has a backslash before it.
    """
    pattern = rf'(?<!\\)"{_regex_quoted(name)}"\s*:\s*(-?[0-9][0-9.eE+-]*)'
    bare = F.regexp_extract(image, pattern, 1)
    same = bare.try_cast("double") == wire.try_cast("double")
    quotes = F.contains(image, F.concat(F.lit('"'), wire, F.lit('"')))
    return F.when(wire.isNull() | quotes, wire).when(same, bare).otherwise(F.lit("not a number"))


def _regex_quoted(name: str) -> str:
    return "\\Q" + name.replace("\\E", "\\E\\\\E\\Q") + "\\E"


def _plain(wire: Expression, target: str) -> Expression:
    return _bytes(wire) if target == "binary" else _text(wire, target)


def _text(wire: Expression, target: str) -> Expression:
    if parts := decimal_parts(target):
        return _exact_decimal(wire, *parts)
    return _TEXT_READERS.get(target, _cast)(wire, target)


def _cast(wire: Expression, target: str) -> Expression:
    return wire.try_cast(spark_type(target))


def _date(wire: Expression, _target: str) -> Expression:
    day = F.regexp_replace(wire, "Z$", "")
    return F.when(F.length(day) == 10, day.try_cast("date"))


def _timestamp(wire: Expression, _target: str) -> Expression:
    return F.when(wire.rlike(_WALL_CLOCK), F.regexp_replace(wire, "Z$", "").try_cast("timestamp_ntz"))


def _timestamptz(wire: Expression, _target: str) -> Expression:
    return F.when(wire.rlike(_ZONED), wire.try_cast("timestamp"))


def _utf8(wire: Expression, _target: str) -> Expression:
    return F.encode(wire, "UTF-8")


_TEXT_READERS: Mapping[str, _Reader] = {
    "binary": _utf8,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}


def _exact_decimal(text: Expression, precision: int, scale: int) -> Expression:
    value = text.try_cast(f"decimal({precision},{scale})")
    plain = text.rlike(rf"^[+-]?\d*\.?\d{{0,{scale}}}0*$")
    # Up to 15 significant digits a double holds a number exactly, so it can vouch for one in exponent notation.
    exponent = text.rlike(r"^[+-]?[\d.]{1,16}[eE][+-]?\d+$") & (value.cast("double") == text.try_cast("double"))
    return F.when(plain | exponent, value)


def _bytes(wire: Expression) -> Expression:
    """Bytes of Base64 text in either alphabet, padding optional; null when it is none."""
    text = F.translate(F.rtrim(wire, F.lit("=")), "-_\r\n", "+/")
    rest = F.length(text) % 4
    padding = F.when(rest == 2, "==").when(rest == 3, "=").otherwise("")
    well_formed = wire.rlike(r"^[A-Za-z0-9+/_\r\n-]*={0,2}$")
    return F.when(well_formed, F.try_to_binary(F.concat(text, padding), F.lit("base64")))


def _base64(wire: Expression, _target: str) -> Expression:
    return _bytes(wire)


def _latin1(wire: Expression, _target: str) -> Expression:
    return F.when(~wire.rlike(r"[^\x00-\xFF]"), F.encode(wire, "ISO-8859-1"))


def _hex(wire: Expression, _target: str) -> Expression:
    return F.when(wire.rlike("^([0-9A-Fa-f]{2})*$"), F.unhex(wire))


def _bits(wire: Expression, _target: str) -> Expression:
    pairs = F.split(F.regexp_replace(F.hex(_bytes(wire)), "(..)(?!$)", "$1 "), " ")
    return F.unhex(F.array_join(F.reverse(pairs), ""))


def _unscaled(wire: Expression, target: str) -> Expression:
    parts = decimal_parts(target)
    if parts is None:
        return F.lit(None)
    unscaled = wire.getField("value")
    general = _shifted(unscaled, F.lit(parts[1]), parts)
    if parts[1] > 18:
        return general
    # The common case without a detour through text: eight bytes, and a product whose scale is the type's.
    number = _long(unscaled).cast("decimal(19,0)")
    short = number * _power(parts[1]) if parts[1] else number
    return F.when(F.octet_length(unscaled).between(1, 8), short.try_cast(spark_type(target))).otherwise(general)


def _scaled_struct(wire: Expression, target: str) -> Expression:
    parts = decimal_parts(target)
    return F.lit(None) if parts is None else _shifted(wire.getField("value"), wire.getField("scale"), parts)


def _long(unscaled: Expression) -> Expression:
    digits = F.hex(unscaled)
    return F.conv(F.lpad(digits, 16, F.when(digits >= "8", "F").otherwise("0")), 16, -10).cast("bigint")


def _power(scale: int) -> Expression:
    return F.lit(f"0.{'1'.rjust(scale, '0')}").cast(f"decimal({scale},{scale})")


def _let(value: Expression, body: Callable[[Expression], Expression]) -> Expression:
    """``body`` of a value that is computed once, however often ``body`` uses it."""
    return F.element_at(F.transform(F.array(value), body), 1)


def _shifted(unscaled: Expression, scale: Expression, parts: tuple[int, int]) -> Expression:
    """A decimal from big-endian two's complement bytes and a scale, by its digits as text: nothing can round."""
    text = _let(_integer_text(unscaled), lambda digits: _with_point(digits, scale))
    return F.when(scale.between(-38, 76), _let(text, lambda digits: _exact_decimal(digits, *parts)))


def _with_point(digits: Expression, scale: Expression) -> Expression:
    zeros = F.repeat(F.lit("0"), F.greatest(-scale, F.lit(0)))
    places = F.greatest(scale, F.lit(0))
    sign = F.when(F.startswith(digits, F.lit("-")), F.lit("-")).otherwise(F.lit(""))
    whole = F.concat(F.ltrim(digits, F.lit("-")), zeros)
    padded = F.lpad(whole, F.greatest(F.length(whole), places + 1), F.lit("0"))
    return _let(
        padded,
        lambda number: F.concat(
            sign,
            number.substr(F.lit(1), F.length(number) - places),
            F.lit("."),
            number.substr(F.length(number) - places + 1, places),
        ),
    )


def _integer_text(unscaled: Expression) -> Expression:
    """Decimal digits of a two's complement integer that 38 digits can hold; else null."""

    def signed(digits: Expression) -> Expression:
        # -x is ~x + 1: complementing the digits keeps every step positive, and nothing overflows unseen.
        complement = _magnitude(F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210"))
        negated = F.try_add(complement, F.lit(1).cast("decimal(1,0)")).try_cast("decimal(38,0)")
        negative = F.concat(F.lit("-"), negated.cast("string"))
        return F.when(digits >= "8", negative).when(digits != "", _magnitude(digits).cast("string"))

    return _let(F.hex(unscaled), signed)


def _magnitude(digits: Expression) -> Expression:
    """Hexadecimal digits as a decimal(38, 0), 32 bits at a time; null when they are too many."""
    significant = F.ltrim(digits, F.lit("0"))
    wide = F.lpad(significant, 32, "0")
    words = F.array(*(F.conv(wide.substr(start, 8), 16, 10).cast("decimal(38,0)") for start in (1, 9, 17, 25)))

    def append(total: Expression, word: Expression) -> Expression:
        shifted = F.try_multiply(total, F.lit(1 << 32).cast("decimal(10,0)")).try_cast("decimal(38,0)")
        return F.try_add(shifted, word).try_cast("decimal(38,0)")

    return F.when(F.length(significant) <= 32, F.aggregate(words, F.lit(0).cast("decimal(38,0)"), append))


def _days(wire: Expression, _target: str) -> Expression:
    return F.date_add(F.lit("1970-01-01").cast("date"), wire.try_cast("int"))


def _epoch(per_second: int) -> _Reader:
    def read(wire: Expression, target: str) -> Expression:
        micros = _rescaled(wire, per_second, 1_000_000)
        instant = F.timestamp_micros(micros)
        return instant if target == "timestamptz" else instant.cast(spark_type(target))

    return read


def _of_day(per_second: int) -> _Reader:
    def read(wire: Expression, _target: str) -> Expression:
        micros = _rescaled(wire, per_second, 1_000_000)
        size = F.abs(micros)
        clock = F.format_string(
            "%s%02d:%02d:%02d",
            F.when(micros < 0, F.lit("-")).otherwise(F.lit("")),
            _div(size, 3_600_000_000),
            _div(size, 60_000_000) % 60,
            _div(size, 1_000_000) % 60,
        )
        fraction = F.when(size % 1_000_000 != 0, F.format_string(".%06d", size % 1_000_000)).otherwise(F.lit(""))
        return F.concat(clock, fraction)

    return read


def _rescaled(wire: Expression, source: int, target: int) -> Expression:
    if source <= target:
        return F.try_multiply(wire, F.lit(target // source).cast("bigint"))
    ratio = source // target
    return F.when(wire % ratio == 0, _div(wire, ratio))


def _div(number: Expression, by: int) -> Expression:
    """Whole-number division, without a detour through doubles."""
    return F.call_function("div", number, F.lit(by).cast("bigint"))


_READERS: Mapping[Encoding, _Reader] = {
    Encoding.PLAIN: _plain,
    Encoding.TEXT: _text,
    Encoding.UNSCALED_BASE64: _unscaled,
    Encoding.SCALED_STRUCT: _scaled_struct,
    Encoding.BASE64: _base64,
    Encoding.LATIN1: _latin1,
    Encoding.HEX: _hex,
    Encoding.EPOCH_SECONDS: _epoch(1),
    Encoding.EPOCH_MILLIS: _epoch(1_000),
    Encoding.EPOCH_MICROS: _epoch(1_000_000),
    Encoding.EPOCH_NANOS: _epoch(1_000_000_000),
    Encoding.EPOCH_DAYS: _days,
    Encoding.MILLIS_OF_DAY: _of_day(1_000),
    Encoding.MICROS_OF_DAY: _of_day(1_000_000),
    Encoding.NANOS_OF_DAY: _of_day(1_000_000_000),
    Encoding.BITS_LE_BASE64: _bits,
}
