"""Column types as MySQL, PostgreSQL, Oracle and SQL Server write them in DDL, and the Iceberg types for them.

A type from DDL is used only where neither the messages, nor the source file, nor the table declare one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer", "int1", "int2", "int3", "int4"), "int"),
    **dict.fromkeys(("smallserial", "serial2", "serial", "serial4", "year", "pls_integer"), "int"),
    **dict.fromkeys(("bigint", "int8", "bigserial", "serial8"), "long"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("float4", "real", "binary_float"), "float"),
    **dict.fromkeys(("double", "float8", "binary_double"), "double"),
    "float": "double",
    "date": "date",
    **dict.fromkeys(("datetime", "datetime2", "smalldatetime", "timestamp"), "timestamp"),
    **dict.fromkeys(("timestamptz", "datetimeoffset"), "timestamptz"),
    **dict.fromkeys(("char", "character", "varchar", "varchar2", "nvarchar", "nvarchar2", "nchar", "bpchar"), "string"),
    **dict.fromkeys(("text", "tinytext", "mediumtext", "longtext", "ntext", "citext", "clob", "nclob"), "string"),
    **dict.fromkeys(("enum", "set", "json", "jsonb", "uuid", "uniqueidentifier", "xml", "xmltype", "inet"), "string"),
    **dict.fromkeys(("rowid", "urowid"), "string"),
    **dict.fromkeys(("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "bytea", "raw"), "binary"),
}

_OF_DIALECT: Mapping[tuple[str, str], str] = {
    ("mysql", "bool"): "int",
    ("mysql", "boolean"): "int",
    ("mysql", "float"): "float",
    ("mysql", "real"): "double",
    ("mysql", "serial"): "decimal(20, 0)",
    ("mysql", "bit"): "decimal(20, 0)",
    ("oracle", "date"): "timestamp",
    ("oracle", "int"): "decimal(38, 0)",
    ("oracle", "integer"): "decimal(38, 0)",
    ("oracle", "smallint"): "decimal(38, 0)",
    ("tsql", "bit"): "boolean",
    ("tsql", "timestamp"): "binary",
}

_UNSIGNED = {"int": "long", "long": "decimal(20, 0)"}

_SMALL = frozenset({"tinyint", "smallint", "mediumint", "int1", "int2", "int3"})

_DECIMALS = frozenset({"decimal", "numeric", "dec", "fixed", "number"})


def type_of(words: Sequence[str], dialect: str) -> str | None:
    """Return the Iceberg type string of a column, from the words and signs behind its name; None for an unknown type.

    >>> type_of(["DECIMAL", "(", "12", ",", "2", ")", "NOT", "NULL"], "mysql")
    'decimal(12, 2)'
    """
    text = " ".join(words[:16]).lower()
    word = re.split(r"[\s(]", text, maxsplit=1)[0].strip("[]")
    if "[ ]" in text or "[]" in text:
        return "string"  # an array, as text
    if word in _DECIMALS:
        return _decimal(text, dialect)
    if word == "long" and dialect == "oracle":
        return "binary" if text.startswith("long raw") else "string"
    kind = _OF_DIALECT.get((dialect, word)) or _TYPES.get(word)
    if word == "timestamp" and dialect in {"postgres", "oracle"} and re.search(r"\bwith (local )?time zone", text):
        return "timestamptz"
    if dialect == "mysql" and kind in _UNSIGNED and word not in _SMALL and re.search(r"\b(unsigned|zerofill)\b", text):
        return _UNSIGNED[kind]
    return kind


def _decimal(text: str, dialect: str) -> str:
    match = re.match(r"\w+ ?\( ?(\d{1,4}|\*) ?(?:, ?(-? ?\d{1,4}) ?)?\)", text)
    if match is None:
        # In MySQL it has ten digits, in PostgreSQL and Oracle any number of digits before and after the point.
        return {"mysql": "decimal(10, 0)", "tsql": "decimal(18, 0)"}.get(dialect, "string")
    scale = int((match[2] or "0").replace(" ", ""))
    precision = 38 if match[1] == "*" else max(int(match[1]), scale) - min(scale, 0)
    return f"decimal({precision}, {max(scale, 0)})" if 0 < precision <= 38 else "string"
