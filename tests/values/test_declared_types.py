"""Types that the source file gives, and types that change: values stay what their messages say, or are refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from support.running import run_all
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.sql import query
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

MakeSource = Callable[..., Source]


def decimal(number: str, scale: int, precision: int = 8) -> tuple[dict[str, Any], str]:
    """A field of Connect's Decimal and a value of it."""
    unscaled = int(Decimal(number).scaleb(scale))
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    field = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    return field, base64.b64encode(unscaled.to_bytes(8, "big", signed=True)).decode()


def logical(name: str, kind: str, value: object) -> tuple[dict[str, Any], object]:
    """A field of one of Debezium's logical types and a value of it."""
    return {"type": kind, "name": f"io.debezium.{name}"}, value


def insert(table: str, at: int, **columns: tuple[dict[str, Any], object]) -> bytes:
    """A row with the schema of its columns."""
    columns = {"id": ({"type": "int32"}, at), **columns}
    fields = [{**field, "field": name} for name, (field, _) in columns.items()]
    rows = [{"type": "struct", "fields": fields, "field": side} for side in ("before", "after")]
    origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": table, "ts_ms": 1767225600000}
    origin |= {"file": "mysql-bin.000003", "pos": at, "row": 0}
    after = {name: value for name, (_, value) in columns.items()}
    payload = {"op": "c", "before": None, "after": after, "source": origin, "ts_ms": 1767225600000}
    return json.dumps({"schema": {"type": "struct", "fields": rows}, "payload": payload}).encode()


def _run(source: Source, landing: Path, name: str, *messages: bytes) -> list[str]:
    """Land messages and run all stages; what was held back."""
    (landing / "landing" / name).write_bytes(b"\n".join(messages))
    return [problem for report in run_all(source).values() for problem in report.problems]


def _rows(lake: Lake, source: Source, table: str, columns: str) -> list[tuple[Any, ...]]:
    answer = query(lake, f"SELECT {columns} FROM {source.source}.{table} ORDER BY id")  # noqa: S608
    return [tuple(row.values()) for row in answer.to_pylist()]


POINTS: dict[str, tuple[str, object]] = {
    "as_decimal": ("decimal(12, 4)", Decimal("12.3400")),
    "as_string": ("string", "12.34"),
    "as_double": ("double", 12.34),
}
"""A column of the table ``points``, its type in the source file, and what is published of a price."""

NOTES = ["1.10", "12345678901234567890.123", "1e3", '"1.10"', '"1e3"', "-0.50", "7", '"x"', "true"]


class Declared(NamedTuple):
    """A run over tables whose columns have types in the source file."""

    source: Source
    problems: list[str]
    logs: Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def declared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Declared:
    """Prices, bytes, times and texts, some of which do not fit; and a misspelt name of a column."""
    place = tmp_path_factory.mktemp("declared")
    (place / "landing").mkdir()
    columns: dict[str, dict[str, str]] = {"points": {name: kind for name, (kind, _) in POINTS.items()}}
    columns |= {"codes": {"code": "string"}, "notes": {"id": "int", "note": "string"}}
    columns |= {"misspelt": {"prise": "double", "id": "long"}}
    tables = {f"shop.{name}": {"key": ["id"], "columns": types} for name, types in columns.items()}
    tables |= {"shop.events": {"key": ["placed"]}, "shop.days": {"key": ["id"]}}
    landing = str(place / "landing" / "*")
    made = Source.model_validate(
        {"source": "declared", "format": "debezium_json", "landing": landing, "tables": tables}
    )
    price = decimal("12.34", 2)
    finer = logical("time.NanoTimestamp", "int64", 1648811502929775100)
    long = ({"type": "double"}, "x" * 100)
    messages = [insert("points", 1, **dict.fromkeys(POINTS, price)), insert("misspelt", 1, price=price)]
    codes = [({"type": "bytes"}, base64.b64encode(code).decode()) for code in ("ä".encode(), b"\xff")]
    messages += [insert("codes", number, code=code) for number, code in enumerate(codes, 1)]
    messages += [insert("events", 1, placed=finer), insert("days", 2, placed=finer), insert("days", 3, ratio=long)]
    origin = '{"connector":"mysql","snapshot":"false","db":"shop","table":"notes","ts_ms":1,"file":"b.1","row":0,"pos":'
    messages += [
        f'{{"op":"c","before":null,"after":{{"id":{at},"note":{note}}},"source":{origin}{at}}}}}'.encode()
        for at, note in enumerate(NOTES, 1)
    ]
    with capture_logs() as logs:
        problems = _run(made, place, "a.json", *messages)
    return Declared(made, problems, logs)


def _set_aside(lake: Lake, *tables: str) -> list[str]:
    """Why rows of these tables were set aside."""
    rows = lake.load(("quarantine", "declared")).scan(selected_fields=("object", "reason", "detail")).to_arrow()
    found = [row for row in rows.to_pylist() if row["object"] in {f"shop.{table}" for table in tables}]
    assert {row["reason"] for row in found} == {"unreadable_value"}
    return sorted(row["detail"] for row in found)


def test_a_declared_type_moves_no_point(declared: Declared, lake: Lake) -> None:
    """The scale is the message's, not the one in the source file."""
    assert not [problem for problem in declared.problems if "points" in problem]
    wanted = [(1, *(value for _, value in POINTS.values()))]
    assert _rows(lake, declared.source, "points", f"id, {', '.join(POINTS)}") == wanted


def test_bytes_that_are_no_text_are_no_string(declared: Declared, lake: Lake) -> None:
    """A column of bytes may be published as text where it holds some; other bytes are set aside."""
    assert _rows(lake, declared.source, "codes", "id, code") == [(1, "ä")]
    (detail,) = _set_aside(lake, "codes")
    assert detail.startswith("column 'code': \"/w==\" is no string written as base64: ")
    assert detail.endswith("; `columns: {code: binary}` keeps its bytes")


def test_what_is_set_aside_is_described(declared: Declared, lake: Lake) -> None:
    """The value, its column, its encoding and type, and the type that would keep it; of a key and of other columns."""
    time = "1648811502929775100 is no timestamp written as epoch_ns: finer than a microsecond"
    text = f'"{"x" * 79} is no double written as plain: not a number'
    of_time, of_text = (
        f"column '{name}': {reason}; `columns: {{{name}: string}}` keeps it as text"
        for name, reason in (("placed", time), ("ratio", text))
    )
    assert _set_aside(lake, "events") == [of_time]
    assert _set_aside(lake, "days") == [of_time, of_text]


def test_a_text_of_digits_and_a_number_are_what_they_were(declared: Declared, lake: Lake) -> None:
    """Numbers in a column that is published as text keep their digits, as many as there are."""
    assert not [problem for problem in declared.problems if "notes" in problem]
    rows = _rows(lake, declared.source, "notes", "id, note")
    assert [note for _, note in rows] == [note.strip('"') for note in NOTES]


def test_a_type_for_a_column_that_is_not_there_is_told(declared: Declared) -> None:
    """A misspelt name in the source file gives no column its type, and does not go unseen."""
    assert not [problem for problem in declared.problems if "misspelt" in problem]
    (logged,) = [entry for entry in declared.logs if entry["event"] == "column_not_found"]
    assert (logged["object"], logged["column"]) == ("shop.misspelt", "prise")
    assert logged["hint"].startswith("Did you mean 'price'?")


BARE = """{"op":"c","before":null,"after":{"id":1,"born":-1,"placed":1767225600123,"paid":1767225600123456,
"total":"BNI=","code":"/w==","nap":3661000000,"told":"2026-01-01T00:00:00"},"source":{"connector":"mysql",
"snapshot":"false","db":"shop","table":"visits","ts_ms":1767225600000,"file":"b.1","row":0,"pos":4}}"""


def test_the_source_file_tells_how_values_are_written_where_no_message_does(
    source: MakeSource, lake: Lake, tmp_path: Path
) -> None:
    """Without schemas times are counts, and decimals Base64 of an unscaled number. A text of a schema may be hex."""
    columns = {"id": "long", "born": "date", "placed": "timestamp", "paid": "timestamp", "total": "decimal(8, 2)"}
    columns |= {"code": "binary", "nap": "string", "told": "timestamp"}
    encodings = {"born": "epoch_days", "placed": "epoch_ms", "paid": "epoch_us", "total": "unscaled_base64"}
    encodings |= {"code": "base64", "nap": "us_of_day"}
    made = source("debezium_json", tables={"shop.visits": {"key": ["id"], "columns": columns}})
    message = BARE.replace("\n", "").encode()
    _run(made, tmp_path, "a.json", message)
    assert _rows(lake, made, "visits", "id") == []  # set aside: nothing declares that they are counts
    codes = {"key": ["id"], "columns": {"code": "binary"}, "encodings": {"code": "hex"}}
    tables = {"shop.codes": codes, "shop.*": {"key": ["id"], "columns": columns, "encodings": encodings}}
    changed = Source.model_validate({**made.model_dump(exclude={"tables"}, by_alias=True), "tables": tables})
    assert not run_stage("normalize", changed, None, None, reprocess=True).problems
    second = message.replace(b'"id":1', b'"id":2').replace(b'"pos":4', b'"pos":5')
    assert not _run(changed, tmp_path, "b.json", second, insert("codes", 1, code=({"type": "string"}, "00ff7f10")))
    assert _rows(lake, made, "codes", "id, code") == [(1, b"\x00\xff\x7f\x10")]
    midnight = datetime(2026, 1, 1)  # noqa: DTZ001  a wall clock
    times = (date(1969, 12, 31), midnight.replace(microsecond=123000), midnight.replace(microsecond=123456))
    row = (*times, Decimal("12.34"), b"\xff", "01:01:01", midnight)
    assert _rows(lake, made, "visits", "id, born, placed, paid, total, code, nap, told") == [(1, *row), (2, *row)]
    cells = explain(lake, f"{made.source}.visits", ["id=1"]).chapters[0].cells
    assert (cells["placed"].new, cells["total"].new) == ("2026-01-01T00:00:00.123000", "12.34")


def unscaled(number: int) -> str:
    """Write an integer as Connect does."""
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


class Changing(NamedTuple):
    """Three runs over tables whose columns change, and what the source file says of them."""

    source: Source
    problems: list[list[str]]
    """By run, what was held back."""
    first_tables: list[str]
    """What is published after the first run."""

    def of(self, table: str) -> list[list[str]]:
        """What was held back of one table, by run."""
        return [[problem for problem in problems if f"shop.{table}" in problem] for problems in self.problems]


NUMBER = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
PLAN = {
    "budget": (decimal("0", -2, 20)[0], unscaled(1234)),
    "wide": (decimal("0", 30, 65)[0], unscaled(10**65 - 1)),
    "amount": (NUMBER, {"scale": 0, "value": unscaled(2**256 - 1)}),
    "narrow": (NUMBER, {"scale": 1, "value": unscaled(15)}),
    "made": logical("time.NanoTimestamp", "int64", 1648811502929775100),
    "opens": logical("time.NanoTime", "int64", 40302929775100),
}


@pytest.fixture(scope="module")
def changing(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Changing:
    """A type that no value has and then one that they have, a finer scale, a reserved name, a type that is gone."""
    place = tmp_path_factory.mktemp("changing")
    (place / "landing").mkdir()
    moment = logical("time.Timestamp", "int64", 1767225600123)
    further = {"price": decimal("56.78", 2), "_deleted": ({"type": "int32"}, 0)}
    # A column that was published as a decimal stays one, also when the source file names no type any more.
    fine = {**PLAN, "budget": (PLAN["budget"][0], unscaled(-99)), "made": (PLAN["made"][0], None)}
    runs: list[tuple[dict[str, Any], list[bytes]]] = [
        (
            {"b": {"placed": "long"}, "plans": {"made": "string", "narrow": "decimal(38, 18)"}},
            [
                insert("prices", 1, price=decimal("12.34", 2)),
                insert("a", 1, placed=moment),
                insert("b", 2, placed=moment),
                insert("marked", 1, price=decimal("12.34", 2)),
                insert("plans", 1, **PLAN),
            ],
        ),
        (
            {"b": {"placed": "string"}, "plans": {"made": "string"}},
            [
                insert("prices", 2, price=decimal("0.1234", 4)),
                insert("prices", 3, price=decimal("56.78", 2)),
                insert("a", 3, placed=moment),
                insert("marked", 2, **further),
                insert("plans", 2, **fine),
            ],
        ),
        ({"b": {"placed": "string"}, "plans": {"made": "string"}}, [insert("marked", 3, **further)]),
    ]
    problems: list[list[str]] = []
    first_tables: list[str] = []
    for number, (columns, messages) in enumerate(runs):
        named = {f"shop.{name}": {"columns": types} for name, types in columns.items()}
        fields = {"source": "changing", "format": "debezium_json", "landing": str(place / "landing" / "*")}
        fields |= {"schema": "ignore"} if number == 2 else {}
        made = Source.model_validate({**fields, "tables": {"shop.*": {"key": ["id"]}, **named}})
        problems.append(_run(made, place, f"{number}.json", *messages))
        first_tables = first_tables or lake.tables("changing")
    return Changing(made, problems, first_tables)


def test_a_decimal_whose_scale_changes_keeps_its_values(changing: Changing, lake: Lake) -> None:
    """The bytes of a Decimal mean what the schema beside them says, whatever the column has become since."""
    assert changing.of("prices") == [[], [], []]
    wanted = [(1, Decimal("12.3400")), (2, Decimal("0.1234")), (3, Decimal("56.7800"))]
    assert _rows(lake, changing.source, "prices", "id, price") == wanted
    statement = 'SELECT after.id, after.price FROM changing."prices__changes" ORDER BY 1'
    assert [tuple(row.values()) for row in query(lake, statement).to_pylist()] == wanted
    life = explain(lake, "changing.prices", ["id=1"])
    assert Decimal(str(life.chapters[0].cells["price"].new)) == Decimal("12.34")


def test_a_type_that_holds_no_value_of_a_column_stops_its_table(changing: Changing, lake: Lake) -> None:
    """The reason names the column and the types that do; other tables go on, and the right type publishes all."""
    first, *others = changing.of("b")
    assert first
    assert first == changing.problems[0]
    assert all("shop.b: column 'placed' comes as epoch_ms, which no long holds" in problem for problem in first)
    assert all(problem.endswith("date, timestamp, timestamptz, string") for problem in first)
    assert others == [[], []]
    assert changing.first_tables == ["a", "marked", "plans", "prices"]
    assert _rows(lake, changing.source, "b", "id, placed") == [(2, "2026-01-01T00:00:00.123000")]


def test_a_new_column_with_a_reserved_name_can_be_left_out(changing: Changing, lake: Lake) -> None:
    """It stops its table, and the reason names the way on."""
    first, second, third = changing.of("marked")
    assert second
    assert all("'_deleted'" in problem and "`schema: ignore`" in problem for problem in second)
    assert second == changing.problems[1]
    assert (first, third) == ([], [])
    assert [number for number, _ in _rows(lake, changing.source, "marked", "id, price")] == [1, 2, 3]


def test_numbers_of_any_size_and_times_of_any_digits_lose_no_row(changing: Changing, lake: Lake) -> None:
    """Negative scales, more digits than Iceberg has, numbers without a scale, seven digits of a second."""
    assert changing.of("plans") == [[], [], []]
    wide, wei = "9" * 35 + "." + "9" * 30, str(2**256 - 1)
    made_at, opens = "2022-04-01T11:11:42.9297751", "11:11:42.9297751"
    assert _rows(lake, changing.source, "plans", "id, budget, wide, amount, narrow, made, opens") == [
        (1, Decimal(123400), wide, wei, Decimal("1.5"), made_at, opens),
        (2, Decimal(-9900), wide, wei, Decimal("1.5"), None, opens),
    ]
