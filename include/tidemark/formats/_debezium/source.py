"""Debezium's ``source`` block: the table, the times, and the position in the database's log.

Positions by connector (https://debezium.io/documentation/reference/stable/connectors/, "Change event values"). All
positions of one connector have the same parts:

    mysql, mariadb  binlog file number, pos; the delivery; row, rank (``positions.log_number``)
    postgresql      lsn, total_order or 0, rank; the delivery: rows of one COPY share an lsn
    oracle          commit_scn, scn, three numbers of rs_id, ssn, total_order or 0, rank; the delivery; without rs_id,
                    ssn and total_order the rank stands behind the delivery
    sqlserver, db2  commit_lsn, change_lsn, event_serial_no, rank; the delivery
    mongodb         ts_ms, ord, which the changes of one transaction share, then the place in the dump
    any other       ts_ms, then the place in the dump

A message without what its connector orders by has no place, and is set aside. Only flattened rows may be ordered by
less, if the transform does not add it: by ts_ms, or by the place in the dump alone.

The rank puts the delete of a key change before its create. It stands behind the delivery where changes of one row may
share all that is before it. The delivery (``positions.placed``) is the event's number in its transaction, 0 if the
message has none, and the place in the dump. What stands before and behind it is the same in an event sent again.

A transaction that MySQL compressed (``binlog_transaction_compression``) is one entry of the log: all its changes have
one ``pos``, and ``row`` starts again with each of its parts. So ``row`` orders nothing there, and the delivery does.

Rows of an initial load have the position where the load began, or none. Many rows share it, so the place in the dump
follows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence

import msgspec

from tidemark.events import Message, Operation, TableId, Transaction
from tidemark.formats._debezium import log_places
from tidemark.formats._debezium.by_time import FLINK_CDC, by_time
from tidemark.formats._debezium.log_places import LIMIT, Number
from tidemark.positions import Position, changed, encode_position, loaded, log_number, placed


class Source(msgspec.Struct, gc=False):
    """The ``source`` block: first the fields of all connectors, then the fields that order the events of each."""

    connector: str | None = None
    name: object = None
    """Of the connector (``topic.prefix``); a text."""
    db: str | None = None
    schema: str | None = None
    namespace: str | None = None
    """Of Lindorm."""
    keyspace: str | None = None
    """Of Vitess and Cassandra: the logical database. ``db`` is empty there."""
    database_id: str | int | None = None
    """Of Spanner: the database, which ``db`` may lack."""
    value_capture_type: str | None = None
    """Of Spanner: which values its change stream captures (``_debezium.spanner``)."""
    table: str | None = None
    collection: str | None = None
    """Of MongoDB."""
    snapshot: bool | str | None = None
    ts_ms: Number = None
    """Time of the commit at the source; 0 in some initial loads."""
    ts_us: Number = None
    file: str | None = None
    pos: Number = None
    row: Number = None
    lsn: Number = None
    sequence: object = None
    """Of PostgreSQL, a JSON text (``_debezium.commits``). Others write null or what is their own."""
    scn: Number = None
    commit_scn: Number = None
    rs_id: str | None = None
    ssn: Number = None
    commit_lsn: Number = None
    change_lsn: Number = None
    event_serial_no: Number = None
    ord: Number = None


class TransactionBlock(msgspec.Struct, gc=False):
    """The ``transaction`` block (``provide.transaction.metadata``)."""

    id: str | None = None
    total_order: Number = None


_SNAPSHOT, _DELETE, _TRUNCATE = Operation.SNAPSHOT, Operation.DELETE, Operation.TRUNCATE
"""Every message is compared with them. Looking them up in their enumeration would cost more than the comparison."""

_STREAMING = frozenset({None, False, "false", ""})
"""Values of ``source.snapshot`` outside an initial load. Inside: true, ``first``, ``last``, ``incremental``, ..."""

_POSTGRES_TRANSACTION = re.compile(r"(\d+):\d+")

Places = tuple[int, ...] | None
"""Parts of a place. Nearly all numbers come as numbers, so these are passed without a call of ``log_places.number``."""


def _binlog(source: Source, _total: int) -> Places:
    number = log_number(source.file)
    if number is None:
        if source.file:  # an empty one is missing, as in rows of some loads
            raise log_places.unreadable("source.file", source.file, "binary log file with a number")
        return None
    row = source.row
    if type(row) is not int or not 0 <= row < LIMIT:
        row = log_places.number(row, "source.row") or 0
    return (number, log_places.offset(source.pos), row)


def _wal(source: Source, total: int) -> Places:
    lsn = source.lsn
    if type(lsn) is not int or not 0 <= lsn < LIMIT:
        lsn = log_places.number(lsn, "source.lsn")
    return (lsn, total) if lsn else None


def _redo(source: Source, total: int) -> Places:
    scn = log_places.scn(source.scn, "source.scn")
    if not scn:
        return None
    commit = log_places.scn(source.commit_scn, "source.commit_scn") or scn
    ssn = source.ssn
    if type(ssn) is not int or not 0 <= ssn < LIMIT:
        ssn = log_places.number(ssn, "source.ssn") or 0
    return (commit, scn, *log_places.redo_record(source.rs_id), ssn, total)


def _cdc_tables(source: Source, _total: int) -> Places:
    commit = log_places.lsn(source.commit_lsn, "source.commit_lsn")
    change = log_places.lsn(source.change_lsn, "source.change_lsn")
    serial = source.event_serial_no
    if type(serial) is not int or not 0 <= serial < LIMIT:
        serial = log_places.number(serial, "source.event_serial_no") or 0
    return (commit, change, serial) if commit else None


def _oplog(source: Source, _total: int) -> Places:
    millis = log_places.number(source.ts_ms, "source.ts_ms")
    return (millis, log_places.number(source.ord, "source.ord") or 0) if millis else None


SEQUENCES: dict[str, Callable[[Source, int], Places]] = {
    "mysql": _binlog,
    "mariadb": _binlog,
    "postgresql": _wal,
    "oracle": _redo,
    "sqlserver": _cdc_tables,
    "db2": _cdc_tables,
    "mongodb": _oplog,
}
"""By connector: the function that returns the sequence of an event, or None if ``source`` has none."""

_SCNS = 2
"""Parts of Oracle's sequence that several changes of one row may share. Behind them stands what tells changes apart."""


def position(
    source: Source,
    operation: Operation,
    transaction: Transaction | None,
    message: Message,
    fields: Collection[str] | None = None,
) -> Position:
    """Return the position of a row change, by the table in the module's docstring.

    Args:
        source: of the event.
        operation: of the event.
        transaction: of the event.
        message: the event.
        fields: the fields that all messages of its kind have in ``source``; None for all that its connector writes.

    Raises:
        MalformedMessageError: a part of the place in the log is there and cannot be read, or there is no place.
    """
    find = SEQUENCES.get(source.connector or "")
    total = (transaction.number or 0) if transaction else 0
    sequence = find(source, total) if find else None
    if operation is _SNAPSHOT or not is_streamed(source):
        return loaded(*message.order) if sequence is None else changed(*sequence, 1, *message.order)
    if sequence is None:
        writer = FLINK_CDC if source.file == "" else source.connector
        return by_time(writer, source.ts_ms, message.order, fields)
    if find is _oplog:
        return changed(*sequence, 2, *message.order)
    rank = 0 if operation is _DELETE else 1
    if operation is _TRUNCATE:
        return changed(*sequence, rank)
    if find is _binlog:
        file, offset, row = sequence
        # `placed(changed(file, offset), (total, *message.order), (row, rank))`, which would cost three times as much
        return (1, file, offset, "", total, *message.order, "", row, rank)
    delivery = (total, *message.order)
    shared = find is _redo and not any(sequence[_SCNS:])  # changes of one row may have all this in common
    return placed(changed(*sequence), delivery, (rank,)) if shared else placed(changed(*sequence, rank), delivery)


def statement_position(source: Source, message: Message, fields: Collection[str] | None = None) -> Position:
    """Return the position of a statement, which has an entry of the log for itself. For ``fields`` see ``position``."""
    return position(source, _TRUNCATE, None, message, fields)


_DELIVERED, _BEFORE_IT_IN_POSTGRES = encode_position([""]), 4
"""The empty text before the delivery, and how many parts are before it."""


def ranks_by_commit(parts: Sequence[str]) -> bool:
    """Return whether a position rises with the commits: in all logs with a place but PostgreSQL's.

    There a change stands at its own place, and transactions come in the order of their commits.
    """
    return _DELIVERED in parts and parts.index(_DELIVERED) != _BEFORE_IT_IN_POSTGRES


_LOADED_AT: frozenset[Callable[[Source, int], Places]] = frozenset({_binlog, _wal, _redo, _cdc_tables})
"""Sequences that are the same in all rows of an initial load: the place where the load began."""


def is_streamed(source: Source) -> bool:
    """Return whether an event does not belong to an initial load."""
    return source.snapshot in _STREAMING


def load(source: Source, operation: Operation) -> Position | None:
    """Return the place where the complete initial load of a row began; None for any other event.

    It is the position of all rows of the load, without their places in the dump. The markers of a first row (``first``,
    ``first_in_data_collection``) are not used: they are younger than the format, and the only row of a table is marked
    as its last. An incremental load has no beginning, because its rows come between the changes.
    """
    if operation is not _SNAPSHOT or is_streamed(source) or source.snapshot == "incremental":
        return None
    find = SEQUENCES.get(source.connector or "")
    sequence = find(source, 0) if find in _LOADED_AT else None
    return None if sequence is None else changed(*sequence, 1)


def table(source: Source) -> TableId | None:
    """Return the table of an event; None if ``source`` names none.

    The database is the instance of Lindorm, the keyspace of Vitess and Cassandra, and the id of Spanner's database.
    """
    name = source.table or source.collection
    if not name:
        return None
    database = source.keyspace or source.db or str(source.database_id or "") or None
    return _table_id(database, source.schema or source.namespace or None, name)


@functools.lru_cache(maxsize=4096)
def _table_id(database: str | None, schema: str | None, name: str) -> TableId:
    return TableId(database=database, schema=schema, name=name)


def transaction(block: TransactionBlock | None, *, last: bool | None = None) -> Transaction | None:
    """Return the transaction of an event.

    PostgreSQL's id is ``txId:lsn``, with the lsn of the single event. Only ``txId`` identifies the transaction.

    Raises:
        MalformedMessageError: the number of the event is there and cannot be read.
    """
    if block is None or block.id is None:
        return None
    postgres = _POSTGRES_TRANSACTION.fullmatch(block.id)
    number = block.total_order
    if type(number) is not int or not 0 <= number < LIMIT:
        number = log_places.number(number, "transaction.total_order")
    return Transaction(id=postgres[1] if postgres else block.id, number=number, last=last)


def transaction_of(block: TransactionBlock | None, source: Source, operation: Operation) -> Transaction | None:
    """Return the transaction of a row change.

    A TRUNCATE of MySQL and MariaDB is a transaction of its own, and MariaDB's connector sends no END for it.
    """
    is_alone = operation is _TRUNCATE and SEQUENCES.get(source.connector or "") is _binlog
    return transaction(block, last=True if is_alone else None)


def micros(ts_us: Number, ts_ms: Number) -> int | None:
    """Return the epoch µs of either field, None if neither is set. 0 means *not known*."""
    exact = None if ts_us is None else whole_number(ts_us)
    if exact:
        return exact
    millis = None if ts_ms is None else whole_number(ts_ms)
    return millis * 1000 if millis else None


def whole_number(number: Number) -> int | None:
    """Return a number, also from its text; None for a value that cannot be a log position or a time."""
    if type(number) is not int:
        if number is None:
            return None
        text = str(number)
        number = int(text) if len(text) <= 30 and text.isascii() and text.isdecimal() else -1
    return number if 0 <= number < LIMIT else None
