"""Batches of images: rows in any mixture keep their places, and odd ones cost the others nothing."""

from __future__ import annotations

import base64
import json
import pickle
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.rounds import how_many
from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.values import base64_arrays, image_reader, typed_values
from tidemark.values.image_reader import WHOLE, ImageColumn, ImageReader
from tidemark.values.plain import read_value

KINDS = ["long", "string", "decimal(10, 2)", "timestamp"]
FULL = {number: ImageColumn(Column(f"v{number}", None, Encoding.PLAIN), kind) for number, kind in enumerate(KINDS)}
SHAPES = {
    "full": FULL,
    "narrow": {0: FULL[0]},
    "renamed": {1: ImageColumn(Column("old name", "string"), "string")},
    "quoted": {n: ImageColumn(Column(f"v{n}", None, Encoding.TEXT), kind) for n, kind in enumerate(KINDS)},
}


def read(
    rows: list[tuple[str | None, str | None]], shapes: dict[str, dict[int, ImageColumn]] = SHAPES
) -> list[tuple[Any, ...]]:
    """Return what the reader gives for shapes and images, as a worker has it."""
    reader = pickle.loads(pickle.dumps(ImageReader(KINDS, shapes)))  # noqa: S301  as Spark sends it
    ids, texts = (pa.array([row[side] for row in rows], pa.string()) for side in (0, 1))
    return [tuple(each.values()) for each in reader.read(ids, texts).to_pylist()]


def test_a_mixture_of_shapes_keeps_its_order() -> None:
    """Null images, unknown shapes and missing columns give nulls; each row stands where it stood."""
    rows = [
        ("narrow", '{"v0":1,"v1":"left out"}'),
        ("full", None),
        ("full", '{"v3":"2026-01-31 00:00:01","v2":1.10,"v1":"x","v0":2}'),
        ("unheard of", '{"v0":3}'),
        (None, '{"v0":3}'),
        ("renamed", '{"old name":"y","v0":4}'),
        ("quoted", '{"v0":"5","v1":"z","v2":"-0.10","v3":"2026-01-31T00:00:02Z"}'),
        ("full", "{}"),
        ("narrow", '{"v0":6}'),
    ]
    nothing = (None,) * 5
    assert read(rows) == [
        (1, None, None, None, None),
        nothing,
        (2, "x", Decimal("1.10"), datetime(2026, 1, 31, 0, 0, 1), None),  # noqa: DTZ001  a wall clock
        nothing,
        nothing,
        (None, "y", None, None, None),
        (5, "z", Decimal("-0.10"), datetime(2026, 1, 31, 0, 0, 2), None),  # noqa: DTZ001
        nothing,
        (6, None, None, None, None),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        '{"v0":1}{"v0":2}', '{"v0":1', '"v0":1}', "", " ", "[1]", "null", "5", '"text"', "{", "}", '{"v0":1}\n{"v0":2}',
        '{"v1":"\\ud800"}', '{"v1":"\x01"}', '{"v0":01}', '{"v0":1e400}{', "{" * 5000, '{"x":' + "[" * 5000 + "}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_image_that_is_no_object_moves_no_other_row(odd: str, place: int) -> None:
    """It is unreadable as a whole, and its neighbours are what they would be without it."""
    rows: list[tuple[str | None, str | None]] = [("full", '{"v0":7,"v1":"a"}'), ("full", '{"v0":8,"v1":"b"}')]
    rows.insert(place, ("full", odd))
    found = read(rows)
    assert found.pop(place) == (None, None, None, None, WHOLE)
    assert [row[:2] for row in found] == [(7, "a"), (8, "b")]


def test_the_first_column_that_does_not_fit_is_named() -> None:
    """In the order of the table, by its name in the image; the columns that fit are read all the same."""
    rows = [
        ("full", '{"v2":"x","v0":1.5,"v1":"a"}'),
        ("full", '{"v2":1.005,"v0":9223372036854775807}'),
        ("full", '{"v3":"2026-02-30 00:00:00"}'),
        ("full", '{"v0":9223372036854775808,"v3":"2026-02-28 00:00:00"}'),
        ("full", '{"v0":5,"v2":5}'),
    ]
    assert [(*row[:1], row[2], row[4]) for row in read(rows)] == [
        (None, None, "v0"), (2**63 - 1, None, "v2"), (None, None, "v3"), (None, None, "v0"), (5, Decimal(5), None),
    ]  # fmt: skip


def test_a_name_that_stands_twice_counts_once() -> None:
    """The last one counts, as for most readers of JSON, and the neighbours are read as before."""
    rows = [("full", '{"v0":1,"v0":2,"other":1,"other":2}'), ("full", '{"v0":3}')]
    assert [row[0] for row in read(rows)] == [2, 3]


COMMON = [
    (Encoding.PLAIN, "boolean", "true"), (Encoding.PLAIN, "int", "-5"), (Encoding.TEXT, "int", '"-5"'),
    (Encoding.PLAIN, "long", str(2**63 - 1)), (Encoding.TEXT, "long", '"123456789012345678"'),
    (Encoding.PLAIN, "float", "1.5"), (Encoding.PLAIN, "double", "0.1"), (Encoding.TEXT, "double", '"1.5e-7"'),
    (Encoding.PLAIN, "decimal(18, 2)", "12.5"), (Encoding.TEXT, "decimal(18, 2)", '"12.50"'),
    (Encoding.UNSCALED_BASE64, "decimal(18, 2)", '"BNI="'), (Encoding.PLAIN, "date", '"2026-01-31"'),
    (Encoding.EPOCH_DAYS, "date", "20000"), (Encoding.EPOCH_MILLIS, "date", "86400000"),
    (Encoding.PLAIN, "timestamp", '"2026-01-31T01:02:03.5Z"'), (Encoding.TEXT, "timestamp", '"2026-01-31 01:02:03"'),
    (Encoding.EPOCH_MILLIS, "timestamp", "1767225600001"), (Encoding.EPOCH_NANOS, "timestamp", "1767225600000001000"),
    (Encoding.PLAIN, "timestamptz", '"2026-01-31T01:02:03.123456+05:30"'), (Encoding.EPOCH_MICROS, "timestamptz", "-1"),
    (Encoding.TEXT, "timestamptz", '"2026-01-31 01:02:03"'), (Encoding.TEXT_OR_MILLIS, "timestamp", '"1767225600001"'),
    (Encoding.TEXT_OR_MICROS, "timestamp", "1767225600001"), (Encoding.TEXT_OR_MILLIS, "date", '"2026-01-31"'),
    (Encoding.TEXT, "string", '"ä\\u0000"'), (Encoding.TEXT, "binary", '"abc"'),
    (Encoding.BASE64, "binary", '"3q2+7w=="'), (Encoding.BASE64, "binary", '""'),
    (Encoding.MICROS_OF_DAY, "string", "3723000001"), (Encoding.MILLIS_OF_DAY, "string", "3723000"),
]  # fmt: skip
"""Encoding, type and a value, as producers mostly write them."""


def test_common_values_are_read_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain reader is not asked, whether there are nulls or not, and gives the same."""

    def asked(raw: bytes, column: Column, _declared: str | None) -> None:
        raise AssertionError(f"{raw!r} as {column}")

    for encoding, kind, raw in COMMON:
        column = Column("v", kind, encoding)
        wanted = typed_values.array(kind, [read_value(raw.encode(), column), None]).to_pylist()
        reader = ImageReader([kind], {"of it": {0: ImageColumn(Column("v", kind, encoding), kind)}})
        with monkeypatch.context() as patched:
            patched.setattr(image_reader, "read_value", asked)
            texts = pa.array([f'{{"v":{raw}}}', '{"v":null}', "{}"])
            rows = reader.read(pa.array(["of it"] * 3), texts).to_pylist()
        assert [row["c0"] for row in rows] == [*wanted, None]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
    | st.dates().map(date.isoformat) | st.datetimes().map(str)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.binary(max_size=12).map(lambda octets: base64.b64encode(octets).decode()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["v0", "v1", "x"]), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
TYPES = ["boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary",
         "decimal(10, 2)", "decimal(38, 0)", "decimal(38, 38)"]  # fmt: skip


@pytest.mark.more
@settings(max_examples=how_many(usually=100, proving=300), deadline=None)
@given(
    encoding=st.sampled_from(list(Encoding)),
    kind=st.sampled_from(TYPES),
    declared=st.sampled_from([None, "decimal(12, 2)", "decimal(12, -2)", "string", "long", "double"]),
    values=st.lists(JSON, min_size=1, max_size=12),
)
def test_any_batch_is_read_as_the_plain_reader_reads(
    encoding: Encoding, kind: str, declared: str | None, values: list[Any]
) -> None:
    """Whatever the values, the encoding, and the types that the messages and the table have."""
    raws = [json.dumps(value, ensure_ascii=False) for value in values]
    source = Column("v0", declared, encoding)
    reader = ImageReader([kind], {"of it": {0: ImageColumn(source, kind)}})
    texts = pa.array([f'{{"other":{{"v0":[{raw}]}},"v0":{raw}}}' for raw in raws])
    rows = reader.read(pa.array(["of it"] * len(raws)), texts).to_pylist()
    for raw, row in zip(raws, rows, strict=True):
        try:
            value = read_value(raw.encode(), Column("v0", kind, encoding), declared)
        except UnreadableValueError:
            assert (row["c0"], row["unreadable"]) == (None, "v0")
        else:
            assert row["unreadable"] is None
            assert pa.array([row["c0"]], typed_values.arrow_type(kind)) == typed_values.array(kind, [value])


NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**39 - 1) | st.integers(0, 99),
    st.sampled_from(["", ".5", ".10", f".{'7' * 12}", f".{'3' * 18}", f".{'9' * 37}"]),
    st.sampled_from(["", "", "", "e2", "E+20", "e-3", "e-18"]) | st.integers(-300, 300).map("e{}".format),
)
DECIMALS = [f"decimal({size})" for size in ("38, 18", "38, 10", "38, 2", "38, 37", "38, 0", "20, 19", "18, 2", "10, 2")]


def _agree(kind: str, raws: list[str], encoding: Encoding = Encoding.PLAIN) -> None:
    """Assert that a batch of images has what the plain reader reads, each value whole or set aside."""
    reader = ImageReader([kind], {"of it": {0: ImageColumn(Column("v", kind, encoding), kind)}})
    rows = reader.read(pa.array(["of it"] * len(raws)), pa.array([f'{{"v":{raw}}}' for raw in raws])).to_pylist()
    for raw, row in zip(raws, rows, strict=True):
        try:
            value = read_value(raw.encode(), Column("v", kind, encoding))
        except UnreadableValueError:
            assert (row["c0"], row["unreadable"]) == (None, "v")
        else:
            assert (row["c0"], row["unreadable"]) == (Decimal(str(value)), None)


@pytest.mark.more
@settings(max_examples=how_many(usually=150, proving=400), deadline=None)
@given(kind=st.sampled_from(DECIMALS), encoding=st.sampled_from([Encoding.PLAIN, Encoding.TEXT]), number=NUMBERS)
@example(kind="decimal(38, 18)", encoding=Encoding.PLAIN, number="1280865068139399865160949")
@example(kind="decimal(38, 10)", encoding=Encoding.TEXT, number="12345678901234567890123456789012345678")
@example(kind="decimal(10, 2)", encoding=Encoding.PLAIN, number="9650397359")
@example(kind="decimal(18, 2)", encoding=Encoding.PLAIN, number="1.2345678901234567e-25")
@example(kind="decimal(10, 2)", encoding=Encoding.TEXT, number="1E-41")
@example(kind="decimal(38, 0)", encoding=Encoding.PLAIN, number="1e-39")
def test_a_number_is_read_whole_or_set_aside(kind: str, encoding: Encoding, number: str) -> None:
    """Alone in its batch: no other value keeps it from the compiled reader, and no digit may be lost there."""
    _agree(kind, [json.dumps(number) if encoding is Encoding.TEXT else number], encoding)


@pytest.mark.more
@settings(max_examples=how_many(usually=70, proving=200), deadline=None)
@given(
    kind=st.sampled_from(DECIMALS),
    raws=st.lists(NUMBERS | NUMBERS.map(json.dumps) | st.sampled_from(["0", "1.50", '"7"']), min_size=2, max_size=8),
)
@example(kind="decimal(10, 2)", raws=["0", "1e-41", "-0.5"])
def test_numbers_of_a_batch_are_read_whole_or_set_aside(kind: str, raws: list[str]) -> None:
    """With and without quotation marks, and beside numbers that the compiled reader takes."""
    _agree(kind, raws)


@pytest.mark.parametrize(
    "odd",
    [
        "1e-10000000", '"1E-2147483647"', '"1\\u0065-41"', '"1\\u0045\\u002d41"', '"1e\\u002D41"', '"1e-\\u00341"',
        '"1\\u002e5\\u0065-41"', '"1e-4\\u0031"', "1.e-41", '"1e-41', "1e-41,", f"1e-{'0' * 30}41", "1e-41 ",
        "1e-", '"1e-', f"{'0.' + '0' * 99}1e-41", f'"-{"1" * 99}e-10000000"', '"+1e-41"', '"\\u002b1e-41"',
        "-.5e-41", '"-.5E-41"', '"1\\u002ee-41"', f"1e-{'0' * 99}41",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["decimal(10, 2)", "decimal(38, 18)"])
def test_a_small_number_in_whatever_spelling_harms_nothing(odd: str, kind: str) -> None:
    """Arrow's reader would make another number of it, or end the process. The neighbours are read as before."""
    reader = ImageReader([kind], {"of it": {0: ImageColumn(Column("v", kind, Encoding.PLAIN), kind)}})
    rows = reader.read(pa.array(["of it"] * 3), pa.array(['{"v":1.5}', f'{{"v":{odd}}}', '{"v":"2.5"}'])).to_pylist()
    assert [row["c0"] for row in rows] == [Decimal("1.5"), None, Decimal("2.5")]
    assert [bool(row["unreadable"]) for row in rows] == [False, True, False]


def test_only_images_with_small_numbers_are_read_by_the_plain_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates, identifiers and words with a hyphen are none."""
    texts = [
        "2026-01-31", "3f2504e0-4f89-41d3-9a0e-0305e82c3301", "00000000-0000-4000-812e-000000000001", "a-12e-1",
        "size-4, type 3e-", "\\u003c\\u4e2d", "e-5", "1e-5x", "x1e-5",
    ]  # fmt: skip
    raws, asked = ["1.5", "2", "0", "-7.25", "3", "4", "7", "8", "9", "5e-1", '"-6E-1"'], []
    kinds = {
        0: ImageColumn(Column("v", None, Encoding.PLAIN), "decimal(10, 2)"),
        1: ImageColumn(Column("t", None), "string"),
    }
    reader = ImageReader(["decimal(10, 2)", "string"], {"of it": kinds})
    monkeypatch.setattr(image_reader, "read_value", lambda raw, *column: asked.append(raw) or read_value(raw, *column))
    images = [f'{{"t":"{text}","v":{raw}}}' for text, raw in zip([*texts, "", ""], raws, strict=True)]
    rows = reader.read(pa.array(["of it"] * len(raws)), pa.array(images)).to_pylist()
    assert [row["c0"] for row in rows] == [Decimal(raw.strip('"')) for raw in raws]
    assert asked == [b"5e-1", b'"-6E-1"']


@given(values=st.lists(st.none() | st.binary(max_size=20) | st.text(max_size=8), max_size=20), data=st.data())
def test_base64_in_arrays_is_base64(values: list[bytes | str | None], data: st.DataObject) -> None:
    """What is said to be sure is what Python's decoder gives; texts with padding that are Base64 are sure."""
    texts = [base64.b64encode(each).decode() if isinstance(each, bytes) else each for each in values]
    array = pa.array(["left out", *texts], pa.string())[1:]
    octets, sure = base64_arrays.decoded(array)
    assert [bool(each) for each, value in zip(sure, values, strict=True) if isinstance(value, bytes)] == [True] * sum(
        isinstance(value, bytes) for value in values
    )
    found = [base64.b64decode(text, altchars=b"-_" if set("-_") & set(text) else None)
             for text, known in zip(texts, sure, strict=True) if known and text is not None]  # fmt: skip
    assert octets.array().to_pylist() == found
    numbers, short = octets.numbers()
    for octet, number, known in zip(found, numbers.tolist(), short.tolist(), strict=True):
        assert known == (1 <= len(octet) <= 8)
        assert not known or number == int.from_bytes(octet, signed=True)
