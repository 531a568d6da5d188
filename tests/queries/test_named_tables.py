"""Tables are found by what people call them, and an unknown name gets a suggestion."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tidemark.cli.app import app
from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.queries import named_tables, sql
from tidemark.text import nearest

RUNNER = CliRunner()
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with two sources that both have customers, and a table of the ledger."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_HOME", str(tmp_path_factory.mktemp("lake")))
        lake = Lake.open()
    for namespace, name in (
        ("erp", "orders"),
        ("erp", "customers"),
        ("erp", "orders__history"),
        ("crm", "customers"),
        ("ledger", "cuts"),
    ):
        lake.ensure(Identifier(namespace, name), ROWS.schema, {}).append(ROWS)
    return lake


def test_tables_are_listed_without_those_in_which_stages_meet(shop: Lake) -> None:
    """SHOW TABLES, in any case and with a semicolon; names as queries take them."""
    for statement in ("SHOW TABLES", "show tables;"):
        answer = sql.query(shop, statement)
        assert answer.column_names == ["table"]
        assert answer["table"].to_pylist() == ["crm.customers", "erp.customers", "erp.orders", "erp.orders__history"]


def test_a_bare_name_is_found_where_only_one_source_has_it(shop: Lake) -> None:
    """Alone, beside its full name, more than once, and beside a table of the query that has another's name."""
    for statement, rows in {
        "SELECT count(*) AS n FROM orders": 2,
        "SELECT count(*) AS n FROM orders a JOIN erp.orders b USING (id)": 2,
        "SELECT count(*) AS n FROM orders a, orders b": 4,
        "WITH customers AS (FROM orders LIMIT 1) SELECT count(*) AS n FROM customers": 1,
        "SELECT count(*) AS n FROM ledger.cuts": 2,
    }.items():
        assert sql.query(shop, statement)["n"].to_pylist() == [rows], statement
    with pytest.raises(UnknownNameError, match=r"'customers' is crm.customers and erp.customers; name one of them"):
        sql.query(shop, "SELECT * FROM customers")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ordres", "Did you mean 'erp.orders'?"),
        ("erp.ordres", "Did you mean 'erp.orders'?"),
        ("shop.orders", "Did you mean 'erp.orders'?"),
        ("orders__histroy", "Did you mean 'erp.orders__history'?"),
        ("zebra", "SHOW TABLES"),
        ("ordres__changes", "Did you mean 'erp.orders'?"),
    ],
)
def test_an_unknown_name_gets_the_nearest_with_and_without_its_namespace(shop: Lake, name: str, wanted: str) -> None:
    """In a query, and wherever else a table is named."""
    with pytest.raises(UnknownNameError) as refused:
        sql.query(shop, f"FROM {name}")
    assert wanted in str(refused.value)
    with pytest.raises(UnknownNameError):
        named_tables.find(shop, name)


def test_the_nearest_name_is_near_as_a_whole_first() -> None:
    """The last part decides only where no whole name is near; a name that is like none has no hint."""
    assert nearest("erp.orders2", ["erp.orders", "crm.orders"]) == " Did you mean 'erp.orders'?"
    assert nearest("ordres", ["a.b.orders", "other"]) == " Did you mean 'a.b.orders'?"
    assert nearest("zebra", ["a.orders"]) == ""


def test_a_lake_without_tables_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a suggestion."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    with pytest.raises(UnknownNameError, match="nothing is published yet"):
        named_tables.find(Lake.open(), "orders")


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT a b c FROM orders", ">>c<< FROM orders"),
        ("SELECT FROM WHERE x", "Expected table name but got 'WHERE'"),
        ("SELECT 'abc", "not a query"),
        ("SELECT nothing FROM orders", "nothing"),
        ("SHOW DATABASES", "only queries"),
        ("SELEC * FROM orders", "something is missing"),
    ],
)
def test_errors_of_a_query_are_plain_text(shop: Lake, statement: str, wanted: str) -> None:
    """No sequence of a terminal and no object of the parser is in them."""
    with pytest.raises(ConfigurationError) as refused:
        sql.query(shop, statement)
    assert wanted in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert "<Token" not in str(refused.value)
    assert "sqlglot" not in str(refused.value)


def test_a_pivot_reads_its_table_twice(shop: Lake) -> None:
    """First for the names of its columns, though the query names the table once."""
    pivot = "PIVOT orders ON name USING count(*) GROUP BY id"
    for statement in (f"FROM ({pivot})", pivot):
        rows = sorted(sql.query(shop, statement).to_pylist(), key=lambda row: row["id"])
        assert rows == [{"id": 1, "a": 1, "b": 0}, {"id": 2, "a": 0, "b": 1}]


def test_columns_of_one_name_get_names_apart(shop: Lake) -> None:
    """An object of JSON has one value for each name; a name that the query gives is not taken."""
    answer = sql.query(shop, "SELECT id AS a, name AS a, id AS a_1, 7 AS a FROM orders ORDER BY id LIMIT 1")
    assert answer.column_names == ["a", "a_2", "a_1", "a_3"]
    assert [*sql.as_json_lines(answer)] == [b'{"a":1,"a_2":"a","a_1":1,"a_3":7}\n']


def test_rows_that_are_too_wide_are_printed_as_blocks(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves on a narrow terminal, always with ``--format vertical``, and never in a file."""
    monkeypatch.setenv("TIDEMARK_HOME", shop.properties["warehouse"].removeprefix("file://").removesuffix("/warehouse"))
    query = "SELECT id, repeat('wide ', 30) AS note FROM erp.orders ORDER BY id LIMIT 1"
    for width, arguments, blocks in ((80, [], True), (200, [], False), (200, ["--format", "vertical"], True)):
        monkeypatch.setattr("tidemark.cli.printing.width", lambda width=width: width)
        lines = RUNNER.invoke(app, ["sql", query, *arguments]).stdout.splitlines()
        assert (lines[0] == "-- 1 --") is blocks
        assert any("wide " * 29 + "wide" in line for line in lines)
