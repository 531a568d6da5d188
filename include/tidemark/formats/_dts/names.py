"""Names in a DTS Record: tables written with dots, logical tables of PolarDB-X, and the key from a tag."""

from __future__ import annotations

import functools

import msgspec

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._dts.fields import FieldList
from tidemark.formats._json import table_of_option

_indexes = msgspec.json.Decoder(dict[str, tuple[str, ...]])


@functools.lru_cache(maxsize=4096)
def table_of(name: str | None, database: bytes | None, table: bytes | None, option: str | None) -> TableId:
    r"""Return the table that ``name`` (``objectName``) or the option names.

    Args:
        name: one to three names between dots. A dot in a name is written ``\u002E``.
        database: the tag ``l_db_name``: the logical database, if ``name`` is a shard of PolarDB-X.
        table: the tag ``l_tb_name``: the logical table.
        option: the table of rows that name no table.

    Raises:
        MissingTableError: neither names a table.
        MalformedMessageError: there are more than three names, or one is empty.
    """
    if not name:
        return table_of_option(option)
    parts = names_in(name)
    if len(parts) > 3 or not all(parts):
        raise MalformedMessageError(f"`objectName` is {name[:200]!r}, not database, schema and table between dots")
    logical = parts[0] if len(parts) > 1 else None
    try:
        return TableId(
            database=database.decode() if database else logical,
            schema=parts[1] if len(parts) == 3 else None,
            name=table.decode() if table else parts[-1],
        )
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"a logical name that is no UTF-8: {error}") from error


def names_in(name: str | None) -> list[str]:
    """Return the names between the dots of ``objectName``."""
    return [_unescaped(part) for part in name.split(".")] if name else []


@functools.lru_cache(maxsize=1024)
def key_of(info: bytes | None, fields: FieldList) -> tuple[str, ...] | None:
    """Return the primary key in ``pk_uk_info``, in the spelling of the columns; empty if the table has none."""
    if not info:
        return None
    try:
        names = _indexes.decode(info).get("PRIMARY", ())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"the tag `pk_uk_info` is not the JSON of index to columns: {error}") from error
    folded = {name.casefold(): name for name in fields.names}
    return tuple(name if name in fields.names else folded.get(name.casefold(), name) for name in names)


def _unescaped(name: str) -> str:
    return name.replace("\\u002E", ".").replace("\\u002e", ".")
