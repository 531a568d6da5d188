"""A statement whose message names the database and no table, from its bytes to the tables that it changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support import dts_records
from tidemark import formats
from tidemark.ddl.history import SchemaHistory, by_statements
from tidemark.ddl.lineages import lineages
from tidemark.events import Message, SchemaChange, TableId
from tidemark.ledger.rows import StatementRow
from tidemark.normalization.logged_statements import logged_statement


def _debezium(statement: str, database: str, **fields: Any) -> tuple[str, bytes]:
    """A statement about a table that is outside of the connector's own schema."""
    source = {
        "connector": "mysql",
        "db": database,
        "table": None,
        "file": "log.000007",
        "pos": 613,
        "snapshot": "false",
    }
    change = {"source": source, "databaseName": database, "ddl": statement, "tableChanges": []}
    return "debezium_json", json.dumps(change | fields).encode()


def _flink(statement: str, database: str) -> tuple[str, bytes]:
    _, change = _debezium(statement, database)
    history = {"source": json.loads(change)["source"], "historyRecord": change.decode()}
    return "debezium_json", json.dumps(history).encode()


def _dts(statement: str, database: str, source: str = "MySQL") -> tuple[str, bytes]:
    position = "613@7" if source == "MySQL" else "x"
    notation = {"operation": "DDL", "object": database, "source": source, "position": position, "after": statement}
    return "dts_avro", dts_records.encode(notation)


def _blob(statement: str, database: str, *, kind: str = "MySQL", **names: str) -> tuple[str, bytes]:
    op = "ERASE" if statement.startswith("DROP") else "ALTER"
    payload = {"op": op, "sequenceId": "613", "ddl": {"text": statement}, "timestamp": {"eventTime": 7}}
    source = {"dbName": database, "dbType": kind, **names}
    return "datahub_blob", json.dumps({"schema": {"source": source}, "payload": payload}).encode()


def _canal(statement: str, database: str) -> tuple[str, bytes]:
    flat = {"database": database, "table": "", "isDdl": True, "type": "ALTER", "sql": statement, "es": 7}
    return "canal_json", json.dumps(flat).encode()


WRITERS = [_debezium, _flink, _dts, _blob, _canal]


def _row(format_name: str, value: bytes) -> StatementRow:
    """Return what the ledger keeps of the statement."""
    module = formats.resolve(format_name)
    (event,) = module.decode(Message(value=value, file="f", place=1), module.Options())
    assert isinstance(event, SchemaChange)
    stated = logged_statement(event, landed_at=1)
    assert stated is not None
    return StatementRow.of(1, stated)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE visits DROP COLUMN fee",
        "ALTER TABLE visits RENAME COLUMN fee TO price",
        "ALTER TABLE visits ADD COLUMN ward INT DEFAULT 9",
        "DROP TABLE visits",
    ],
)
def test_a_statement_of_another_database_changes_no_table_of_its_name(
    write: Callable[[str, str], tuple[str, bytes]], statement: str
) -> None:
    """``visits`` of ``attic`` may not be captured at all; where both are, the statement is that of ``attic``."""
    row = _row(*write(statement, "attic"))
    assert not by_statements([row], ["clinic.visits"])
    found = by_statements([row], ["clinic.visits", "attic.visits", "clinic.bills"])
    assert list(found) == ["attic.visits"]
    assert found["attic.visits"] != SchemaHistory()
    assert not found["attic.visits"].notes


@pytest.mark.parametrize("write", WRITERS)
def test_a_statement_names_a_table_of_another_database_itself(write: Callable[[str, str], tuple[str, bytes]]) -> None:
    """The database of the message completes a name that has none, and changes no other."""
    row = _row(*write("ALTER TABLE clinic.visits DROP COLUMN fee", "attic"))
    assert list(by_statements([row], ["clinic.visits", "attic.visits"])) == ["clinic.visits"]


@pytest.mark.parametrize("write", WRITERS)
def test_a_rename_in_another_database_moves_no_rows(write: Callable[[str, str], tuple[str, bytes]]) -> None:
    """In its own database, the rows go with the table."""
    clinic, attic = (TableId(database, None, "visits") for database in ("clinic", "attic"))
    row = _row(*write("ALTER TABLE visits RENAME TO stays", "attic"))
    assert not lineages([row], {"clinic.visits": clinic}).tables
    found = lineages([row], {"clinic.visits": clinic, "attic.visits": attic}).tables
    assert set(found) == {"attic.stays", "attic.visits"}


CAPTURED = ["clinic.visits", "clinic.bills", "attic.visits", "attic.boxes"]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("EXECUTE 'ALTER TABLE visits'", ["attic.visits"]),
        ("EXECUTE 'ALTER TABLE bills'", ["clinic.bills"]),
        ("EXECUTE 'ALTER TABLE clinic.visits'", ["attic.visits", "clinic.visits"]),
        ("ALTER TABLE 'x' BY fee", ["attic.boxes", "attic.visits"]),
        ("ALTER TABLE 'clinic' BY fee", ["clinic.bills", "clinic.visits"]),
    ],
)
def test_what_is_not_understood_is_noted_at_tables_of_its_database(
    write: Callable[[str, str], tuple[str, bytes]], statement: str, tables: list[str]
) -> None:
    """Tables of the database of the message, and of those that the text names, before all others."""
    found = by_statements([_row(*write(statement, "attic"))], CAPTURED)
    assert sorted(name for name, history in found.items() if history.notes) == tables


@pytest.mark.parametrize("write", WRITERS)
def test_what_is_not_understood_is_noted_at_all_tables_where_none_is_of_its_database(
    write: Callable[[str, str], tuple[str, bytes]],
) -> None:
    """Tables may be named without their database; such a one is noted beside those of the database, too."""
    row = _row(*write("ALTER TABLE 'x' BY fee", "attic"))
    for names, noted in (
        (["sales.bills", "visits"], ["sales.bills", "visits"]),
        (["attic.boxes", "sales.bills", "visits"], ["attic.boxes", "visits"]),
    ):
        found = by_statements([row], names)
        assert sorted(name for name, history in found.items() if history.notes) == noted


SALES, PUBLIC = "erp.sales.visits", "erp.public.visits"


@pytest.mark.parametrize(
    ("message", "tables"),
    [
        (_blob("ALTER TABLE visits DROP COLUMN fee", "erp", kind="PostgreSQL", schemaName="sales"), [SALES]),
        (_blob("ALTER TABLE visits DROP COLUMN fee", "erp", kind="PostgreSQL", schemaName="old"), []),
        (_blob("ALTER TABLE visits DROP COLUMN fee", "", kind="PostgreSQL", schemaName="sales"), [SALES]),
        (_blob("ALTER TABLE public.visits DROP COLUMN fee", "erp", kind="PostgreSQL", schemaName="sales"), [PUBLIC]),
        (_debezium("ALTER TABLE visits DROP COLUMN fee", "erp", schemaName="sales"), [SALES]),
        (_debezium("ALTER TABLE visits DROP COLUMN fee", "erp", schemaName="old"), []),
    ],
)
def test_a_message_that_names_a_schema_means_the_tables_of_it(message: tuple[str, bytes], tables: list[str]) -> None:
    """A table of the same name in another schema of the database is another table."""
    assert list(by_statements([_row(*message)], [SALES, PUBLIC])) == tables


@pytest.mark.parametrize("write", [_dts, _blob])
def test_a_renamed_table_keeps_a_schema_that_its_message_does_not_name(write: Callable[..., tuple[str, bytes]]) -> None:
    """The name of the table that is renamed completes the new name."""
    statement = "ALTER TABLE visits RENAME TO stays"
    row = _row(*(_dts(statement, "erp", "PostgreSQL") if write is _dts else _blob(statement, "erp", kind="PostgreSQL")))
    found = lineages([row], {PUBLIC: TableId("erp", "public", "visits")}).tables
    assert set(found) == {PUBLIC, "erp.public.stays"}
