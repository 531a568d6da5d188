"""Column types as MySQL, PostgreSQL, Oracle and SQL Server write them in DDL, and the Iceberg types for them.

A type from DDL is used only where neither the messages, nor the source file, nor the table declare one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
    # Oracle keeps these as NUMBER, with 38 or 19 digits at any scale.
    **dict.fromkeys((("oracle", "double"), ("oracle", "float"), ("oracle", "real")), "string"),
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
    sizes = sizes_in(_bracketed(words[:16]))
    if word in _DECIMALS:
        return _decimal(word, sizes, dialect)
    if word == "long" and dialect == "oracle":
        return "binary" if text.startswith("long raw") else "string"
    kind = _OF_DIALECT.get((dialect, word)) or _TYPES.get(word)
    if word == "timestamp" and dialect in {"postgres", "oracle"} and re.search(r"\bwith (local )?time zone", text):
        return "timestamptz"
    if dialect == "mysql" and kind in _UNSIGNED and word not in _SMALL and re.search(r"\b(unsigned|zerofill)\b", text):
        return _UNSIGNED[kind]
    return "double" if kind == "float" and len(sizes) == 1 and (sizes[0] or 0) > _OF_A_FLOAT else kind


def _bracketed(words: Sequence[str]) -> Sequence[str]:
    """Return the words in the brackets right behind the first word."""
    ends = [place for place, word in enumerate(words) if word == ")"]
    return words[2 : ends[0]] if ends and "(" in words[1:2] else ()


def sizes_in(words: Iterable[str]) -> tuple[int | None, ...]:
    """Return the numbers in the brackets of a type: a length, or precision and scale; None for Oracle's ``*``.

    >>> sizes_in(["*", ",", "-", "2"])
    (None, -2)
    """
    sizes: list[int | None] = []
    sign = ""
    for word in words:
        if word == "*":
            sizes.append(None)
        elif re.fullmatch(r"\d{1,9}", word):
            sizes.append(int(sign + word))
        sign = "-" if word == "-" else ""
    return tuple(sizes)


def scale_of(word: str, sizes: Sequence[int | None], dialect: str) -> int | None:
    """Return how many digits a decimal has behind the point; None: any number of them. It may be below zero."""
    if len(sizes) > 1:
        return sizes[1]
    open_ended = dialect == "postgres" or (dialect == "oracle" and word == "number")
    return None if open_ended and sizes in {(), (None,)} else 0


def _decimal(word: str, sizes: Sequence[int | None], dialect: str) -> str:
    scale = scale_of(word, sizes, dialect)
    if scale is None:
        return "string"
    declared = sizes[0] if sizes else _DIGITS[dialect]
    precision = 38 if declared is None else max(declared, scale) - min(scale, 0)
    return f"decimal({precision}, {max(scale, 0)})" if 0 < precision <= 38 else "string"


_DIGITS = {"mysql": 10, "tsql": 18, "oracle": 38}
"""Digits of a decimal whose declaration does not say."""

_OF_A_FLOAT = 24
"""Most binary digits of a number of four bytes."""
