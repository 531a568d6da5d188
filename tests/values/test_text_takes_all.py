"""A column of the type `string` takes every value that a database can hold, exactly, whatever its encoding."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding, Shape
from tidemark.values.images import read_images
from tidemark.values.plain import read_value
from tidemark.values.table_columns import Image, TableColumn


def unscaled(number: int) -> str:
    """Write an integer as Connect's Decimal does."""
    return json.dumps(base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode())


def scaled(number: int, scale: int) -> str:
    """Write a number as Debezium's VariableScaleDecimal."""
    return f'{{"scale":{scale},"value":{unscaled(number)}}}'


LONGEST = 10**1000 - 1

UNREADABLE = "unreadable"

VALUES: list[tuple[Encoding, str | None, str, str]] = [
    # SQL Server's datetime2 and time have seven digits by default, Db2's and Oracle's times up to nine and more.
    (Encoding.EPOCH_NANOS, "timestamp", "1648811502929775100", "2022-04-01T11:11:42.9297751"),
    (Encoding.EPOCH_NANOS, "timestamp", "1648811502929775000", "2022-04-01T11:11:42.929775"),
    (Encoding.EPOCH_NANOS, "timestamp", "1648811502000000001", "2022-04-01T11:11:42.000000001"),
    (Encoding.EPOCH_NANOS, "timestamp", "-1", "1969-12-31T23:59:59.999999999"),
    (Encoding.EPOCH_NANOS, "timestamp", str(2**63 - 1), "2262-04-11T23:47:16.854775807"),
    (Encoding.EPOCH_NANOS, "timestamp", str(-(2**63)), "1677-09-21T00:12:43.145224192"),
    (Encoding.EPOCH_MICROS, "timestamp", "-1", "1969-12-31T23:59:59.999999"),
    (Encoding.EPOCH_MICROS, "timestamp", "0", "1970-01-01T00:00:00.000000"),
    (Encoding.EPOCH_MICROS, "timestamp", "-86400000000", "1969-12-31T00:00:00.000000"),
    (Encoding.EPOCH_MICROS, "timestamp", "253402300800000000", "+10000-01-01T00:00:00.000000"),
    (Encoding.EPOCH_MICROS, "timestamp", "-62135596800000001", "0000-12-31T23:59:59.999999"),
    (Encoding.EPOCH_MICROS, "timestamp", "-62198755200000000", "-0001-01-01T00:00:00.000000"),
    (Encoding.EPOCH_MICROS, "timestamp", "9223372036825200000", "+294247-01-10T04:00:25.200000"),
    (Encoding.EPOCH_MICROS, "timestamp", "-9223372036832400000", "-290308-12-21T19:59:27.600000"),
    (Encoding.EPOCH_MILLIS, "timestamp", "-62135596800001", "0000-12-31T23:59:59.999000"),
    (Encoding.EPOCH_MILLIS, "timestamp", "9223372036825200", "+294247-01-10T04:00:25.200000"),
    (Encoding.EPOCH_SECONDS, "timestamp", "-1", "1969-12-31T23:59:59.000000"),
    (Encoding.EPOCH_SECONDS, "timestamp", str(2**63 - 1), UNREADABLE),
    (Encoding.EPOCH_DAYS, "date", "2932897", "+10000-01-01"),
    (Encoding.EPOCH_DAYS, "date", "-719529", "-0001-12-31"),
    (Encoding.EPOCH_DAYS, "date", "-719528", "0000-01-01"),
    (Encoding.EPOCH_DAYS, "date", "2147483647", "+5881580-07-11"),
    (Encoding.EPOCH_DAYS, "date", "-2147483648", "-5877641-06-23"),
    (Encoding.EPOCH_DAYS, "date", "2147483648", UNREADABLE),
    (Encoding.NANOS_OF_DAY, "string", "40302929775100", "11:11:42.9297751"),
    (Encoding.NANOS_OF_DAY, "string", "1", "00:00:00.000000001"),
    (Encoding.NANOS_OF_DAY, "string", "1000", "00:00:00.000001"),
    (Encoding.NANOS_OF_DAY, "string", "86400000000000", "24:00:00"),
    (Encoding.NANOS_OF_DAY, "string", "-1", "-00:00:00.000000001"),
    (Encoding.MICROS_OF_DAY, "string", "-3020399000001", "-838:59:59.000001"),
    (Encoding.MILLIS_OF_DAY, "string", "86399999", "23:59:59.999000"),
    (Encoding.UNSCALED_BASE64, "decimal(20, -2)", unscaled(1234), "123400"),
    (Encoding.UNSCALED_BASE64, "decimal(20, -2)", unscaled(-99), "-9900"),
    (Encoding.UNSCALED_BASE64, "decimal(20, -2)", unscaled(0), "0"),
    (Encoding.UNSCALED_BASE64, "decimal(65, 30)", unscaled(10**65 - 1), "9" * 35 + "." + "9" * 30),
    (Encoding.UNSCALED_BASE64, "decimal(65, 30)", unscaled(-1), "-0." + "0" * 29 + "1"),
    (Encoding.UNSCALED_BASE64, "decimal(65, 30)", unscaled(110 * 10**28), "1.1" + "0" * 29),
    (Encoding.UNSCALED_BASE64, "decimal(78, 0)", unscaled(2**256 - 1), str(2**256 - 1)),
    (Encoding.UNSCALED_BASE64, "decimal(78, 0)", unscaled(-(2**255)), str(-(2**255))),
    (Encoding.UNSCALED_BASE64, "decimal(78, 0)", str(2**256 - 1), str(2**256 - 1)),
    (Encoding.UNSCALED_BASE64, "decimal(78, 2)", f"{2**250}.10", f"{2**250}.10"),
    (Encoding.UNSCALED_BASE64, "decimal(1000, 0)", unscaled(LONGEST), str(LONGEST)),
    (Encoding.UNSCALED_BASE64, "decimal(1000, 1000)", unscaled(-LONGEST), f"-0.{LONGEST}"),
    (Encoding.UNSCALED_BASE64, "decimal(9, 0)", '""', UNREADABLE),
    (Encoding.SCALED_STRUCT, "string", scaled(2**256 - 1, 0), str(2**256 - 1)),
    (Encoding.SCALED_STRUCT, "string", scaled(1234, -2), "123400"),
    (Encoding.SCALED_STRUCT, "string", scaled(1, 130), "0." + "0" * 129 + "1"),
    (Encoding.SCALED_STRUCT, "string", scaled(-(10**39), 10), f"-{10**29}.{'0' * 10}"),
    (Encoding.SCALED_STRUCT, "string", scaled(7, 16_383), "0." + "0" * 16_382 + "7"),
    (Encoding.SCALED_STRUCT, "string", scaled(7, 2**31 - 1), UNREADABLE),
    *(
        (encoding, None, json.dumps(text), text)
        for encoding in (Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS)
        for text in (
            "2022-04-01 11:11:42.929775123", "12022-04-01 00:00:00", "0044-03-15 BC", "infinity", "-infinity", "NaN",
            str(2**256), "1.10", "0000-00-00", "-838:59:59.000000",
        )
    ),
    (Encoding.PLAIN, None, str(2**256), str(2**256)),
    (Encoding.PLAIN, None, f"{2**256}.10", f"{2**256}.10"),
    (Encoding.PLAIN, None, "1e400", "1e400"),
    (Encoding.PLAIN, None, "1.10E-3", "1.10E-3"),
]  # fmt: skip
"""Encoding, the type that the messages declare, the value as JSON, and the text that is published."""


def plainly(encoding: Encoding, declared: str | None, raw: str) -> str:
    """Return the text that the plain reader gives."""
    try:
        return str(read_value(raw.encode(), Column("v", "string", encoding), declared))
    except UnreadableValueError:
        return UNREADABLE


@pytest.mark.parametrize(
    ("encoding", "declared", "raw", "text"), VALUES, ids=[f"{e}-{r[:30]}" for e, _, r, _ in VALUES]
)
def test_the_plain_reader_gives_the_text(encoding: Encoding, declared: str | None, raw: str, text: str) -> None:
    """`tidemark decode` and `explain` print what is published."""
    assert plainly(encoding, declared, raw) == text


@pytest.mark.spark
def test_spark_gives_the_text(spark: SparkSession) -> None:
    """Each value in a column of its own, so that all are read in one job."""
    columns = [Column(f"v{number}", declared, encoding) for number, (encoding, declared, _, _) in enumerate(VALUES)]
    shapes, images = {}, []
    for start in range(0, len(columns), 20):
        some = range(start, min(start + 20, len(columns)))
        shape = Shape(tuple(columns[number] for number in some))
        shapes[shape.id] = shape
        images += [(number, f'{{"v{number}":{VALUES[number][2]}}}', shape.id) for number in some]
    frame = spark.createDataFrame(images, "n int, i string, shape string")
    table = [TableColumn(column.name, "string") for column in columns]
    read = read_images(frame, [Image(F.col("i"), table, "read")], shapes=shapes).orderBy("n").select("n", "read.*")
    found = {
        row["n"]: UNREADABLE if row["unreadable"] == f"v{row['n']}" else row[f"c{row['n']}"] for row in read.collect()
    }
    unlike = [(VALUES[n], text) for n, text in found.items() if text != VALUES[n][3]]
    assert not unlike


@given(number=st.integers(-(10**1000) + 1, 10**1000 - 1), scale=st.integers(-1000, 1000))
def test_a_number_of_a_thousand_digits_is_text(number: int, scale: int) -> None:
    """The digits of an unscaled number with the point at its scale."""
    text = plainly(Encoding.SCALED_STRUCT, "string", scaled(number, scale))
    whole, _, fraction = text.partition(".")
    assert len(fraction) == max(scale, 0)
    assert int(whole + fraction) == number * 10 ** max(-scale, 0)


@pytest.mark.parametrize(
    ("raw", "kind", "encoding"),
    [("1648811502929775100", "timestamp", Encoding.EPOCH_NANOS), ("-1", "timestamptz", Encoding.EPOCH_NANOS)],
)
def test_what_a_time_cannot_hold_names_the_remedy(raw: str, kind: str, encoding: Encoding) -> None:
    """The reason names the value and the type that takes it."""
    with pytest.raises(UnreadableValueError, match=f"{raw}.*string"):
        read_value(raw.encode(), Column("v", kind, encoding))
