"""Rows of a DataHub TUPLE topic, as Data Integration of DataWorks and DTS write them.

"DataHub message formats" of DataWorks, "Tuple data format", and "Modify the naming rules for additional columns" of
DTS. One row is one image, with columns added to the source's own:

    {"_sequence_id_": "1649991610688000001", "_operation_type_": "U", "_excute_time_": 1649991756000,
     "_source_table_": "orders", "_before_image_": "Y", "_after_image_": "N", "id": "1", "total": "12.50"}

(``_excute_time_`` sic.) An update is two rows with the same sequence: the first is the image before, the second the
image after. They may stand in two files. Rows come as JSON objects, as lines of CSV or rows of Parquet (``dumps`` turns
them into JSON objects), or as an answer of DataHub's *get records* call, whose ``Data`` has values in the order of the
topic's ``RecordSchema``. Rows by themselves have no types. Such a topic has no DDL and no heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pydantic import BaseModel, ConfigDict, field_validator

from tidemark.errors import DecodeError, MalformedMessageError, UnknownOperationError
from tidemark.events import TIMES, ChangeEvent, ControlEvent, Event, Message, Operation, TableId
from tidemark.formats import Traits
from tidemark.formats._datahub import records as datahub_records
from tidemark.formats._datahub.tuple import SETS, Added, plan, record_types
from tidemark.formats._json import ABSENT, NULL, check_utf8, members, read, table_of_option
from tidemark.formats._positions import of_a_sequence
from tidemark.positions import changed
from tidemark.values import iso8601

TOOLS = ("Alibaba DataHub (Tuple topics)", "DataWorks Data Integration", "Alibaba DTS")

UNTOLD = ("the key", "types, unless the answer carries its RecordSchema", "schema changes")

TRAITS = Traits(pairs_updates=True, ranks_by_commit=of_a_sequence)

OPERATIONS = {"I": Operation.INSERT, "U": Operation.UPDATE, "D": Operation.DELETE}

IMAGES = {
    ("I", "N", "Y"): "after",
    ("U", "Y", "N"): "before",
    ("U", "N", "Y"): "after",
    ("D", "Y", "N"): "before",
}
"""Operation, before flag and after flag, to the image that the row is."""

_SECONDS, _MILLIS = 10**11, 10**14
"""Times below the first count s, below the second ms, others µs. So ms and µs begin in 1973; s and ms end in 5138."""


class Options(BaseModel):
    """Facts that Tuple rows do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``database.table``) of rows that name no table."""
    record_schema: str | None = None
    """The topic's ``RecordSchema``, JSON text from DataHub. It has the types of rows, and the columns of an answer of
    *get records* that comes without it."""

    @field_validator("record_schema")
    @classmethod
    def _is_schema(cls, text: str | None) -> str | None:
        try:
            record_types(text.encode() if text is not None else b'{"fields":[]}')
        except DecodeError as error:
            raise ValueError(str(error)) from error
        return text


class Record(msgspec.Struct, gc=False):
    """A record of an answer. Its ``Sequence`` counts arrivals in a shard; the order is the row's own sequence."""

    Data: list[msgspec.Raw] | str
    SystemTime: datahub_records.Millis = None
    """Time when it arrived in DataHub, epoch ms."""


class Answer(msgspec.Struct, gc=False):
    """An answer of *get records*. The topic's ``RecordSchema`` (an object, or JSON in a string) may be added to it."""

    Records: list[Record]
    RecordSchema: msgspec.Raw = ABSENT


_answer = msgspec.json.Decoder(Answer)

_record = msgspec.json.Decoder(Record)

_text = msgspec.json.Decoder(str)

_encode = msgspec.json.Encoder().encode


def decode(message: Message, options: Options) -> list[Event]:
    """Return the change of the row in ``message``. If it is an answer, return the change of each row.

    Half an update is an event with ``before`` only or with ``after`` only. Both positions differ in the last part only.

    Raises:
        DecodeError: the whole message is set aside.
    """
    if message.value is None or message.value == NULL:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    value = datahub_records.trimmed(message.value)
    if not value.isascii():
        check_utf8(value)
    found = members(value)
    schema = options.record_schema.encode() if options.record_schema else None
    event = _row(value, found, schema, options)
    return [event] if event is not None else _no_row(value, found, schema, message, options)


def _row(
    value: bytes,
    found: Mapping[str, msgspec.Raw],
    schema: bytes | None,
    options: Options,
    captured_at: int | None = None,
) -> ChangeEvent | None:
    """Return the change of a row; None if the row has none of the added columns."""
    how = plan(tuple(found), schema)
    if how is None:
        return None
    added = read(how.added.decoder, value)
    image = _encode(dict(zip(how.columns, how.pick(found), strict=True)))
    name = IMAGES.get((added.operation or "", added.before or "", added.after or ""))
    if name is None:
        raise _not_an_image(added, how.added.wire)
    sequence = datahub_records.sequence(added.sequence, how.added.wire["sequence"])
    is_after = name == "after"
    return ChangeEvent(
        table=_table(added, options),
        operation=OPERATIONS[added.operation or ""],
        position=changed(sequence, int(is_after)),
        committed_at=_time(added.time, how.added.wire["time"]),
        captured_at=captured_at,
        before=None if is_after else image,
        after=image if is_after else None,
        shape=how.layout.shape,
    )


def _not_an_image(added: Added, wire: Mapping[str, str]) -> DecodeError:
    if added.operation not in OPERATIONS:
        allowed = ", ".join(OPERATIONS)
        return UnknownOperationError(f"`{wire['operation']}` is {added.operation!r}; a Tuple row has {allowed}")
    return MalformedMessageError(
        f"`{wire['before']}` is {added.before!r} and `{wire['after']}` is {added.after!r} of a row {added.operation}: "
        "an insert is N, Y, a delete Y, N, an update either"
    )


def _table(added: Added, options: Options) -> TableId:
    if not added.table:
        return table_of_option(options.table)
    return TableId(database=added.database or None, schema=None, name=added.table)


def _time(time: str | int | None, name: str) -> int | None:
    """Return a time as epoch µs. It is a count, whose size shows its unit, or ISO 8601 in UTC."""
    text = str(time).strip()
    if time is None or not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        count = int(text)
        micros = count * (1_000_000 if count < _SECONDS else 1000 if count < _MILLIS else 1)
    else:
        try:
            wall_clock, offset = iso8601.read(text)
        except ValueError as error:
            raise MalformedMessageError(f"`{name}` is {text[:60]!r}, which is no time: {error}") from error
        micros = wall_clock - offset
    if not 0 <= micros < TIMES.stop:
        raise MalformedMessageError(f"`{name}` is {text[:60]!r}, which is no time of a change")
    return micros


def _no_row(
    value: bytes, found: Mapping[str, msgspec.Raw], schema: bytes | None, message: Message, options: Options
) -> list[Event]:
    """Return the changes of an answer of *get records*, or of one of its records. A topic's schema is only counted."""
    if "Records" in found:
        answer = read(_answer, value)
        return _rows(answer.Records, _schema_beside(answer.RecordSchema) or schema, options)
    if "Data" in found:
        return _rows([read(_record, value)], schema, options)
    if "RecordSchema" in found:
        return [ControlEvent(kind="record_schema", position=changed(*message.order))]
    sequences = ", ".join(names.wire["sequence"] for names in SETS)
    raise MalformedMessageError(
        f"a row without {sequences}: no producer's columns; it has {', '.join(list(found)[:10]) or 'none'}"
    )


def _schema_beside(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    if text[:1] == b'"':
        return read(_text, text).encode()
    return None if text in {b"", NULL} else text


def _rows(records: list[Record], schema: bytes | None, options: Options) -> list[Event]:
    if schema is None:
        raise MalformedMessageError(
            "an answer of get records without `RecordSchema`; set the option `record_schema` in the source file"
        )
    names = tuple(record_types(schema))
    events: list[Event] = []
    for number, record in enumerate(records, start=1):
        if isinstance(record.Data, str):
            raise MalformedMessageError(f"record {number} is of a BLOB topic: its format is datahub_blob")
        if len(record.Data) != len(names):
            raise MalformedMessageError(f"record {number} has {len(record.Data)} values, the topic {len(names)} fields")
        row = dict(zip(names, record.Data, strict=True))
        event = _row(_encode(row), row, schema, options, datahub_records.micros(record.SystemTime))
        if event is None:
            raise MalformedMessageError(f"record {number} has no producer's columns; it has {', '.join(names[:10])}")
        events.append(event)
    return events
