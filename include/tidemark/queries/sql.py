"""``tidemark sql``: SQL over the published tables. PyIceberg reads the tables, and DuckDB answers the query.

Spark starts only for ``<table>__changes``, because its workers read the images.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import sqlglot
from pyiceberg.table import Table
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidemark.errors import ConfigurationError
from tidemark.lake.earlier_schemas import names_with
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, changes, of_changes
from tidemark.queries import named_tables
from tidemark.queries.as_of import AsOf, snapshots
from tidemark.values import iso8601

NOW = AsOf()
"""Tables as they are."""


def query(lake: Lake, sql: str, as_of: AsOf = NOW) -> pa.Table:
    """Return the answer to a query; the query names tables as ``source.table``, or ``table`` if one source has such.

    SHOW TABLES lists the tables of all sources.

    Args:
        lake: the lake.
        sql: the query.
        as_of: the cuts or the time at which all tables of the query are read.

    Raises:
        ConfigurationError: the text is no query, or names a table that is not there.
    """
    if (named := _tables(sql)) is None:
        return _listed(lake)
    found = {pair: _named(lake, *pair) for pair in named}
    past = _past(lake, found.values(), as_of) if as_of else {}
    connection = duckdb.connect()
    for (namespace, name), once in sorted(named.items()):
        identifier, table = found[namespace, name]
        # Streamed: DuckDB takes the batches as it needs them.
        rows = _changes(lake, identifier) if table is None else streamed(table, past.get(identifier))
        staged = f"tidemark {namespace}.{name}"
        connection.register(staged, rows)
        view = _quoted(name)
        if namespace:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(namespace)}")
            view = f"{_quoted(namespace)}.{view}"
        kind = "VIEW" if once else "TABLE"  # a stream can be read only once
        connection.execute(f"CREATE {kind} {view} AS FROM {_quoted(staged)}")  # every part is quoted
    connection.execute("SET enable_external_access = false")  # a query reads the lake, not this machine's files
    try:
        answer = connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise ConfigurationError(str(error).strip()) from error
    return answer.rename_columns(_distinct(answer.column_names))


def _distinct(given: Sequence[str]) -> list[str]:
    """Return distinct names of columns: a later equal one gets ``_1``, as in DuckDB. JSON keeps one value a name."""
    taken: list[str] = []
    for name in given:
        others = (f"{name}_{number}" for number in count(1))
        taken.append(name if name not in taken else next(other for other in others if other not in {*given, *taken}))
    return taken


def _tables(sql: str) -> dict[tuple[str, str], bool] | None:
    """Return the tables that a query names, each with whether the query certainly reads it only once.

    The namespace of a table that is named without one is empty. None: the query is SHOW TABLES.
    """
    try:
        statement = sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError as error:
        raise ConfigurationError(f"not a query: {_parser_message(error)}") from error
    if isinstance(statement, exp.Show) and statement.name == "TABLES":
        return None
    if not isinstance(statement, exp.Query | exp.Describe | exp.Pivot):
        raise ConfigurationError("only queries are answered: SELECT ..., WITH ... SELECT, DESCRIBE, SHOW TABLES")
    common = {cte.alias_or_name for cte in statement.find_all(exp.CTE)}
    is_pivoted = statement.find(exp.Pivot) is not None  # DuckDB reads the rows first for the names of columns
    found: dict[tuple[str, str], bool] = {}
    for table in statement.find_all(exp.Table):
        if table.db or (isinstance(table.this, exp.Identifier) and table.name not in common):
            name = (table.db, table.name)
            found[name] = not common and not is_pivoted and name not in found
    return found


def _parser_message(error: SqlglotError) -> str:
    """Return the text of an error of the parser, with the place marked by signs that any terminal shows."""
    text = re.sub(r"<Token .*?text: (.*?), line: .*?>", r"'\1'", str(error))
    text = re.sub(r"Required keyword: '\w+' missing for <class '.*?'>", "something is missing", text)
    return text.replace("\x1b[4m", ">>").replace("\x1b[0m", "<<")


def _listed(lake: Lake) -> pa.Table:
    return pa.table({"table": pa.array(map(str, named_tables.published_tables(lake)), pa.string())})


def _named(lake: Lake, namespace: str, name: str) -> tuple[Identifier, Table | None]:
    """Return the table that a query names; of a ``__changes``, which is none, the table whose events it has."""
    events_of = of_changes(name)
    plain = name if events_of is None else events_of
    identifier, table = named_tables.find(lake, f"{namespace}.{plain}" if namespace else plain)
    return identifier, table if events_of is None else None


def _past(lake: Lake, found: Iterable[tuple[Identifier, Table | None]], as_of: AsOf) -> dict[Identifier, int]:
    """Return for each table that a query names the snapshot that it stood on."""
    tables = {}
    for identifier, table in found:
        if table is None:
            raise ConfigurationError(
                f"{changes(identifier)} has every event ever: select by position or committed_at, not by cut"
            )
        tables[identifier] = table
    return snapshots(lake, tables, as_of)


def streamed(table: Table, snapshot: int | None) -> pa.RecordBatchReader:
    """Return the rows of a table, or of one of its published snapshots with the columns that readers saw then."""
    if snapshot is None:
        return table.scan().to_arrow_batch_reader()
    names = names_with(table, snapshot)
    reader = table.scan(snapshot_id=snapshot, selected_fields=tuple(names)).to_arrow_batch_reader()
    schema = pa.schema([reader.schema.field(written).with_name(name) for written, name in names.items()])
    batches = (pa.RecordBatch.from_arrays([batch.column(each) for each in names], schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _changes(lake: Lake, identifier: Identifier) -> pa.Table:
    from tidemark.queries.typed_changes import typed_changes  # noqa: PLC0415  needs Spark, which no other query does

    return typed_changes(lake, identifier).toArrow()


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


def numbers(answer: pa.Table) -> list[bool]:
    """Return, for each column, whether its values are numbers."""
    kinds = [field.type for field in answer.schema]
    return [pa.types.is_integer(each) or pa.types.is_floating(each) or pa.types.is_decimal(each) for each in kinds]


def _text(value: Any) -> str:  # noqa: ANN401  likewise
    if value is None:
        return ""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
        return value.hex()
    return str(value)
