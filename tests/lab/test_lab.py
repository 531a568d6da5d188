"""What of the lab needs neither databases nor Spark: it must see every difference, and know its own tables."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.comparing import Truth, compare, text

WALL = datetime.fromisoformat
LAB = Path(__file__).parents[2] / "lab"


@pytest.fixture(scope="module", autouse=True)
def _lab() -> Iterator[None]:
    """Let the modules of the lab be found."""
    sys.path.insert(0, str(LAB))
    yield
    sys.path.remove(str(LAB))


@pytest.mark.parametrize(
    ("kind", "of_database", "published"),
    [
        ("number", "1.10", Decimal("1.1")), ("number", "$1,234.50", "1234.5"), ("number", "NaN", "NAN"),
        ("float4", "1.1", 1.100000023841858), ("float8", "1e+300", 1e300), ("boolean", "t", True),
        ("boolean", "0", False),
        ("bytes", "00ff", b"\x00\xff"), ("bits", "101", b"\x05"), ("bits", "1", True),
        ("time", "2024-02-29 10:11:12.12", WALL("2024-02-29T10:11:12.120")),
        ("time", "2024-02-29 10:11:12+00", WALL("2024-02-29T10:11:12+00:00")),
        ("time", "10000-01-01 00:00:00", "+10000-01-01T00:00:00Z"),
        ("time", "4000-01-01 00:00:00 BC", "-3999-01-01T00:00:00"),
        ("date", "2024-02-29", date(2024, 2, 29)), ("json", '{"a": 1.10, "b": [null]}', '{"b":[null],"a":1.1}'),
        ("padded", "ab", "ab   "), ("text", "ü", "ü"), ("point", "(1.5,-2)", '{"x":1.5,"y":-2.0,"wkb":"","srid":null}'),
    ],
)  # fmt: skip
def test_forms_of_one_value_are_equal(kind: str, of_database: str, published: Any) -> None:
    """A database and a lake write the same value in two ways."""
    assert text(kind, of_database) == text(kind, published)


@pytest.mark.parametrize(
    ("kind", "of_database", "published"),
    [
        ("number", "1.10", Decimal("1.11")), ("number", "18446744073709551615", -1), ("number", "1", None),
        ("number", "1", "one"),
        ("float4", "1.1", 1.2), ("bytes", "00ff", b"\x00"), ("bits", "101", b"\x04"), ("text", "", None),
        ("text", "a", "a "),
        ("time", "2024-02-29 10:11:12.123456", WALL("2024-02-29T10:11:12.123")), ("date", "0000-00-00", None),
        ("json", '{"a": 12345678901234567890}', '{"a": 12345678901234567000}'), ("json", '{"a": 1}', '{"a": "1"}'),
    ],
)  # fmt: skip
def test_other_values_differ(kind: str, of_database: str, published: Any) -> None:
    """No form hides a wrong value."""
    assert text(kind, of_database) != text(kind, published)


def test_every_difference_of_rows_is_seen() -> None:
    """A row too few, one too many, a key twice, a wrong cell, a column or a table that is not there."""
    truth = Truth("t", {"id": "number", "a": "text"}, ["id"], [{"id": "1", "a": "x"}, {"id": "2", "a": "y"}])
    equal = [{"id": 2, "a": "y"}, {"id": 1, "a": "x"}]
    assert not compare(truth, equal)
    wrong = compare(truth, [{"id": 1, "a": "z"}, {"id": 3, "a": "y"}])
    assert (wrong.missing, wrong.extra, list(wrong.cells)) == (["2"], ["3"], ["a"])
    assert wrong.without(["a"])
    assert not compare(truth, [{"id": 2, "a": "z"}, equal[1]]).without(["a"])
    for found in (None, [], [*equal, equal[0]], [{"id": 1}, {"id": 2, "a": "y"}]):
        assert compare(truth, found)
    bag = Truth("t", {"a": "text"}, [], [{"a": "x"}, {"a": "x"}])
    assert not compare(bag, [{"a": "x"}, {"a": "x"}])
    assert compare(bag, [{"a": "x"}])


def test_a_delivery_leaves_no_record_out() -> None:
    """Each has all records, and the shuffled one some of them twice, in three runs."""
    from deliveries import DELIVERIES
    from producers import Record

    chance = random.Random(1)  # noqa: S311 - a test
    records = [Record("t", 0, offset, None, str(offset)) for offset in range(50)]
    for deliver in DELIVERIES.values():
        dumps = deliver(records, chance)
        assert {record for dump in dumps for record in dump} == set(records)
    assert Counter(map(len, DELIVERIES["cut"](records, chance))).total() == 3
    assert sum(map(len, DELIVERIES["shuffled"](records, chance))) == 55


def test_tables_alone_come_with_the_begin_and_the_end_of_their_transactions() -> None:
    """In PostgreSQL the ids of one transaction differ behind its number; of MySQL the whole text is the id."""
    from producers import Record
    from recording import of_tables

    def sent(number: int, **payload: Any) -> Record:
        return Record("t", 0, number, None, json.dumps(payload))

    def of_transaction(table: str, *ids: str) -> list[Record]:
        begin, row, end = ids
        block = {"source": {"table": table}, "op": "c", "transaction": {"id": row}}
        return [sent(1, status="BEGIN", id=begin), sent(2, **block), sent(3, status="END", id=end)]

    kept = [*of_transaction("a", "8:10", "8:11", "8:19"), *of_transaction("a", "uuid:1", "uuid:1", "uuid:1")]
    other = [*of_transaction("b", "9:20", "9:20", "9:29"), *of_transaction("b", "uuid:2", "uuid:2", "uuid:2")]
    assert list(of_tables([*other, *kept], ["a"])) == kept


def test_tables_alone_come_with_what_concerns_them_too() -> None:
    """Heartbeats, a statement that renames several tables, and tombstones, whose table the topic alone names."""
    from producers import Record
    from recording import of_tables

    def sent(topic: str, **payload: Any) -> Record:
        return Record(topic, 0, 0, None, json.dumps(payload) if payload else None)

    block = {"id": "7:70"}
    others = [sent("p.lab.b", source={"table": "b"}, transaction=block), sent("p.transaction", status="END", id="7:79"),
              sent("p.message", source={"table": ""}, op="m", transaction=block), sent("p.lab.b"),
              sent("p.lab.b", schema={}, payload=None)]  # fmt: skip
    kept = [sent("heartbeat.p", ts_ms=1), sent("p", source={"table": "b,a c"}, ddl="RENAME"), sent("p.lab.a_c"),
            sent("p.lab.a_c", source={"table": "a c"}), sent("p.message", source={"table": ""}, op="m"),
            sent("p.lab.a_c", schema={}, payload=None)]  # fmt: skip
    assert list(of_tables([*others, *kept], ["a c"])) == kept


def test_the_deliveries_of_a_setting_publish_each_table_once() -> None:
    """Tables that belong together are in one delivery, and over the settings each delivery has each table."""
    from matrix import ROUNDS
    from shares import share
    from workloads import workload

    tables = [*"defghijklm", "hot", "copied", "as_selected", "new_name", "numbers", "times"]
    mysql = next(each for each in ROUNDS if each.name == "mysql")
    seen: list[set[str]] = [set(), set(), set()]
    for setting in mysql.connectors:
        parts = [share(mysql, setting, number, 3, tables) for number in range(3)]
        captured = [name for name in tables if not setting.of_values or name in workload("mysql").of_values]
        if "table" in setting.options:
            assert parts == [["key_moves"]] * 3
        elif not setting.of_values:
            assert sorted(name for part in parts for name in part) == sorted([*captured, "old_name"])
            assert all(("hot" in part) == ("copied" in part) == ("as_selected" in part) for part in parts)
            seen = [found | set(part) for found, part in zip(seen, parts, strict=True)]
        else:
            assert all(parts)
            assert {name for part in parts for name in part} == {"numbers", "times"}
    assert seen == [{*tables, "old_name"}] * 3


def test_the_table_of_the_document_has_every_setting() -> None:
    """A setting that the matrix gets stands in it, with what came of it."""
    from overview import rows

    document = (LAB.parent / "docs" / "lab.md").read_text(encoding="utf-8")
    for row in rows([]):
        assert f"\n{row[: row.index(' | -')]} | " in document


def test_of_two_outcomes_the_later_one_counts() -> None:
    """What is known to differ stands beside what is equal, and is named."""
    from overview import rows

    lines = ["mysql\tdefault\tcut\ta\tDIFFERS", "    a\tb\tc\td\te", "mysql\tdefault\tcut\ta\tequal",
             "mysql\tdefault\tcut\tb\tknown", "    why", "mysql\tdefault\tshuffled\tb\tDIFFERS"]  # fmt: skip
    (row,) = (row for row in rows(lines) if row.startswith("| mysql | default |"))
    assert row == "| mysql | default | - | 1 + 1 | 0, **1 differ** | b |"


def test_a_connector_that_recovers_reads_tables_anew_and_no_rows(tmp_path: Path) -> None:
    """Its history of statements is gone, its places in the log are not, and the next start is configured to recover."""
    from databases import Database
    from debezium import Debezium
    from producers import Setting

    folder = tmp_path / "tool"
    tool = Debezium(Database("mysql", 3306, ""), [Setting("default", {"snapshot.mode": "initial"})], folder, ())
    for name in ("default.history", "default.offsets"):
        (folder / name).write_text("", encoding="utf-8")
    tool.recover()
    lines = (folder / "default.properties").read_text(encoding="utf-8").splitlines()
    assert dict(line.split("=", 1) for line in lines)["snapshot.mode"] == "recovery"
    assert {file.name for file in folder.iterdir()} == {"default.properties", "default.offsets"}


def test_what_is_named_exists() -> None:
    """Tables of reasons, source files and groups are tables of a workload, and reasons name rounds and settings."""
    import re

    from matrix import ROUNDS
    from reasons import known
    from workloads import workload

    made = {each: " ".join([*workload(each).tables, *workload(each).later, ""]) for each in ("postgresql", "mysql")}
    for name, statements in made.items():
        work = workload(name)
        assert work.loaded
        assert work.changes
        assert work.later
        for table in {*work.said, *work.of_values, *(table for kind in work.binary.values() for table in kind)}:
            assert f"CREATE TABLE {table} " in statements
    for reason in known():
        of = [
            (each, setting)
            for each in ROUNDS
            for setting in each.connectors
            if re.fullmatch(reason.rounds, each.name) and re.fullmatch(reason.settings, setting.name)
        ]
        where = {"postgresql" if each.database == "postgresql" else "mysql" for each, _ in of}
        table = re.compile(f"(CREATE TABLE|RENAME TABLE [a-z_]+ TO) `?({reason.table})`? ")
        assert any(table.search(made[name]) for name in where), reason
