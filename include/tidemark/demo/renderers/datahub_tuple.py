"""The history as DataWorks writes it to TUPLE topics of DataHub, one topic for each version of each table.

Columns are from "DataHub message formats" of DataWorks. There is no initial load: its rows are inserts. There are no
statements: when the columns of a table change, a topic with the new columns follows, and changes of rows show the
effect of statements. Each day has another container: CSV, JSON lines, Parquet, answers of the *get records* call.
"""

from __future__ import annotations

import base64
import io
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.demo.renderers import datahub
from tidemark.demo.renderers.connect import Json
from tidemark.demo.renderers.datahub import Step
from tidemark.demo.renderers.debezium_json import millis
from tidemark.demo.renderers.dump import (
    VALUE_LINES_ZST,
    Container,
    DumpFile,
    Entry,
    MessageKind,
    gz,
    json_lines,
    sent_again,
    with_faults,
)
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import Row, ShopHistory
from tidemark.events import Operation

_OPERATIONS = {Operation.SNAPSHOT: "I", Operation.INSERT: "I", Operation.UPDATE: "U", Operation.DELETE: "D"}

_FILES_A_TOPIC = 2

_FILES_OF_LINES = 4

_ANSWER_ROWS = 20

_ARROW_TYPES: dict[str, tuple[pa.DataType, Callable[[Any], object]]] = {
    "int": (pa.int32(), int),
    "long": (pa.int64(), int),
    "double": (pa.float64(), float),
    "date": (pa.date32(), lambda micros: int(micros) // 86_400_000_000),
    "timestamp": (pa.timestamp("us"), int),
    "binary": (pa.binary(), base64.b64decode),
    "decimal(20, 0)": (pa.uint64(), int),
}

_RECORD_TYPES = {"int": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "date": "TIMESTAMP", "timestamp": "TIMESTAMP"}


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows only, mixed within their day, because their sequence gives the order."""
    mixer = random.Random("datahub_tuple")  # noqa: S311 - the mixing of a demo
    rows = [entry for step in datahub.steps(rows_only(history)) for entry in _entries(step, history)]
    records = sent_again(with_faults(rows, _unknown_operation))
    types = {column.name: column.type for versions in history.schemas.values() for column in versions[-1].columns}
    first, second, third, fourth = sorted({record.day for record in records})

    def of(day: date, *, late: bool = False) -> list[Entry]:
        mine = [record for record in records if record.day == day and record.late == late]
        mixer.shuffle(mine)
        return mine

    suffix, lines = VALUE_LINES_ZST.suffix, VALUE_LINES_ZST.container
    return [
        *_by_topic(of(first), "csv.gz", gz(csv_rows)),
        *_parts(of(second), "part", _FILES_OF_LINES, suffix, lines),
        *_parts(of(second, late=True), "late", 1, suffix, lines),
        *_by_topic(of(third), "parquet", lambda entries: parquet_rows(entries, types)),
        *_by_topic(of(fourth), "json", json_lines, lambda entries: _answers(entries, types)),
    ]


def _parts(entries: Sequence[Entry], name: str, count: int, suffix: str, container: Container) -> Iterator[DumpFile]:
    for number in range(count):
        part = tuple(entries[number::count])
        if part:
            yield DumpFile(name=f"{name}-{number:02d}.{suffix}", entries=part, container=container)


def _by_topic(
    entries: Iterable[Entry],
    suffix: str,
    container: Container,
    joined: Callable[[Sequence[Entry]], Sequence[Entry]] = lambda entries: entries,
) -> Iterator[DumpFile]:
    topics: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        topics[entry.topic].append(entry)
    for topic in sorted(topics):
        yield from _parts(joined(topics[topic]), topic, _FILES_A_TOPIC, suffix, container)


def _entries(step: Step, history: ShopHistory) -> Iterator[Entry]:
    event = step.event
    if event is None:
        return
    operation = _OPERATIONS[event.operation]
    version = history.schemas[event.table].index(event.schema) + 1
    for image, flags in ((event.before, "YN"), (event.after, "NY")):
        if image is None:
            continue
        row = {
            "_sequence_id_": str(step.sequence),
            "_operation_type_": operation,
            "_excute_time_": millis(step.transaction),  # sic
            "_source_table_": event.table,
            "_before_image_": flags[0],
            "_after_image_": flags[1],
            **_values(image),
        }
        yield Entry(
            kind=MessageKind.ROWS,
            day=step.day,
            late=step.transaction.late,
            rows=1,
            topic=f"{event.table}_{version}",
            value=msgspec.json.encode(row),
        )


def _values(image: Row) -> Json:
    return {name: _value(value) for name, value in image.items()}


def _value(value: object) -> object:
    """Return a value for JSON: times as µs since 1970, and decimals as text, because a double would round them."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date():
            return datahub.micros(value)
        case Decimal():
            return datahub.number_text(value)
        case _:
            return value


def csv_rows(entries: Iterable[Entry]) -> bytes:
    """Return rows of one topic as CSV with a header. Null is an empty cell, and the empty text is a quoted one."""
    text = io.StringIO()
    rows = [json.loads(entry.value or b"{}", parse_float=str) for entry in entries]
    text.write(",".join(rows[0]) + "\r\n")
    for row in rows:
        text.write(",".join(_cell(row[name]) for name in rows[0]) + "\r\n")
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    if text and not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def parquet_rows(entries: Iterable[Entry], types: dict[str, str]) -> bytes:
    """Return rows of one topic as Parquet, with the types that the columns have at the source."""
    rows = [msgspec.json.decode(entry.value or b"{}") for entry in entries]
    columns = {name: _array([row[name] for row in rows], types.get(name, "string")) for name in rows[0]}
    columns["_excute_time_"] = pa.array([row["_excute_time_"] for row in rows], pa.timestamp("ms", "UTC"))
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _array(values: Iterable[object], type_: str) -> pa.Array:
    kind, read = _ARROW_TYPES.get(type_, (pa.string(), str))
    if type_.startswith("decimal") and kind == pa.string():
        precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
        kind, read = pa.decimal128(precision, scale), lambda value: Decimal(str(value))
    return pa.array([None if value is None else read(value) for value in values], kind)


def _answers(entries: Sequence[Entry], types: dict[str, str]) -> list[Entry]:
    """Return rows of one topic as answers of the *get records* call, each with the topic's RecordSchema."""
    return [_answer(entries[start : start + _ANSWER_ROWS], types) for start in range(0, len(entries), _ANSWER_ROWS)]


def _answer(entries: Sequence[Entry], types: dict[str, str]) -> Entry:
    rows = [json.loads(entry.value or b"{}", parse_float=str) for entry in entries]
    fields = [{"name": name, "type": _RECORD_TYPES.get(types.get(name, "string"), "STRING")} for name in rows[0]]
    records = [
        {
            "SystemTime": row["_excute_time_"] + 2500,
            "Sequence": number,
            "Data": [None if value is None else str(value) for value in row.values()],
            "Attributes": {},
        }
        for number, row in enumerate(rows)
    ]
    answer = {
        "NextCursor": "20000000000000000000000000830010",
        "RecordCount": len(records),
        "StartSeq": 0,
        "RecordSchema": msgspec.json.encode({"fields": fields}).decode(),
        "Records": records,
    }
    return replace(entries[0], rows=len(records), value=msgspec.json.encode(answer))


def _unknown_operation(value: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(value), "_operation_type_": "X"})
