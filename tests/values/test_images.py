"""Reading images: every encoding at its extremes, exactly as the plain reader reads it, or not at all."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding, Shape
from tidemark.values.image_reader import ImageColumn, ImageReader
from tidemark.values.images import read_images
from tidemark.values.plain import read_value
from tidemark.values.table_columns import Image, TableColumn

UNREADABLE = object()
"""What a value that does not fit is read as, by both readers."""


def unscaled(number: int) -> str:
    """Write an integer as Connect's Decimal does."""
    size = number.bit_length() // 8 + 1
    return json.dumps(base64.b64encode(number.to_bytes(size, "big", signed=True)).decode())


DECIMALS = ['"1.10"', "1.10", '"-0.00"', '"0"', "0.000", '"1.100"', '"1.105"', "1.105", '"x"', '""', "null"]
LONG_DECIMALS = ["12345678901234567890.12", '"-99999999999999999999.99"', "99999999999999999999.99", "1e30", '"1e30"']
TIMESTAMPS = [
    '"2024-02-29 01:02:03.123456"',
    '"2024-02-29T01:02:03Z"',
    '"2024-02-29 01:02:03.1234567"',
    '"0001-01-01 00:00:00"',
    '"9999-12-31 23:59:59.999999"',
    '"0000-00-00 00:00:00"',
    '"2023-02-29 00:00:00"',
    '"2024-02-29"',
    '"tomorrow"',
]
EPOCHS = ["0", "-1", "1700000000", "253402300799", "-62135596800"]

DATAHUB_TIMES = [
    "1700000000123", '"1700000000123"', '"-1"', "-62135596800000", '"253402300799999"', "0", "86400000",
    '"86400000000"', '"99999999999999999999"', '"2024-02-29 01:02:03.123456"', '"2024-02-29T00:00:00Z"', '"tomorrow"',
    '"1.5"', '""', "null",
]  # fmt: skip

CASES: list[tuple[Encoding, str, list[str]]] = [
    *((encoding, "decimal(22, 2)", DECIMALS + LONG_DECIMALS) for encoding in (Encoding.TEXT, Encoding.PLAIN)),
    (Encoding.TEXT, "decimal(38, 0)", [f'"{10**38 - 1}"', f'"{10**38}"', f'"-{10**38 - 1}"', str(10**37 + 1)]),
    (Encoding.TEXT, "decimal(20, 0)", [f'"{2**64 - 1}"', '"18446744073709551616"', str(2**63)]),
    (Encoding.TEXT, "long", [f'"{2**63 - 1}"', f'"-{2**63}"', f'"{2**63}"', '"1.5"', '" 1"', '""']),
    (Encoding.PLAIN, "long", [str(2**63 - 1), str(-(2**63)), str(2**63), "1.5", "null"]),
    (Encoding.TEXT, "int", ['"2147483647"', '"-2147483648"', '"2147483648"']),
    (Encoding.PLAIN, "int", ["2147483647", "-2147483648", "2147483648"]),
    (Encoding.TEXT, "double", ['"1.5"', '"5e-324"', '"NaN"', '"-Infinity"', '"1e22"', '"1e400"', '"x"']),
    (Encoding.PLAIN, "double", ["1.5", "5e-324", "1e22", "3.140000104904175", "1e400"]),
    (Encoding.PLAIN, "boolean", ["true", "false", "null"]),
    (Encoding.TEXT, "boolean", ['"true"', '"f"', '"1"', '"2"']),
    (Encoding.TEXT, "string", ['""', '"a\\u0000b"', '"😀\\"\\\\"', '"null"', "null"]),
    (Encoding.TEXT, "date", ['"2024-02-29"', '"2024-02-29Z"', '"0000-00-00"', '"2023-02-29"', '"2024-01-01T00:00"']),
    (Encoding.TEXT, "date", ['"0001-01-01"', '"9999-12-31"']),
    (Encoding.TEXT, "timestamp", TIMESTAMPS),
    (
        Encoding.TEXT,
        "timestamptz",
        ['"0001-01-01T00:00:00.000001Z"', '"2024-02-29 01:02:03.123456-05:30"'],
    ),
    (Encoding.TEXT, "float", ['"3.140000104904175"', '"-Infinity"', '"NaN"', '"x"']),
    (Encoding.PLAIN, "timestamptz", ['"2024-02-29T01:02:03+05:30"', '"2024-02-29T01:02:03.5Z"', '"2024-02-29"', '"x"']),
    (Encoding.PLAIN, "binary", ['"3q2+7w=="', '"3q2-7w"', '""', '"*"', "null"]),
    (Encoding.BASE64, "binary", ['"3q2+7w=="', '"3q2-7w"', '""', '"*"', '"3q2+7"']),
    (Encoding.LATIN1, "binary", ['"\\u00ff\\u0000a"', '"\\u0100"', '""']),
    (Encoding.HEX, "binary", ['"DEADbeef"', '""', '"DEA"', '"xy"']),
    (Encoding.BITS_LE_BASE64, "binary", ['"EAAAAAAAAAA="', '"AQ=="']),
    (
        Encoding.UNSCALED_BASE64,
        "decimal(20, 2)",
        [unscaled(n) for n in (0, 1, -1, 127, 128, -128, -129, 10**19, -(2**63))],
    ),
    (Encoding.UNSCALED_BASE64, "decimal(38, 0)", [unscaled(s * (10**38 + d)) for s in (1, -1) for d in (-1, 0, 1)]),
    (Encoding.UNSCALED_BASE64, "decimal(20, 2)", ["1234", "12.34", "-0.01", '"1234"', "1.234"]),
    (Encoding.UNSCALED_BASE64, "decimal(38, 20)", [unscaled(n) for n in (1, -1, 10**38 - 1)]),
    (Encoding.SCALED_STRUCT, "decimal(38, 18)", ['{"scale":3,"value":"B1vNFQ=="}', '{"scale":-2,"value":"BNI="}']),
    *((Encoding.EPOCH_SECONDS, kind, EPOCHS) for kind in ("timestamp", "timestamptz")),
    (Encoding.EPOCH_MILLIS, "date", ["0", "-86400000", "86400001", "-1", str(2**63 - 1)]),
    (Encoding.EPOCH_MILLIS, "timestamp", ["-1", "253402300799999", str(2**63 - 1)]),
    (Encoding.EPOCH_MICROS, "timestamp", ["-62135596800000000", "253402300799999999"]),
    (Encoding.EPOCH_NANOS, "timestamp", ["1700000000123456000", "1700000000123456789"]),
    *((Encoding.TEXT_OR_MILLIS, kind, DATAHUB_TIMES) for kind in ("date", "timestamp", "timestamptz")),
    *((Encoding.TEXT_OR_MICROS, kind, DATAHUB_TIMES) for kind in ("date", "timestamp", "timestamptz")),
    (Encoding.TEXT_OR_MILLIS, "date", ['"2024-02-29"', '"2023-02-29"']),
    (Encoding.TEXT_OR_MICROS, "decimal(22, 2)", DECIMALS + LONG_DECIMALS),
    (Encoding.TEXT_OR_MICROS, "long", [f'"{2**63 - 1}"', str(-(2**63)), f'"{2**63}"', '"1.5"', '""', "null"]),
    (Encoding.TEXT_OR_MICROS, "double", ['"5e-324"', "1.5", '"NaN"', '"1e400"', '""']),
    (Encoding.TEXT_OR_MICROS, "boolean", ['"true"', "false", '"2"', '""']),
    (Encoding.TEXT_OR_MICROS, "string", ['""', '"1700000000000"', '"😀\\u0000"', "null"]),
    (Encoding.TEXT_OR_MICROS, "binary", ['"3q2+7w=="', '""', '"*"', "null"]),
    (Encoding.EPOCH_DAYS, "date", ["-354285", "2932896", "0", "99999999999"]),
    (Encoding.MICROS_OF_DAY, "string", ["0", "-45296123456", "86400000000", "3020399000000"]),
    (Encoding.MILLIS_OF_DAY, "string", ["86399999"]),
    (Encoding.NANOS_OF_DAY, "string", ["1000", "1"]),
]

PARSERS: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "long": int,
    "int": int,
    "double": float,
    "float": float,
    "date": date.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text.removesuffix("Z")),
    "timestamptz": lambda text: datetime.fromisoformat(text).replace(tzinfo=None),
    "binary": lambda text: bytes(base64.b64decode(text)),
}


def plainly(raw: str, column: Column, declared: str | None = None) -> Any:
    """Read one value with the plain reader, as Python's own type."""
    try:
        value = read_value(raw.encode(), column, declared)
    except UnreadableValueError:
        return UNREADABLE
    if value is None or isinstance(value, bool):
        return value
    kind = (column.type or "").partition("(")[0]
    return PARSERS.get(kind, str)(value)


def by_reader(raws: Sequence[str], column: Column, declared: str | None) -> list[Any]:
    """Read values in one batch, in order."""
    kind = column.type or "string"
    source = Column(column.name, declared, column.encoding)
    reader = ImageReader([kind], {"of it": {0: ImageColumn(source, kind)}})
    texts = [f'{{"{column.name}": {raw}, "other": 1}}' for raw in raws]
    rows = reader.read(pa.array(["of it"] * len(texts)), pa.array(texts)).to_pylist()
    return [UNREADABLE if row["unreadable"] else _own(row["c0"]) for row in rows]


def _own(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _is_time(kind: str) -> bool:
    return kind in {"date", "timestamp", "timestamptz"}


def _python(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "date":
        return date.fromisoformat(value)
    if _is_time(kind):
        return datetime.fromisoformat(value)
    return bytes(value) if kind == "binary" else value


def same(left: Any, right: Any) -> bool:
    """Compare values; a double that is no number equals itself."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return left is right or left == right


KINDS = (
    "boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary",
    "decimal(10, 2)", "decimal(38, 0)", "decimal(38, 20)",
)  # fmt: skip
BARE = ["null", "true", "5", "-1", "86400", "253402300799", "1.10", "-0.5", "12345678901234567890", "1.5e3", '{"a":1}']
TEXTS = [
    "null", '""', '"abc"', '"5"', '"1.10"', '"12.50"', '" 5"', '"t"', '"NaN"', '"ä"', '"a\\u0000b"', '"/w=="', '"AQ=="',
    '"3q2+7w=="', '"MTIuNQ=="', '"w6Q="', '"dHJ1ZQ=="', '"3132"', '"2024-02-29"', '"2024-02-29 01:02:03.5"',
    '"12:30:00"',
]  # fmt: skip
STRUCTS = ["null", '{"scale":1,"value":"AQ=="}', '{"scale":0,"value":"BNI="}', '{"scale":-2,"value":"/w=="}']
COUNTS = [each for each in Encoding if each.value.startswith("epoch_") or each.value.endswith("_of_day")]
BYTES = [Encoding.BASE64, Encoding.LATIN1, Encoding.HEX, Encoding.BITS_LE_BASE64]
ANY = [
    (Encoding.PLAIN, None, BARE + TEXTS),
    (Encoding.PLAIN, "string", TEXTS),
    (Encoding.PLAIN, "double", [raw for raw in BARE if raw not in {"true", '{"a":1}'}]),
    *((encoding, None, BARE + TEXTS) for encoding in (Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS)),
    *((encoding, None, BARE) for encoding in COUNTS),
    *((encoding, None, TEXTS) for encoding in BYTES),
    (Encoding.UNSCALED_BASE64, "decimal(12, 2)", [*TEXTS, "5", "-0.5", "12.345"]),
    (Encoding.UNSCALED_BASE64, "decimal(38, 20)", TEXTS),
    (Encoding.SCALED_STRUCT, None, STRUCTS),
]
"""Encoding, the type that the messages declare, and values."""


@pytest.mark.parametrize(
    ("encoding", "declared", "raws"), ANY, ids=[f"{encoding}-{declared}" for encoding, declared, _ in ANY]
)
def test_any_type_that_a_source_file_gives(encoding: Encoding, declared: str | None, raws: list[str]) -> None:
    """Whatever stands in a column of whatever type: read exactly or refused, by both readers alike; nothing fails.

    So it is in a batch with all the others, and in one of its own.
    """
    unlike = []
    for kind in KINDS:
        column = Column("v", kind, encoding)
        together = by_reader(raws, column, declared)
        alone = [by_reader([raw], column, declared)[0] for raw in raws]
        for raw, *found in zip(raws, together, alone, strict=True):
            wanted = plainly(raw, column, declared)
            if kind == "float":
                wanted = _single(wanted)
            unlike += [(raw, kind, each, wanted) for each in found if not same(each, wanted)]
    assert not unlike


def test_a_decimal_keeps_the_scale_that_its_message_tells() -> None:
    """The type of the column says what is published, not what the bytes of an unscaled number mean."""
    column = Column("v", "decimal(10, 4)", Encoding.UNSCALED_BASE64)
    assert read_value(b'"BNI="', column, "decimal(8, 2)") == "12.34"


@pytest.mark.parametrize(("encoding", "kind", "raws"), CASES, ids=[f"{e}-{k}-{n}" for n, (e, k, _) in enumerate(CASES)])
def test_a_batch_is_read_as_the_plain_reader_reads(encoding: Encoding, kind: str, raws: list[str]) -> None:
    """Each value is read exactly, or refused, by both readers alike."""
    column = Column("v", kind, encoding)
    wanted = [plainly(raw, column) for raw in raws]
    found = by_reader(raws, column, kind)
    different = [(raw, a, b) for raw, a, b in zip(raws, wanted, found, strict=True) if not same(a, b)]
    assert not different


@pytest.mark.spark
def test_spark_has_what_was_read(spark: SparkSession) -> None:
    """Every value of every case reaches Spark's types as it is: a column for each case, an image for each value."""
    columns = [Column(f"v{number}", kind, encoding) for number, (encoding, kind, _) in enumerate(CASES)]
    shapes = {str(number): Shape((column,)) for number, column in enumerate(columns)}
    images, wanted = [], []
    for number, (_, _, raws) in enumerate(CASES):
        images += [(len(images) + n, f'{{"v{number}":{raw}}}', str(number)) for n, raw in enumerate(raws)]
        wanted += [plainly(raw, columns[number]) for raw in raws]
    frame = spark.createDataFrame(images, "n int, i string, shape string")
    table = [TableColumn(column.name, column.type or "string") for column in columns]
    read = read_images(frame, [Image(F.col("i"), table, "read")], shapes=shapes)
    # A time is compared as text, because Python's clock would shift it.
    values = [
        F.col(f"read.c{n}").cast("string") if _is_time(each.type) else f"read.c{n}" for n, each in enumerate(table)
    ]
    cells = [value.alias(f"c{n}") if isinstance(value, Expression) else value for n, value in enumerate(values)]
    rows = sorted(read.select("n", "shape", "read.unreadable", *cells).collect(), key=lambda row: int(row["n"]))
    unlike = []
    for row, (_, image, shape), want in zip(rows, images, wanted, strict=True):
        kind = CASES[int(shape)][1].partition("(")[0]
        found = UNREADABLE if row["unreadable"] else _python(row[f"c{shape}"], kind)
        if not same(found, _single(want) if kind == "float" else want):
            unlike.append((image, found, want))
    assert not unlike


def _single(value: Any) -> Any:
    """Return a number as a float of 32 bits holds it."""
    return struct.unpack("<f", struct.pack("<f", value))[0] if isinstance(value, float) else value


@settings(max_examples=50, deadline=None)
@given(numbers=st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=6), min_size=1, max_size=40))
def test_decimals_are_never_rounded(numbers: list[Decimal]) -> None:
    """A decimal arrives digit by digit, quoted or bare, or is unreadable; it is never another number."""
    raws = [quoted for number in numbers for quoted in (f'"{number:f}"', f"{number:f}")]
    for raw, found in zip(raws, by_reader(raws, Column("v", "decimal(30, 4)", Encoding.TEXT), None), strict=True):
        assert found is UNREADABLE or found == Decimal(raw.strip('"'))


@pytest.mark.spark
def test_text_that_looks_like_another_column_changes_nothing(spark: SparkSession) -> None:
    """A number is found by its own name, not by a text value that holds the same words."""
    shape = Shape((Column("note", "string", Encoding.PLAIN), Column("v", None, Encoding.PLAIN)))
    image = json.dumps({"note": '"v": 7.25, \\"v\\": 8', "v": 0})[:-2] + "1.2345678901234567890123}"
    frame = spark.createDataFrame([(image, shape.id)], "i string, shape string")
    columns = [TableColumn("v", "decimal(38, 22)")]
    read = read_images(frame, [Image(F.col("i"), columns, "read")], shapes={shape.id: shape}).first()
    assert read is not None
    assert read["read"]["c0"] == Decimal("1.2345678901234567890123")
