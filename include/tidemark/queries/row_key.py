"""The row that a person asks for: arguments ``COLUMN=VALUE`` as the typed values of a key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tidemark.errors import ConfigurationError, UnknownNameError, UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.queries.row_life import Key
from tidemark.text import suggestion
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value
from tidemark.values.table_columns import TableColumn


def key_given(table: str, given: Sequence[str], columns: Mapping[str, TableColumn], key: Sequence[str]) -> Key:
    """Return the values that a person wrote, in the order of the key.

    Args:
        table: name of the table, for errors.
        given: texts ``COLUMN=VALUE``.
        columns: the table's columns.
        key: names of the key columns. Without any, ``given`` may name any columns.

    Raises:
        ConfigurationError: an unknown, missing or further column, or a value that its column cannot hold.
    """
    pairs = dict(_pair(table, text, columns, key) for text in given)
    if not key:
        return {name: _typed(columns[name], text) for name, text in pairs.items()}
    missing = [name for name in key if name not in pairs]
    further = [name for name in pairs if name not in key]
    if missing or further:
        problem = f"{missing[0]!r} is missing" if missing else f"{further[0]!r} is not in the key"
        raise ConfigurationError(
            f"{table} has the key {', '.join(key)}, and {problem}. Write " + " ".join(f"{name}=VALUE" for name in key)
        )
    return {name: _typed(columns[name], pairs[name]) for name in key}


def _pair(table: str, text: str, columns: Mapping[str, TableColumn], key: Sequence[str]) -> tuple[str, str]:
    for name in sorted(columns, key=len, reverse=True):  # a name may contain a =, and a value may too
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, equals_sign, _ = text.partition("=")
    if not equals_sign:
        raise ConfigurationError(f"{text!r}: write COLUMN=VALUE, as {(key or ('id',))[0]}=1")
    raise UnknownNameError(f"{table} has no column '{name}'.{suggestion(name, list(columns))}")


def _typed(column: TableColumn, text: str) -> Value:
    encoding = Encoding.BASE64 if column.type == "binary" else Encoding.TEXT
    try:
        return read_value(json.dumps(text).encode(), Column(column.name, column.type, encoding))
    except UnreadableValueError as error:
        raise ConfigurationError(str(error)) from error
