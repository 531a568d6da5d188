"""A value is read at its own place: what the other columns of its row hold changes nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding, Shape
from tidemark.values.images import read_images
from tidemark.values.plain import read_value
from tidemark.values.table_columns import Image, TableColumn

AMOUNT = "decimal(20, 2)"
COLUMNS = (
    (Column("amount", AMOUNT, Encoding.UNSCALED_BASE64), AMOUNT),
    (Column("id", "decimal(20, 0)", Encoding.UNSCALED_BASE64), "decimal(20, 0)"),
    (Column("price", None, Encoding.TEXT), "decimal(38, 12)"),
    (Column("rate", None, Encoding.PLAIN), "decimal(38, 12)"),
    (Column("ratio", "double", Encoding.PLAIN), "double"),
    (Column("factor", None, Encoding.PLAIN), "double"),
    (Column("count", None, Encoding.PLAIN), "long"),
    (Column("flag", None, Encoding.PLAIN), "boolean"),
    (Column("note", None, Encoding.PLAIN), "string"),
    (Column("n/ö\U0001f600", None, Encoding.PLAIN), "string"),
    (Column('say "x"', None, Encoding.PLAIN), "string"),
    (Column("text", "string", Encoding.TEXT), "string"),
)
"""Columns as the messages have them, with the table's type."""

NAMES = [column.name for column, _ in COLUMNS]

NUMBERS = [
    "12.50",
    "12.5",
    "0",
    "-0",
    "7",
    "20240117",
    "1234",
    "1.10",
    "-0.10",
    "1e3",
    "12345678901234567890.12",
    "1.0E10",
]

BARE = [*NUMBERS, "1e400", "-1e999", "true", "false", "null"]

TEXTS = [
    "",
    "Infinity",
    "-Infinity",
    '"Infinity"',
    "NaN",
    "BNI=",
    "AQ==",
    *NUMBERS,
    "true",
    "\\",
    '\\"',
    "{",
    "}",
    "[,",
    "x,",
    ":",
]
"""Short values that occur in many columns, so that what is written of one stands in others too."""

STRINGS = ("note", "text", "n/ö\U0001f600", 'say "x"')


def text_of(random: Random) -> str:
    """Return the JSON of a text: a short one, or one that looks like a member of the row; some with escapes."""
    text = random.choice(TEXTS)
    if random.random() < 0.3:
        text = f',"{random.choice(NAMES)}":{random.choice([json.dumps(text), random.choice(BARE)])},'
    if random.random() < 0.1:
        return '"' + "".join(f"\\u{ord(character):04X}" for character in text) + '"'
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def nested(random: Random, depth: int = 0) -> str:
    """Return the JSON of an object or an array that holds the names and values of the row."""
    values = [json_of(random, depth + 1) for _ in range(random.randint(0, 3))]
    if random.random() < 0.3:
        return f"[{','.join(values)}]"
    return "{" + ",".join(f"{name_of(random)}:{value}" for value in values) + "}"


def name_of(random: Random, name: str | None = None) -> str:
    """Return the JSON of a name of a member, as one of several writers has it."""
    name = name or random.choice(NAMES)
    escaped = "".join(
        f"\\u{ord(c):04x}" if random.random() < 0.3 and ord(c) < 0x10000 else json.dumps(c)[1:-1] for c in name
    )
    return f'"{escaped}"' if random.random() < 0.1 else json.dumps(name, ensure_ascii=random.random() < 0.5)


def json_of(random: Random, depth: int = 0) -> str:
    """Return the JSON of any value."""
    kind = random.random()
    if kind < 0.15 and depth < 4:
        return nested(random, depth)
    return random.choice(BARE) if kind < 0.6 else text_of(random)


def value_of(random: Random, column: Column) -> str:
    """Return the JSON of a value that may stand in a column."""
    if column.type == "double":
        return random.choice([*BARE, '"Infinity"', '"-Infinity"', '"NaN"'])
    if column.type == "string" or column.encoding is Encoding.UNSCALED_BASE64:
        return random.choice(BARE) if column.type != "string" and random.random() < 0.7 else text_of(random)
    if column.name == "flag":
        return random.choice(["true", "false", '"t"', "0", "null"])
    return json_of(random) if column.name in STRINGS or random.random() < 0.2 else random.choice(BARE)


def row_of(random: Random) -> dict[str, str]:
    """Return a row: the JSON of the value of each column; some lack columns or have others."""
    row = {column.name: value_of(random, column) for column, _ in COLUMNS if random.random() < 0.9}
    if random.random() < 0.3:
        row["other"] = json_of(random)
    names = list(row)
    random.shuffle(names)
    return {name: row[name] for name in names}


def image_of(random: Random, row: dict[str, str]) -> str:
    """Return the image of a row, as one of several writers has it."""
    comma, colon = random.choice([(",", ":"), (",", ":"), (", ", ": "), (" ,\n", " : ")])
    return "{" + comma.join(f"{name_of(random, name)}{colon}{value}" for name, value in row.items()) + "}"


def frame_of(spark: SparkSession, images: list[str]) -> DataFrame:
    """Return the images, read."""
    shape = Shape(tuple(column for column, _ in COLUMNS))
    rows = [(number, image, shape.id) for number, image in enumerate(images)]
    frame = spark.createDataFrame(rows, "n int, i string, shape string")
    columns = [TableColumn(column.name, kind) for column, kind in COLUMNS]
    return read_images(frame, [Image(F.col("i"), columns, "read")], shapes={shape.id: shape}).orderBy("n")


def plainly(raw: str, column: Column, kind: str) -> Any:
    """Return a value as the plain reader reads it; raises UnreadableValueError."""
    value = read_value(raw.encode(), Column(column.name, kind, column.encoding), column.type)
    if isinstance(value, str):
        made = {"double": float, "long": int}.get(kind, Decimal if kind.startswith("decimal") else str)
        return made(value)
    return value


def is_known_difference(raw: str, kind: str) -> bool:
    """Return whether a text column holds a nested value with a number: the docs say that its digits may change."""
    return kind == "string" and raw[:1] in {"{", "["}


@pytest.mark.spark
def test_a_row_reads_the_same_whatever_the_other_columns_hold(spark: SparkSession) -> None:
    """10,000 rows whose texts, keys and nested values look like members of the row, compared with the plain reader."""
    random = Random(29)  # noqa: S311  no secret
    rows = [row_of(random) for _ in range(10_000)]
    images = [image_of(random, row) for row in rows]
    wrong = []
    for row, image, found in zip(rows, images, frame_of(spark, images).select("read.*").collect(), strict=True):
        faults, wanted = set(), []
        for column, kind in COLUMNS:
            try:
                wanted.append(plainly(row.get(column.name, "null"), column, kind))
            except UnreadableValueError:
                faults.add(column.name)
        if faults or found["unreadable"]:
            if found["unreadable"] not in faults and (found["unreadable"] != "the image as a whole" or not faults):
                wrong.append((image, found["unreadable"], faults))
            continue
        for (column, kind), value, read in zip(COLUMNS, wanted, found, strict=False):
            if repr(value) != repr(read) and value != read and not is_known_difference(row.get(column.name, ""), kind):
                wrong.append((image, column.name, value, read))
    assert not wrong[:3], len(wrong)


@pytest.mark.spark
def test_a_bare_number_stays_one_beside_the_same_text(spark: SparkSession) -> None:
    """Connect's `decimal.format=NUMERIC` and Base64 that looks like a number, wherever the same digits stand again."""
    others = (
        '"1234"', '",\\"amount\\":\\"1234\\","', '{"amount":"1234"}', '{"x":1,"amount":"1234"}', '["1234"]', '"amount"',
    )  # fmt: skip
    based = Decimal(int.from_bytes(b"\xd7\x6d\xf8", signed=True)).scaleb(-2)
    amounts = {"1234": Decimal("1234.00"), '"1234"': based, "12.30": Decimal("12.30"), "null": None}
    images = {}
    for other in others:
        for amount, wanted in amounts.items():
            members = [f'"amount":{amount}', f'"note":{other}']
            images |= {"{" + ",".join(members[::order]) + "}": wanted for order in (1, -1)}
    found = [row["c0"] for row in frame_of(spark, [*images]).select("read.c0").collect()]
    assert dict(zip(images, found, strict=True)) == images


@pytest.mark.spark
def test_digits_are_found_however_deep_other_values_are(spark: SparkSession) -> None:
    """A number keeps its digits, whatever stands in front of it."""
    deep = "[" * 60 + "]" * 60
    images = [f'{{"other":{deep},"note":1.10}}', f'{{"note":1.10,"other":{deep}}}', f'{{"other":{deep},"note":"a"}}']
    found = frame_of(spark, images).select("read.c8", "read.unreadable").collect()
    assert [tuple(row) for row in found] == [("1.10", None), ("1.10", None), ("a", None)]
