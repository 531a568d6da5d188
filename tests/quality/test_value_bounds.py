"""Values that the source's own types rule out: what formats declare of them, and what check reports."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec import UNSET
from pyspark.sql import SparkSession

from support.histories import canal, deliver
from support.running import run_all
from tidemark.events import Column, Encoding, Shape
from tidemark.formats import _mysql
from tidemark.formats._connect import ConnectSchema
from tidemark.formats._connect import column as connect_column
from tidemark.formats._dts import types as dts_types
from tidemark.formats._replicate.types import column as replicate_column
from tidemark.formats._replicate.wire import TableColumn
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.tally import shape_from
from tidemark.quality.beyond_bounds import Beyond, First, in_batches
from tidemark.quality.value_bounds import VALUE_BOUNDS
from tidemark.sources.model import Source
from tidemark.values.bounds import Bounds, parsed, widest


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("varchar(20)", Bounds(length=20)),
        ("CHAR(3)", Bounds(length=3)),
        ("enum('new','it''s, (paid)')", Bounds(labels=("new", "it's, (paid)"))),
        ("tinyint(1)", Bounds(low=-128, high=127)),
        ("smallint unsigned", Bounds(low=0, high=65_535)),
        ("mediumint", Bounds(low=-8_388_608, high=8_388_607)),
        ("int(10) unsigned zerofill", Bounds(low=0, high=4_294_967_295)),
        ("bigint unsigned", Bounds(low=0, high=18_446_744_073_709_551_615)),
        ("int", None),  # the type of the column allows no more
        ("bigint", None),
        ("varchar", None),
        ("enum", None),
        ("text", None),
        ("decimal(8,3)", None),
    ],
)
def test_types_of_mysql(text: str, bounds: Bounds | None) -> None:
    """Lengths in characters, ranges of small and of unsigned numbers, labels; nothing where the text does not say."""
    found = _mysql.column("a", text).bounds
    assert (None if found is UNSET else parsed(str(found))) == bounds


def test_numbers_of_replicate() -> None:
    """Those that the type of the column does not bound by itself."""
    found = {
        name: replicate_column("a", TableColumn(ordinal=1, type=name)).bounds for name in ("INT1", "UINT4", "INT4")
    }
    assert found == {"INT1": "range -128 127", "UINT4": "range 0 4294967295", "INT4": UNSET}


@pytest.mark.parametrize(
    ("kind", "logical", "bounds"),
    [
        ("int8", None, "range -128 127"),
        ("int16", None, "range -32768 32767"),
        ("int16", "com.example.Odd", "range -32768 32767"),
        ("int16", "io.debezium.time.Year", None),
        ("int32", None, None),
        ("string", None, None),
    ],
)
def test_types_of_connect(kind: str, logical: str | None, bounds: str | None) -> None:
    """Small integers have a range, in messages of Debezium and of CDL with their schemas."""
    found = connect_column(ConnectSchema(type=kind, name=logical, field="a")).bounds
    assert (None if found is UNSET else found) == bounds


@pytest.mark.parametrize(
    ("kind", "logical", "parameters", "bounds"),
    [
        ("string", "io.debezium.data.Enum", {"allowed": "new,paid"}, Bounds(labels=("new", "paid"), joined=True)),
        ("string", "io.debezium.data.Enum", {"allowed": ""}, None),
        ("string", "io.debezium.data.Enum", {}, None),
        ("string", "io.debezium.data.EnumSet", {"allowed": "a,b"}, None),
        ("string", None, {"type": "VARCHAR", "length": "20"}, Bounds(length=20)),
        ("string", None, {"type": "ENUM", "length": "1"}, None),
        ("string", None, {"type": "VARCHAR"}, None),
        ("bytes", None, {"type": "CHAR", "length": "20"}, None),
    ],
)
def test_parameters_of_debezium(kind: str, logical: str | None, parameters: dict[str, str], bounds: Bounds) -> None:
    """Labels of an enum, and lengths of texts where the connector propagates them."""
    connect_parameters = {
        name if name == "allowed" else f"__debezium.source.column.{name}": text for name, text in parameters.items()
    }
    found = connect_column(ConnectSchema(type=kind, name=logical, field="a", parameters=connect_parameters)).bounds
    assert (None if found is UNSET else parsed(str(found))) == bounds


@pytest.mark.parametrize(
    ("values", "kind", "bounds", "beyond"),
    [
        (["abc", "äöü", None, "abcd"], pa.string(), Bounds(length=3), ["abcd"]),
        (
            ["new", "NEW", "1", "", None, "3", "old", "a,b"],
            pa.string(),
            Bounds(labels=("new", "paid")),
            ["3", "old", "a,b"],
        ),
        (["new", "a,b", "old"], pa.large_string(), Bounds(labels=("new",), joined=True), ["old"]),
        ([-1, 0, 255, None, 256], pa.int32(), Bounds(low=0, high=255), [-1, 256]),
        ([-1, 2**63 - 1], pa.int64(), Bounds(low=0, high=2**64 - 1), [-1]),
        ([Decimal(2**64), Decimal(2**64 - 1)], pa.decimal128(20), Bounds(low=0, high=2**64 - 1), [Decimal(2**64)]),
        ([Decimal("255.5"), Decimal(255)], pa.decimal128(38, 20), Bounds(low=0, high=255), [Decimal("255.5")]),
        ([255.5, 255.0], pa.float64(), Bounds(low=0, high=255), [255.5]),
    ],
    ids=["length", "labels", "labels with commas", "int", "unsigned in a long", "unsigned", "decimal", "double"],
)
def test_which_values_are_beyond(values: list[Any], kind: pa.DataType, bounds: Bounds, beyond: list[Any]) -> None:
    """Characters count, not bytes; a number of a label is one; null never is beyond."""
    found = []
    for number, value in enumerate(values):
        row = {"c0": [value], "position": [f"{number}"], "k0": [7]}
        batch = pa.record_batch(row, schema=pa.schema({"c0": kind, "position": pa.string(), "k0": pa.int64()}))
        finding = in_batches([batch], [bounds])
        assert (finding.first is not None) == bool(finding.counts[0])
        found += [value] if finding.first else []
    assert found == beyond


def test_the_first_of_several_parts_is_told() -> None:
    """By its position, whatever the order of files and rows; its key as text, of any type."""
    keys = {"k0": pa.array([1, 2, None]), "k1": pa.array([b"\x01", b"\x02", b"\x03"])}
    rows = pa.record_batch({"c0": ["aa", "bb", "c"], "position": ["5", "3", "1"], **keys})
    found = in_batches([rows.slice(0, 1), rows.slice(1)], [Bounds(length=1)])
    assert found == Beyond(counts=[2], first=First(position="3", key=["2", "02"]))
    unplaced = rows.set_column(1, "position", pa.array([None, None, "1"], pa.string()))
    assert in_batches([unplaced], [Bounds(length=1)]).first == First(position="", key=["1", "01"])
    assert in_batches([unplaced, rows], [Bounds(length=1)]).first == First(position="3", key=["2", "02"])


@pytest.mark.parametrize(
    ("source", "number", "bounds"),
    [
        ("MySQL", 1, "range -128 255"),
        ("DRDS", 9, "range -8388608 16777215"),
        ("MySQL", 13, None),
        ("MySQL", 3, None),
        ("PostgreSQL", 21, "range -32768 32767"),
        ("PPAS", 23, None),
        ("Oracle", 2, None),
        ("other", 1, None),
    ],
)
def test_types_of_dts(source: str, number: int, bounds: str | None) -> None:
    """MySQL's small integers may be unsigned: DTS does not say, so their range is the range of both."""
    found = dts_types.column(source, "a", number, dts_types.INTEGER).bounds
    assert (None if found is UNSET else found) == bounds


def test_bounds_of_several_shapes_are_the_widest_and_only_if_all_are_known() -> None:
    """Rows of a table may be of any of its shapes."""
    assert widest(["length 3", "length 20"]) == Bounds(length=20)
    assert widest(["range 0 255", "range -128 127"]) == Bounds(low=-128, high=255)
    assert widest(['labels ["a"]', 'labels ["b", "a"]']) == Bounds(labels=("a", "b"))
    for texts in (["length 3", UNSET], ["length 3", "range 0 1"], []):
        assert widest(texts) is None


def test_a_shape_without_bounds_is_stored_as_before() -> None:
    """So the ids of shapes that an earlier version stored stay as they are; with bounds nothing is lost."""
    plain = Shape((Column("id", "long", Encoding.TEXT),))
    assert plain.id == "8124aea14ac455e9"
    bounded = Shape((Column("id", "int", Encoding.TEXT, bounds="range 0 255"),))
    assert shape_from(msgspec.json.encode(bounded.columns).decode()) == bounded


TYPES = {
    "id": "bigint",
    "name": "varchar(3)",
    "state": "enum('new','paid')",
    "small": "tinyint",
    "big": "bigint unsigned",
    "free": "text",
}
SOUND = [("1", "äöü", "NEW", "-128", "18446744073709551615", "any length"), ("2", None, "2", "127", "0", None)]
BEYOND = [("3", "abcd", "odd", "200", "-1", "x"), ("4", "abcde", "", "0", "1", "y")]


@pytest.mark.spark
def test_values_beyond_are_counted_and_the_first_is_named(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """By column, with key, position and message; not in masked columns, nor in columns of another type."""
    other: dict[str, Any] = {
        "mask": {"name": "last4", "state": "redact"},
        "columns": {"small": "string", "big": "string"},
    }
    source = Source.model_validate(
        {
            "source": "bounds",
            "format": "canal_json",
            "landing": str(tmp_path / "*"),
            "tables": {"shop.other": other, "shop.renamed": {"rename": {"name": "label"}}},
        }
    )
    deliver(tmp_path, "1", [canal(name, "INSERT", TYPES, *SOUND) for name in ("plain", "other", "renamed", "sound")])
    deliver(tmp_path, "2", [canal(name, "INSERT", TYPES, *BEYOND) for name in ("plain", "other", "renamed")])
    report = run_all(source)["check"]
    assert report.problems == ()
    rows = {row.target: row for row in Ledger(lake, "bounds").checks() if row.name == VALUE_BOUNDS}
    assert {name: (row.observed, row.success, row.severity) for name, row in rows.items()} == {
        "bounds.plain": ("5", False, "warn"),
        "bounds.sound": ("0", True, "warn"),
    }
    assert rows["bounds.plain"].columns == (
        "name: 2 longer than 3 characters",
        "state: 1 no label of the enum",
        "small: 1 outside -128 to 127",
        "big: 1 outside 0 to 18446744073709551615",
    )
    (place,) = [text for text in report.remarks if "the first is" in text]
    assert place.startswith(f"bounds.plain: 5 {VALUE_BOUNDS}: the first is row id=3, position ")
    assert "message 1 of " in place
    assert place.endswith("2.json")
