"""Every type that is compared, at its extremes: the text of a value is the same in the database and in the lake."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pymysql
import pytest
from sqlalchemy.engine import URL, make_url

from support import source_databases
from support.source_databases import ahead, has_come_to, published
from tidemark.events import TableId
from tidemark.lake.filters import at_least
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.reconciliation_rows import ReconciliationRow, Result
from tidemark.positions import changed, encode_position
from tidemark.reconciliation.run import reconcile
from tidemark.sources.model import Source

NAME = "shop\"; DROP TABLE x; -- \\ `'"
"""Of tables and columns: it would end any quotation."""
_WALL = datetime.fromisoformat
_HIGH = _WALL("9999-12-31T23:59:59.999999")
_LOW = _WALL("0001-01-01T00:00:00")
TEXTS = ["", "~", "|", "~2", "a|b", "a~1b", "naïve 𝄞 שלום", "trailing  ", "line\nend\ttab", "'\"`\\%s{}$1", "NULL"]


def _source(name: str, **more: Any) -> Source:
    file = {"source": name, "format": "canal_json", "landing": "/none/*", "reconcile": {"connection": "DB_OF_TEST"}}
    return Source.model_validate({**file, **more})


@pytest.fixture(scope="module")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of this module."""
    with source_databases.postgres(tmp_path_factory.mktemp("pg"), source_databases.password()) as url:
        yield url


@pytest.fixture(scope="module")
def mariadb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MariaDB of this module."""
    with source_databases.mariadb(tmp_path_factory.mktemp("maria") / "db", source_databases.password()) as url:
        yield url


def _compared(source: Source, url: str, patched: pytest.MonkeyPatch) -> dict[str, ReconciliationRow]:
    patched.setenv("DB_OF_TEST", url)
    return {row.object: row for row in reconcile(source)}


POSTGRES: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    "b": ("boolean", "boolean", [True, False], [True, False]),
    "i2": ("smallint", "int", [-32768, 32767], [-32768, 32767]),
    "i4": ("integer", "int", [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "i8": ("bigint", "long", [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "n": ("numeric(38, 0)", "decimal(38, 0)", [Decimal("9" * 38), 0], [Decimal("9" * 38), 0]),
    "s": ("numeric(38, 37)", "decimal(38, 37)", [Decimal(1).scaleb(-37), "-0.50"], [Decimal(1).scaleb(-37), "-0.50"]),
    "free": ("numeric", "decimal(20, 4)", ["1.10", "-100.0000"], ["1.1", "-100"]),
    "f4": ("real", "float", ["1.1", "-0"], [1.1, 0.0]),
    "f8": ("double precision", "double", ["4.9e-324", "NaN"], [5e-324, float("nan")]),
    "f8i": ("double precision", "double", ["-Infinity", "1.7976931348623157e308"],
            [float("-inf"), 1.7976931348623157e308]),
    "d": ("date", "date", ["0001-01-01", "9999-12-31"], [date(1, 1, 1), date(9999, 12, 31)]),
    "ts": ("timestamp", "timestamp", ["0001-01-01 00:00:00", str(_HIGH)], [_LOW, _HIGH]),
    "tf": ("timestamp", "timestamp", ["2026-01-01 00:00:00.1", "2026-01-01 10:00:00.000001"],
           [_WALL("2026-01-01T00:00:00.100000"), _WALL("2026-01-01T10:00:00.000001")]),
    "tz": ("timestamptz", "timestamptz", ["2026-03-29 03:00:00.5+02", "0001-01-01 00:00:00+00"],
           [datetime(2026, 3, 29, 1, 0, 0, 500000, tzinfo=UTC), _LOW.replace(tzinfo=UTC)]),
    "c": ("char(6)", "string", ["ab", ""], ["ab    ", ""]),
    "u": ("uuid", "string", ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"] * 2, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"] * 2),
    "y": ("bytea", "binary", [b"\x00\xff\\", b""], [b"\x00\xff\\", b""]),
    "e": ("mood", "string", ["so|so", "~"], ["so|so", "~"]),
    "z": ("integer", "int", [None, 0], [None, 0]),
}  # fmt: skip
"""Column -> type at the source, type in the lake, values there, values here."""


def test_postgres_types_are_equal_at_their_extremes(
    lake: Lake, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the extremes of every type is equal on both sides, also with hostile names and any text."""
    url = make_url(postgres_url)
    with psycopg.connect(host=url.query["host"], user="postgres", password=url.password, autocommit=True) as database:
        ident = psycopg.sql.Identifier
        database.execute("CREATE TYPE mood AS ENUM ('so|so', '~')")
        database.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(ident(NAME)))
        columns = psycopg.sql.SQL(", ").join(
            psycopg.sql.SQL("{} {}").format(ident(name), psycopg.sql.SQL(kind)) for name, (kind, *_) in POSTGRES.items()
        )
        table = psycopg.sql.SQL("{}.{}").format(ident(NAME), ident(NAME))
        create = psycopg.sql.SQL("CREATE TABLE {} (id bigint PRIMARY KEY, {} text, {})")
        database.execute(create.format(table, ident(NAME), columns))
        slots = psycopg.sql.SQL(", ").join([psycopg.sql.Placeholder()] * (len(POSTGRES) + 2))
        for number, text in enumerate([*TEXTS, None]):
            values = [each[2][number % 2] for each in POSTGRES.values()]
            insert = psycopg.sql.SQL("INSERT INTO {} VALUES ({})").format(table, slots)
            database.execute(insert, [number, text, *values])
        database.execute(
            psycopg.sql.SQL("CREATE TABLE {}.left_out (id int PRIMARY KEY, j jsonb, t time, a int[])").format(
                ident(NAME)
            )
        )
        database.execute(
            psycopg.sql.SQL("INSERT INTO {}.left_out VALUES (1, '{{}}', '10:00', '{{1}}')").format(ident(NAME))
        )
    here = [
        {"id": number, NAME: text, **{name: _cast(each[1], each[3][number % 2]) for name, each in POSTGRES.items()}}
        for number, text in enumerate([*TEXTS, None])
    ]
    kinds = {"id": "long", NAME: "string", **{name: kind for name, (_, kind, *_) in POSTGRES.items()}}
    source = _source("pg_types")
    published(lake, source.source, TableId("db", NAME, NAME), kinds, here, key=["id"])
    left = {"id": "int", "j": "string", "t": "string", "a": "string"}
    published(lake, source.source, TableId("db", NAME, "left_out"), left, [{"id": 1, "j": "x"}], key=["id"])
    has_come_to(lake, source.source, 1, ahead())
    rows = _compared(source, postgres_url, monkeypatch)
    row = rows[f"db.{NAME}.{NAME}"]
    assert (row.result, row.keys, row.left_out) == (Result.EQUAL, "[]", "{}"), row
    assert (row.source_rows, row.lake_rows, row.columns) == (len(here), len(here), len(kinds))
    assert row.verified_through == row.read_at
    # Each column matters: in one row, every value becomes the other one.
    changes = {name: each[2][1] for name, each in POSTGRES.items() if each[2][0] != each[2][1]}
    with psycopg.connect(host=url.query["host"], user="postgres", password=url.password, autocommit=True) as database:
        sets = psycopg.sql.SQL(", ").join(
            psycopg.sql.SQL("{} = {}").format(ident(name), psycopg.sql.Placeholder(name)) for name in changes
        )
        database.execute(
            psycopg.sql.SQL("UPDATE {} SET {}, {} = NULL WHERE id = 0").format(table, sets, ident(NAME)), changes
        )
    (row,) = (each for each in reconcile(source) if each.object == f"db.{NAME}.{NAME}")
    (key,) = row.differing
    assert (key.key, set(key.columns)) == ({"id": "0"}, {NAME, *changes})
    other = rows[f"db.{NAME}.left_out"]
    assert (other.result, other.columns) == (Result.EQUAL, 1)
    assert "jsonb at the source and string in the lake" in other.left_out
    assert other.left_out.count("have no text that is exact") == 3


def _cast(kind: str, value: Any) -> Any:
    return Decimal(value) if kind.startswith("decimal") else value


MYSQL: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    "b": ("tinyint(1)", "boolean", [1, 0], [True, False]),
    "bit1": ("bit(1)", "boolean", [1, 0], [True, False]),
    "i1": ("tinyint", "int", [-128, 127], [-128, 127]),
    "i8": ("bigint", "long", [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "u8": ("bigint unsigned", "decimal(20, 0)", [2**64 - 1, 0], [2**64 - 1, 0]),
    "zf": ("int(8) zerofill", "long", [42, 0], [42, 0]),
    "n": ("decimal(38, 0)", "decimal(38, 0)", [Decimal("9" * 38), 0], [Decimal("9" * 38), 0]),
    "s": ("decimal(38, 30)", "decimal(38, 30)", [Decimal(1).scaleb(-30), "-0.50"], [Decimal(1).scaleb(-30), "-0.50"]),
    "yr": ("year", "int", [1901, 2155], [1901, 2155]),
    "d": ("date", "date", ["1000-01-01", "9999-12-31"], [date(1000, 1, 1), date(9999, 12, 31)]),
    "dt": ("datetime(6)", "timestamp", ["1000-01-01 00:00:00", str(_HIGH)], [_WALL("1000-01-01T00:00:00"), _HIGH]),
    "d0": ("datetime", "timestamp", ["2026-01-01 10:00:00"] * 2, [_WALL("2026-01-01T10:00:00")] * 2),
    "ts": ("timestamp(6) null", "timestamptz", ["1970-01-01 00:00:01.000001", "2038-01-19 03:14:07.5"],
           [datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 7, 500000, tzinfo=UTC)]),
    "c": ("char(6)", "string", ["ab", ""], ["ab", ""]),
    "y": ("varbinary(9)", "binary", [b"\x00\xff\\", b""], [b"\x00\xff\\", b""]),
    "l": ("longblob", "binary", [b"\xc3\x28", None], [b"\xc3\x28", None]),
    "e": ("enum('so|so', '~')", "string", ["so|so", "~"], ["so|so", "~"]),
    "latin": ("varchar(20) character set latin1", "string", ["naïve", "ÿ"], ["naïve", "ÿ"]),
    "z": ("int", "int", [None, 0], [None, 0]),
}  # fmt: skip


def test_mariadb_types_are_equal_at_their_extremes(
    lake: Lake, mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for PostgreSQL; a double and a time of day are left out with a word."""
    name = NAME.replace("\\", "/")[:40] + " x"
    quoted = "`" + name.replace("`", "``") + "`"
    url = make_url(mariadb_url)
    texts = [*TEXTS, "a\0b", None]
    with (
        pymysql.connect(
            unix_socket=url.query["unix_socket"], user="root", password=str(url.password), charset="utf8mb4"
        ) as database,
        database.cursor() as cursor,
    ):
        cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
        cursor.execute("CREATE DATABASE maria")
        columns = ", ".join(f"`{column}` {kind}" for column, (kind, *_) in MYSQL.items())
        cursor.execute(
            f"CREATE TABLE maria.{quoted} (id bigint PRIMARY KEY, {quoted} text, {columns}, dbl double, tm time) "
            "CHARACTER SET utf8mb4"
        )
        slots = ", ".join(["%s"] * (len(MYSQL) + 4))
        for number, text in enumerate(texts):
            values = [each[2][number % 2] for each in MYSQL.values()]
            statement = f"INSERT INTO maria.{quoted.replace('%', '%%')} VALUES ({slots})"  # noqa: S608
            cursor.execute(statement, [number, text, *values, 1.5, "10:00"])
        database.commit()
    here = [
        {"id": number, name: text, **{column: _cast(each[1], each[3][number % 2]) for column, each in MYSQL.items()}}
        for number, text in enumerate(texts)
    ]
    kinds = {"id": "long", name: "string", **{column: kind for column, (_, kind, *_) in MYSQL.items()}}
    source = _source("maria_types")
    published(
        lake, source.source, TableId("maria", None, name), {**kinds, "dbl": "double", "tm": "string"}, here, key=["id"]
    )
    has_come_to(lake, source.source, 1, ahead())
    row = _compared(source, mariadb_url, monkeypatch)[f"maria.{name}"]
    assert (row.result, row.keys) == (Result.EQUAL, "[]"), row
    assert (row.source_rows, row.columns) == (len(here), len(kinds))
    assert "double at the source and double in the lake" in row.left_out
    assert "time at the source and string in the lake" in row.left_out
    assert row.place is not None
    assert row.place.startswith("mysql-bin.")
    _breaks(url, f"maria.{quoted}", name)
    broken = _compared(source, mariadb_url, monkeypatch)[f"maria.{name}"]
    found = {each.key["id"]: (each.why, set(each.columns)) for each in broken.differing}
    assert found == {"0": ("different", {name, "n", "y", "d0"}), "1": ("extra", set()), "777": ("lost", set())}
    # The place in the binary log is behind what has landed, then past it.
    ledger = Ledger(lake, source.source)
    as_debezium = _source(source.source, format="debezium_json")
    for place, expected in (((0, 4, 0), "behind"), ((broken.places[0], broken.places[1] + 1, 0), "lost")):
        newest = encode_position(changed(*place))
        span = SpanRow(batch=1, object="other", newest=newest, last=datetime.now(UTC) - timedelta(seconds=1))
        ledger.replace(SpanRow, [span], at_least("batch", 1))
        ledger.forget(ReconciliationRow)
        again = _compared(as_debezium, mariadb_url, monkeypatch)[f"maria.{name}"]
        assert {each.key["id"]: each.why for each in again.differing}["777"] == expected


def test_values_of_mariadb_that_are_longer_than_a_packet_are_compared(
    lake: Lake, mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of the server gives null where its text would be longer than a packet: no row is lost by it."""
    url = make_url(mariadb_url)
    here = [
        {"id": 0, "b": b"\xff" * 900_000, "t": "~" * 900_000},
        {"id": 4, "b": b"\xff" * 3_000_000, "t": "ÿ" * 3_000_000},
        {"id": 1, "b": b"", "t": "|" * 1001},
        {"id": 2, "b": b"\x00" * 1001, "t": "é" * 501},
        {"id": 3, "b": None, "t": None},
        {"id": 5, "b": b"", "t": "|" * 900},
    ]
    socket = str(url.query["unix_socket"])
    with (
        pymysql.connect(unix_socket=socket, user="root", password=str(url.password), charset="utf8mb4") as database,
        database.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE packets")
        columns = "id bigint PRIMARY KEY, b longblob, t longtext CHARACTER SET latin1"
        cursor.execute(f"CREATE TABLE packets.big ({columns})")
        for row in here:
            cursor.execute("INSERT INTO packets.big VALUES (%s, %s, %s)", list(row.values()))
        database.commit()
        cursor.execute("SET GLOBAL max_allowed_packet = 1048576")
        source = _source("packets")
        kinds = {"id": "long", "b": "binary", "t": "string"}
        published(lake, "packets", TableId("packets", None, "big"), kinds, here, key=["id"])
        has_come_to(lake, "packets", 1, ahead())
        row = _compared(source, mariadb_url, monkeypatch)["packets.big"]
        assert (row.result, row.keys) == (Result.EQUAL, "[]"), row
        cursor.execute("UPDATE packets.big SET b = CONCAT(LEFT(b, 500000), 'x', RIGHT(b, 399999)) WHERE id = 0")
        cursor.execute("UPDATE packets.big SET t = CONCAT(LEFT(t, 500), 'x', RIGHT(t, 500)) WHERE id = 1")
        cursor.execute("UPDATE packets.big SET t = NULL WHERE id = 2")
        cursor.execute("UPDATE packets.big SET t = REPEAT('~', 1000000) WHERE id = 3")
        database.commit()
        row = _compared(source, mariadb_url, monkeypatch)["packets.big"]
        found = {each.key["id"]: (each.why, each.columns) for each in row.differing}
        assert found == {
            "0": ("different", ["b"]),
            "1": ("different", ["t"]),
            "2": ("different", ["t"]),
            "3": ("different", ["t"]),
        }
        cursor.execute("SET GLOBAL max_allowed_packet = 1024")
        row = _compared(source, mariadb_url, monkeypatch)["packets.big"]
        assert row.result == Result.NOT_COMPARED
        assert "raise its `max_allowed_packet`" in str(row.reason)
        cursor.execute("SET GLOBAL max_allowed_packet = 16777216")


def test_a_key_with_a_null_is_counted_and_not_listed(
    lake: Lake, mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A declared key need not be one at the source. Nobody can ask for such a row, and no run ends because of it."""
    url = make_url(mariadb_url)
    with (
        pymysql.connect(unix_socket=url.query["unix_socket"], user="root", password=str(url.password)) as database,
        database.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE nulls")
        cursor.execute("CREATE TABLE nulls.t (b binary(2), n int, v int)")
        cursor.execute("INSERT INTO nulls.t VALUES (NULL, 1, 1), (_binary 'ab', NULL, 1), (_binary 'ab', 2, 1)")
        database.commit()
    kinds = {"b": "binary", "n": "int", "v": "int"}
    published(lake, "nulls", TableId("nulls", None, "t"), kinds, [], key=["b", "n"])
    has_come_to(lake, "nulls", 1, ahead())
    for _ in range(2):
        row = _compared(_source("nulls"), mariadb_url, monkeypatch)["nulls.t"]
        assert (row.result, row.lost) == (Result.DIFFERS, 3)
        assert [each.key for each in row.differing] == [{"b": "YWI=", "n": "2"}]


def _breaks(url: URL, table: str, column: str) -> None:
    """Change a row of MariaDB, take one, add one."""
    socket = str(url.query["unix_socket"])
    with (
        pymysql.connect(unix_socket=socket, user="root", password=str(url.password), charset="utf8mb4") as database,
        database.cursor() as cursor,
    ):
        quoted = "`" + column.replace("`", "``") + "`"
        cursor.execute(f"UPDATE {table} SET {quoted} = 'x', n = 1, y = 'z', d0 = '2000-01-01' WHERE id = 0")  # noqa: S608
        cursor.execute(f"DELETE FROM {table} WHERE id = 1")  # noqa: S608
        cursor.execute(f"INSERT INTO {table} (id) VALUES (777)")  # noqa: S608
        database.commit()
