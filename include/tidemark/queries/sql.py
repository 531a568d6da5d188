"""``tidemark sql``: SQL over the published tables. PyIceberg reads the tables, and DuckDB answers the query.

Spark starts only for ``<table>__changes``, because compact's Spark expressions read the typed images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.queries.as_of import AsOf, snapshots
from tidemark.values import iso8601

CHANGES = "__changes"

NOW = AsOf()
"""Tables as they are."""


def query(lake: Lake, sql: str, as_of: AsOf = NOW) -> pa.Table:
    """Return the answer to a query; the query names tables as ``source.table``.

    Args:
        lake: the lake.
        sql: the query.
        as_of: the cuts or the time at which all tables of the query are read.

    Raises:
        ConfigurationError: the text is no query, or names a table that is not there.
    """
    tables = _tables(sql)
    past = snapshots(lake, sorted(tables), as_of) if as_of else {}
    connection = duckdb.connect()
    for identifier, once in sorted(tables.items()):
        namespace, name = identifier
        rows = _rows(lake, identifier, past.get(identifier))
        staged = f"tidemark {namespace}.{name}"
        connection.register(staged, rows)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(namespace)}")
        view = f"{_quoted(namespace)}.{_quoted(name)}"
        kind = "VIEW" if once else "TABLE"  # a stream can be read only once
        connection.execute(f"CREATE {kind} {view} AS FROM {_quoted(staged)}")  # every part is quoted
    connection.execute("SET enable_external_access = false")  # a query reads the lake, not this machine's files
    try:
        return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise ConfigurationError(str(error).strip()) from error


def _tables(sql: str) -> dict[Identifier, bool]:
    """Return the tables that a query names, each with whether the query certainly reads it only once."""
    try:
        statement = sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError as error:
        raise ConfigurationError(f"not a query: {error}") from error
    if not isinstance(statement, exp.Query | exp.Describe):
        raise ConfigurationError("only queries are answered: SELECT ..., WITH ... SELECT, DESCRIBE")
    common = {cte.alias_or_name for cte in statement.find_all(exp.CTE)}
    found: dict[Identifier, bool] = {}
    for table in statement.find_all(exp.Table):
        if table.db:
            name = Identifier(table.db, table.name)
            found[name] = not common and name not in found
        elif isinstance(table.this, exp.Identifier) and table.name not in common:
            raise ConfigurationError(f"table {table.name!r}: name tables as `source.table`")
    return found


def _rows(lake: Lake, identifier: Identifier, snapshot: int | None) -> pa.RecordBatchReader | pa.Table:
    namespace, name = identifier
    if not name.endswith(CHANGES):
        # Streamed: DuckDB takes the batches as it needs them.
        return lake.load(identifier).scan(snapshot_id=snapshot).to_arrow_batch_reader()
    from tidemark.queries.typed_changes import typed_changes  # noqa: PLC0415  needs Spark, which no other query does

    return typed_changes(lake, Identifier(namespace, name.removesuffix(CHANGES))).toArrow()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def as_json_lines(answer: pa.Table) -> Iterator[bytes]:
    """Yield one object for each row: decimals, infinity and NaN as text, bytes as Base64, times as ISO 8601."""
    for batch in answer.to_batches():
        for row in zip(*map(_values, batch.columns), strict=True):
            yield msgspec.json.encode(_plain(dict(zip(batch.schema.names, row, strict=True)))) + b"\n"


def _plain(value: Any) -> Any:  # noqa: ANN401  whatever a query may answer
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _values(column: pa.Array) -> list[Any]:
    """Return the values as Python's: a float by its own digits, and a time in an unknown year as ISO 8601."""
    if pa.types.is_float32(column.type):
        return [None if text is None else float(text) for text in column.cast(pa.string()).to_pylist()]
    if _holds_floats(column.type):
        return [_value(each) for each in column]
    try:
        return list(column.to_pylist())
    except OverflowError:
        return [_value(each) for each in column]


def _holds_floats(kind: pa.DataType) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return any(pa.types.is_float32(each) or _holds_floats(each) for each in inner)


def _value(scalar: pa.Scalar) -> Any:  # noqa: ANN401  likewise
    if isinstance(scalar, pa.StructScalar) and scalar.is_valid:
        return {name: _value(inner) for name, inner in scalar.items()}
    if isinstance(scalar, pa.ListScalar) and scalar.is_valid:
        return [_value(inner) for inner in scalar.values]
    if pa.types.is_float32(scalar.type) and scalar.is_valid:
        return float(scalar.cast(pa.string()).as_py())
    try:
        return scalar.as_py()
    except OverflowError:
        if pa.types.is_date(scalar.type):
            return iso8601.date(scalar.value)
        return iso8601.instant(scalar.cast(pa.timestamp("us", scalar.type.tz)).value) + ("Z" if scalar.type.tz else "")


def as_text_rows(answer: pa.Table) -> Iterator[list[str]]:
    """Yield rows as text for tables and CSV, the header first; null is empty."""
    yield list(answer.column_names)
    for batch in answer.to_batches():
        for row in zip(*map(_values, batch.columns), strict=True):
            yield [_text(value) for value in row]


def _text(value: Any) -> str:  # noqa: ANN401  likewise
    if value is None:
        return ""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
        return value.hex()
    return str(value)
