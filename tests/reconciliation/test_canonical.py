"""The text that stands for a value: DuckDB's and Python's are one, and no two rows have the same."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tidemark.events import Column, Encoding
from tidemark.reconciliation import canonical, kinds, statements
from tidemark.reconciliation.kinds import ColumnPair, SourceColumn, ValueKind
from tidemark.values.plain import read_value

_WALL = datetime.fromisoformat


def _texts(kind: ValueKind, values: Sequence[Any], type_: pa.DataType) -> list[str]:
    """What DuckDB makes of values."""
    duck = duckdb.connect()
    duck.register("given", pa.table({"v": pa.array(values, type_)}))
    cell = canonical.cell("duckdb", kind, statements.column("v")).sql(dialect="duckdb")
    return [row[0] for row in duck.execute(f"SELECT {cell} FROM given").fetchall()]  # noqa: S608


@pytest.mark.parametrize(
    ("kind", "iceberg", "type_", "values", "written"),
    [
        (ValueKind.BOOLEAN, "boolean", pa.bool_(), [True, False], ["true", "false"]),
        (ValueKind.NUMBER, "long", pa.int64(), [-(2**63), 0, 100], [str(-(2**63)), "0", "100"]),
        (ValueKind.NUMBER, "decimal(38, 3)", pa.decimal128(38, 3),
         [Decimal("9" * 35 + ".900"), Decimal("-0.010"), Decimal(0), Decimal("100.000")],
         ["9" * 35 + ".9", "-0.01", "0.000", "100"]),
        (ValueKind.DATE, "date", pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], ["0001-01-01", "9999-12-31"]),
        (ValueKind.WALL, "timestamp", pa.timestamp("us"),
         [_WALL("0001-01-01T00:00:00"), _WALL("2026-10-10T10:10:10.100000"), _WALL("9999-12-31T23:59:59.999999")],
         ["0001-01-01 00:00:00", "2026-10-10T10:10:10.1", "9999-12-31 23:59:59.999999"]),
        (ValueKind.INSTANT, "timestamptz", pa.timestamp("us"), [_WALL("2026-10-10T10:10:10.000001")],
         ["2026-10-10T12:10:10.000001+02:00"]),
        (ValueKind.TEXT, "string", pa.string(), ["", "~", "|", "~2", "é\n "], ["", "~", "|", "~2", "é\n "]),
        (ValueKind.PADDED, "string", pa.string(), ["a  ", "  "], ["a", ""]),
        (ValueKind.BYTES, "binary", pa.binary(), [b"", b"\x00\xff"], ["", "AP8="]),
    ],
)  # fmt: skip
def test_a_key_of_the_change_log_has_the_text_of_the_lake(
    kind: ValueKind, iceberg: str, type_: pa.DataType, values: list[Any], written: list[str]
) -> None:
    """Whatever the message wrote; and the text that people are shown leads back to it."""
    import json

    pair = ColumnPair(source="v", lake="v", kind=kind)
    encoding = Encoding.BASE64 if iceberg == "binary" else Encoding.TEXT
    texts = _texts(kind, values, type_)
    for text, each in zip(texts, written, strict=True):
        value = read_value(json.dumps(each).encode(), Column("v", iceberg, encoding))
        assert canonical.key_of([pair], {"v": value}) == text
        shown = canonical.given(kind, canonical.key_cells(text)[0])
        assert canonical.key_of([pair], {"v": shown}) == text


def test_no_two_rows_have_one_text() -> None:
    """Null, the empty text, bars and escapes, in any columns."""
    parts = [None, "", "|", "~", "~2", "~1", "a|b", "a"]
    rows = list(itertools.product(parts, parts, parts))
    columns = {f"c{place}": pa.array(values, pa.string()) for place, values in enumerate(zip(*rows, strict=True))}
    duck = duckdb.connect()
    duck.register("given", pa.table(columns))
    cells = [canonical.cell("duckdb", ValueKind.TEXT, statements.column(name)) for name in columns]
    joined = canonical.joined(cells).sql(dialect="duckdb")
    texts = [row[0] for row in duck.execute(f"SELECT {joined} FROM given").fetchall()]  # noqa: S608
    assert len(set(texts)) == len(rows)


def test_a_row_of_many_columns_is_joined_as_one_of_few() -> None:
    """PostgreSQL calls no function with more than a hundred arguments."""
    cells = [canonical.exp.Literal.string(str(number)) for number in range(1234)]
    sql = canonical.joined(cells).sql(dialect="duckdb")
    assert duckdb.connect().execute(f"SELECT {sql}").fetchall() == [("|".join(map(str, range(1234))),)]


def test_doubles_are_their_bits_with_one_zero_and_one_nan() -> None:
    """Two neighbours differ; both zeros, and all that is no number, are equal."""
    texts = _texts(ValueKind.DOUBLE, [0.0, -0.0, float("nan"), -float("nan"), 1.0, 1.0000000000000002], pa.float64())
    assert texts[0] == texts[1]
    assert texts[2] == texts[3] == "NaN"
    assert len({*texts}) == 4


def test_a_column_with_another_name_belongs_to_its_own_at_the_source() -> None:
    """``rename`` of the source file. A column of the source that has the published name is another one: it is named."""
    there = [
        SourceColumn(name=name, type=kind) for name, kind in (("nr", "bigint"), ("note", "text"), ("text", "text"))
    ]
    pairs = kinds.pairs_of(
        "mysql", there, {"id": "long", "text": "string"}, ["id"], called={"nr": "id", "note": "text"}
    )
    assert [(pair.source, pair.lake) for pair in pairs.all] == [("nr", "id"), ("note", "text")]
    assert pairs.left_out == {"text": "the lake does not have it"}
    assert kinds.key_problem(pairs, ["id"]) is None


def test_what_is_not_compared_is_named() -> None:
    """A column of one side only, another pair of types, and values that are other ones on purpose."""
    there = [SourceColumn(name=name, type=kind) for name, kind in (("id", "bigint"), ("j", "jsonb"), ("new", "text"))]
    there.append(SourceColumn(name="mail", type="text"))
    here = {"old": "string", "j": "string", "id": "long", "mail": "string"}
    pairs = kinds.pairs_of("postgres", there, here, ["id"], changed=["mail"])
    assert [pair.lake for pair in pairs.all] == ["id"]
    assert set(pairs.left_out) == {"old", "j", "new", "mail"}
    assert kinds.key_problem(pairs, ["id"]) is None
    odd = kinds.pairs_of("postgres", there, here, ["id", "j"])
    assert str(kinds.key_problem(odd, ["id", "j"])).startswith("its key cannot be compared: j: jsonb at the source")
    for dialect, source in (("mysql", "double"), ("mysql", "timestamp"), ("postgres", "real")):
        assert kinds.kind_of(dialect, source, "timestamp" if source == "timestamp" else "double") is None
