"""The rows of a database, each value as a text that has all of it."""

from __future__ import annotations

from typing import Any, Final

from databases import Database

from support.comparing import Truth


def _by_type(**types: str) -> dict[str, str]:
    return {name: kind for kind, names in types.items() for name in names.split()}


_PG_KINDS: Final = _by_type(
    number="numeric int2 int4 int8 money oid percent", float4="float4", float8="float8", boolean="bool", bytes="bytea",
    bits="bit varbit", time="timestamp timestamptz time timetz", date="date", json="json jsonb hstore", padded="bpchar",
    point="point", array="array",
)  # fmt: skip

_PG_TEXTS: Final = {
    "bytea": "encode({0}, 'hex')",
    "hstore": "hstore_to_json({0})::text",
    "array": "to_json({0})::text",
    **dict.fromkeys(("json", "jsonb", "timestamp", "timestamptz"), "{0}::text"),
}
"""How a value becomes a text. Any other type does as PostgreSQL prints it, which is not always what a cast makes."""

_PG_TABLES: Final = """
SELECT c.oid, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND c.relname NOT LIKE 'lab\\_%%' ORDER BY c.relname"""

_PG_COLUMNS: Final = """
SELECT a.attname, CASE WHEN t.typname ~ '^_' THEN 'array' ELSE t.typname END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_PG_KEY: Final = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s AND i.indisprimary"""

_MY_KINDS: Final = _by_type(
    number="tinyint smallint mediumint int bigint decimal year", float4="float", float8="double", bits="bit",
    bytes="binary varbinary tinyblob blob mediumblob longblob", time="datetime timestamp time", date="date",
    json="json", geometry="geometry point polygon linestring",
)  # fmt: skip

_MY_TEXTS: Final = {
    "bytes": "HEX({0})",
    "bits": "BIN({0})",
    "float4": "CAST({0} AS DOUBLE)",
    "float8": "{0}",
    "geometry": "HEX(ST_AsBinary({0}))",
}
"""How a value of a kind becomes a text; of any other kind by a cast."""

_MY_TABLES: Final = """
SELECT table_name FROM information_schema.tables WHERE table_schema = 'lab' AND table_name NOT LIKE 'lab\\_%'
ORDER BY table_name"""

_MY_COLUMNS: Final = """
SELECT column_name, data_type, column_key FROM information_schema.columns
WHERE table_schema = 'lab' AND table_name = %s ORDER BY ordinal_position"""


def truths(database: Database) -> dict[str, Truth]:
    """Return all tables of a database by name, but those of the lab itself."""
    read = _of_postgresql if database.kind == "postgresql" else _of_mysql
    with database.connect() as connection, connection.cursor() as cursor:
        return {truth.name: truth for truth in read(cursor)}


def _of_postgresql(cursor: Any) -> list[Truth]:
    found = []
    for oid, name in cursor.execute(_PG_TABLES).fetchall():
        columns = dict(cursor.execute(_PG_COLUMNS, (oid,)).fetchall())
        key = [row[0] for row in cursor.execute(_PG_KEY, (oid,)).fetchall()]
        texts = [_PG_TEXTS.get(kind, "to_json({0}) #>> '{{}}'") for kind in columns.values()]
        cells = ", ".join(form.format(_quoted(column, '"')) for form, column in zip(texts, columns, strict=True))
        rows = cursor.execute(f"SELECT {cells} FROM {_quoted(name, chr(34))}").fetchall()
        kinds = {column: _PG_KINDS.get(kind, "text") for column, kind in columns.items()}
        found.append(Truth(name, kinds, key, [dict(zip(columns, row, strict=True)) for row in rows]))
    return found


def _of_mysql(cursor: Any) -> list[Truth]:
    found = []
    cursor.execute(_MY_TABLES)
    for (name,) in list(cursor.fetchall()):
        cursor.execute(_MY_COLUMNS, (name,))
        columns = list(cursor.fetchall())
        kinds = {column: _MY_KINDS.get(kind, "text") for column, kind, _ in columns}
        texts = [_MY_TEXTS.get(kind, "CAST({0} AS CHAR)") for kind in kinds.values()]
        cells = ", ".join(form.format(_quoted(column, "`")) for form, column in zip(texts, kinds, strict=True))
        cursor.execute(f"SELECT {cells} FROM {_quoted(name, '`')}")
        rows = [dict(zip(kinds, row, strict=True)) for row in cursor.fetchall()]
        key = [column for column, _, role in columns if role == "PRI"]
        found.append(Truth(name, kinds, key, rows))
    return found


def _quoted(name: str, mark: str) -> str:
    return mark + name.replace(mark, mark * 2) + mark
