"""DTS Avro from a container file to Iceberg tables: the ends of every type arrive unchanged, or are set aside."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from support import dts_records
from support.running import run_all
from tidemark.demo.renderers.dts_schema import record_schema
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source
from tidemark.tables.schemas import COMMITTED_AT, POSITION

PRIMARY = {"pk_uk_info": '{"PRIMARY":["id"]}'}
MYSQL = {
    "id": 8, "small": 1, "whole": 3, "big": 8, "bits": 16, "money": 246, "wide": 246, "real4": 4, "real8": 5,
    "day": 10, "clock": 11, "moment": 18, "instant": 17, "born": 13, "text": 253, "body": 252, "raw": 252, "doc": 245,
}  # fmt: skip
POSTGRESQL = {"id": 20, "flag": 16, "amount": 1700, "j": 3802, "at": 1184, "wall": 1114, "bin": 17, "clock": 1083}
ORACLE = {"id": 2, "n": 2, "d": 12, "t": 180, "z": 181, "x": 100}


def integer(value: int) -> dict[str, Any]:
    """A value of branch Integer."""
    return {"Integer": str(value)}


def wall(*parts: int | None) -> dict[str, Any]:
    """A value of branch DateTime; parts at the end may be left out."""
    return {"DateTime": [*parts, *[None] * (7 - len(parts))]}


def clock(*parts: int) -> dict[str, Any]:
    """A DateTime without a date."""
    return wall(None, None, None, *parts)


ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "small": integer(255), "whole": integer(2**32 - 1), "big": integer(2**63 - 1), "bits": integer(2**64 - 1),
            "money": {"Decimal": ["9" * 36 + ".99", 38, 2]}, "wide": {"Decimal": ["9" * 35 + "." + "9" * 30, 65, 30]},
            "real4": {"Float": 3.4028234663852886e38}, "real8": {"Float": 1.7976931348623157e308},
            "day": wall(9999, 12, 31), "clock": clock(838, 59, 59, 0), "moment": wall(9999, 12, 31, 23, 59, 59, 999999),
            "instant": {"Timestamp": [253402300799, 999999]}, "born": wall(2155), "text": {"Character": "😀 \0 \u2028"},
            "body": {"Character": "x" * 70_000}, "raw": {"BinaryObject": "00ff80"},
            "doc": {"TextObject": '{"a": 1.10}'},
        },
        {
            "small": 255, "whole": 2**32 - 1, "big": 2**63 - 1, "bits": Decimal(2**64 - 1),
            "money": Decimal("9" * 36 + ".99"), "wide": "9" * 35 + "." + "9" * 30, "real4": 3.4028234663852886e38,
            "real8": 1.7976931348623157e308, "day": date(9999, 12, 31), "clock": "838:59:59",
            "moment": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - wall clock
            "instant": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "born": 2155, "text": "😀 \0 \u2028",
            "body": "x" * 70_000, "raw": b"\0\xff\x80", "doc": '{"a": 1.10}',
        },
    ),
    (
        {
            "small": integer(-128), "whole": integer(-(2**31)), "big": integer(-(2**63)), "bits": integer(0),
            "money": {"Decimal": ["-" + "9" * 36 + ".99", 38, 2]}, "wide": {"Decimal": ["0." + "0" * 30, 65, 30]},
            "real4": {"Float": 1.401298464324817e-45}, "real8": {"Float": 5e-324}, "day": wall(1, 1, 1),
            "clock": clock(-838, 59, 59, 999999), "moment": wall(1, 1, 1, 0, 0, 0, 1),
            "instant": {"Timestamp": [-62135596800, 1]}, "born": wall(1901), "text": {"Character": ""},
            "body": {"Character": {"charset": "gbk", "hex": "c4e3"}}, "raw": {"BinaryObject": ""},
            "doc": {"TextObject": "null"},
        },
        {
            "small": -128, "whole": -(2**31), "big": -(2**63), "bits": Decimal(0),
            "money": Decimal("-" + "9" * 36 + ".99"), "wide": "0." + "0" * 30, "real4": 1.401298464324817e-45,
            "real8": 5e-324, "day": date(1, 1, 1), "clock": "-838:59:59.999999",
            "moment": datetime(1, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - wall clock
            "instant": datetime(1, 1, 1, 0, 0, 0, 1, UTC), "born": 1901, "text": "", "body": "你", "raw": b"",
            "doc": "null",
        },
    ),
    (
        {
            "money": {"Decimal": ["1.10", 38, 2]}, "real4": {"Float": 3.140000104904175}, "real8": {"Float": "nan"},
            "clock": clock(0, -30, 0, 0), "instant": {"Timestamp": [-1, 999999]}, "text": {"Character": "null"},
        },
        {
            "money": Decimal("1.10"), "real4": 3.140000104904175, "real8": math.nan, "clock": "-00:30:00",
            "instant": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "text": "null",
        },
    ),
    ({"real8": {"Float": "-inf"}, "real4": {"Float": "inf"}}, {"real8": -math.inf, "real4": math.inf}),
    ({name: {"EmptyObject": "NULL"} for name in MYSQL if name != "id"}, {}),
]  # fmt: skip
"""Columns of a MySQL row as DTS has them, and as they must be published; the others are null."""

SET_ASIDE: list[dict[str, Any]] = [
    {"day": wall(0, 0, 0)},
    {"moment": wall(2024, 0, 0, 0, 0, 0, 0)},
    {"moment": wall(2023, 2, 29, 0, 0, 0, 0)},
    {"big": integer(2**63)},
    {"big": integer(2**64 - 1)},
    {"whole": {"Integer": "1.5"}},
    {"text": {"Character": {"charset": "utf8mb4", "hex": "c328"}}},
    {"text": {"Character": {"charset": "klingon", "hex": "61"}}},
    {"moment": wall(2024, 1, 1, 0, 0, 0, 1_000_000)},
]
"""Rows with one value that fits nowhere."""


def records() -> list[dict[str, Any]]:
    """Return the Records of three sources in the notation of ``dts_records``."""
    rows = [{"id": integer(key), **row} for key, (row, _) in enumerate(ROWS, 1)]
    rows += [{"id": integer(key), **row} for key, row in enumerate(SET_ASIDE, 100)]
    result = [_inserted("MySQL", "shop.extremes", MYSQL, row, f"{n}@1") for n, row in enumerate(rows, 1)]
    result.append(
        {**_inserted("MySQL", "shop.extremes", MYSQL, {"id": integer(1), "small": integer(7)}, "99@1"),
         "operation": "UPDATE", "before": None,
         "after": [integer(1), integer(7), *[{"EmptyObject": "NONE"}] * (len(MYSQL) - 2)]}
    )  # fmt: skip
    number = {"Decimal": ["-12345678901234567890.123456789012345678", 0, 0]}
    result += [
        _inserted("PostgreSQL", "app.public.pg", POSTGRESQL, {
            "id": integer(1), "flag": {"TextObject": "t"}, "amount": number,
            "j": {"BinaryObject": '{"😀": 1.10}'.encode().hex()},
            "at": {"TimestampWithTimeZone": [[2024, 2, 29, 23, 59, 59, 999999], "-05:30"]},
            "wall": wall(9999, 12, 31, 23, 59, 59, 999999), "bin": {"BinaryObject": "ff"}, "clock": clock(24, 0, 0, 0),
        }, "x"),
        *(
            _inserted("PostgreSQL", "app.public.pg", POSTGRESQL, {"id": integer(key), **row}, "x")
            for key, row in ((2, {"amount": {"Decimal": ["NaN", 0, 0]}}), (3, {"flag": {"TextObject": "false"}}))
        ),
        _inserted("Oracle", "orcl.S.ORA", ORACLE, {
            "id": integer(1), "n": {"Decimal": ["0.10", 0, -127]}, "d": wall(1, 1, 1, 0, 0, 0),
            "t": wall(2024, 1, 1, 0, 0, 0, 123_456_000), "x": {"Float": 1.5},
            "z": {"TimestampWithTimeZone": [[2024, 7, 1, 12, 0, 0, 1000], "Europe/Berlin"]},
        }, "1"),
        _inserted("Oracle", "orcl.S.ORA", ORACLE, {"id": integer(2), "t": wall(2024, 1, 1, 0, 0, 0, 1)}, "2"),
    ]  # fmt: skip
    return result


def _inserted(source: str, table: str, numbers: dict[str, int], row: dict[str, Any], position: str) -> dict[str, Any]:
    return {
        "operation": "INSERT", "source": source, "object": table, "tags": PRIMARY, "position": position,
        "fields": list(numbers.items()), "after": [row.get(name) for name in numbers],
    }  # fmt: skip


@pytest.mark.spark
def test_the_ends_of_every_type_are_published(
    spark: SparkSession, lake: Lake, source: Callable[..., Source], tmp_path: Path
) -> None:
    """Each value is the one that DTS read at the source; each row with a value that fits nowhere is in quarantine."""
    mine = source("dts_avro", tables={"shop.extremes": {"columns": {"bits": "decimal(20, 0)"}}})
    target = io.BytesIO()
    schema = fastavro.parse_schema(record_schema(born=True))
    fastavro.writer(target, schema, [dts_records.record(**record) for record in records()], codec="deflate")
    (tmp_path / "landing" / "a.avro").write_bytes(target.getvalue())
    run_all(mine)
    found = {row["id"]: row for row in _published(lake, mine, "extremes")}
    wanted = {key: {**dict.fromkeys(MYSQL), "id": key, **row} for key, (_, row) in enumerate(ROWS, 1)}
    wanted[1]["small"] = 7
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        assert {name: repr(value) for name, value in found[key].items()} == {n: repr(v) for n, v in row.items()}, key
    pg = {row["id"]: row for row in _published(lake, mine, "pg")}
    assert sorted(pg) == [1, 3]
    assert pg[1] == {
        "id": 1, "flag": True, "amount": Decimal("-12345678901234567890.123456789012345678"), "j": '{"😀": 1.10}',
        "at": datetime(2024, 3, 1, 5, 29, 59, 999999, UTC), "bin": b"\xff", "clock": "24:00:00",
        "wall": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - wall clock
    }  # fmt: skip
    (oracle,) = _published(lake, mine, "ORA")
    assert oracle == {
        "id": Decimal(1), "n": Decimal("0.10"), "d": datetime(1, 1, 1),  # noqa: DTZ001 - wall clock
        "t": datetime(2024, 1, 1, 0, 0, 0, 123456),  # noqa: DTZ001 - wall clock
        "z": datetime(2024, 7, 1, 10, 0, 0, 1, UTC), "x": 1.5,
    }  # fmt: skip
    quarantined = lake.load(("quarantine", mine.source)).scan().to_arrow().to_pylist()
    assert {row["reason"] for row in quarantined} == {"unreadable_value"}
    assert len(quarantined) == len(SET_ASIDE) + 2
    assert all(row["value"] and row["detail"] for row in quarantined)


def _published(lake: Lake, source: Source, table: str) -> list[dict[str, Any]]:
    rows = lake.load((source.source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT]).to_pylist()
    return [{name: _in_utc(value) for name, value in row.items()} for row in rows]


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo else value
