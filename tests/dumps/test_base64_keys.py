"""Record keys in Base64: every container gives the key that was written, and a plain text stays as it is."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.dumps import containers
from tidemark.normalization.decoding import decode_files

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "get-dumps.md"
SOURCE = {"connector": "postgresql", "db": "depot", "schema": "public", "table": "bins", "ts_ms": 1_790_000_000_000}
Record = tuple[bytes | None, bytes | None]
"""Key and value."""
KAFKA_TYPES = {
    "topic": "string", "partition": "int", "offset": "long", "key": ["null", "string"], "value": ["null", "string"],
}  # fmt: skip


def text_of(content: bytes | None) -> str | None:
    """Return content in Base64, as the script of the page does."""
    return None if content is None else base64.b64encode(content).decode()


def rows_of(records: Sequence[tuple[str | None, str | None]]) -> list[dict[str, Any]]:
    """Return Kafka records with keys and values as they are written."""
    return [
        {"topic": "depot", "partition": 0, "offset": offset, "key": key, "value": value}
        for offset, (key, value) in enumerate(records)
    ]


def as_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write Parquet with keys and values as text."""
    types = {"partition": pa.int32(), "offset": pa.int64()}
    columns = {name: pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in rows[0]}
    pq.write_table(pa.table(columns), path)


def as_avro(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write an Avro object container file with keys and values as strings."""
    fields = [{"name": name, "type": kind} for name, kind in KAFKA_TYPES.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Record", "fields": fields}, rows)


Write = Callable[[Path, list[dict[str, Any]]], None]

in_each_container = pytest.mark.parametrize("write", [as_lines, as_parquet, as_avro])


def keys(path: Path) -> list[bytes | None]:
    """Return the keys of the messages of a file."""
    return [row["key"] for batch in containers.read(str(path)) for row in batch.to_pylist()]


def events(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the events of a file of Debezium's messages, without what differs between files."""
    found = [json.loads(line) for line in decode_files("debezium_json", [str(path)], options)]
    return [{name: value for name, value in event.items() if name != "origin"} for event in found]


@in_each_container
@pytest.mark.parametrize("key", ['{"id":7}', ' {"id": 7}\n', "null", '{"schema":null,"payload":{"id":7}}'])
def test_a_key_in_base64_is_the_key(tmp_path: Path, write: Write, key: str) -> None:
    """An object or null that stands in Base64 is what it was in Kafka."""
    write(tmp_path / "records", rows_of([(text_of(key.encode()), "{}")]))
    assert keys(tmp_path / "records") == [key.encode()]


@in_each_container
@pytest.mark.parametrize("key", ["abcd", "eyes", "e3sh", "1234", "", '{"id":7}', '"abcd"', "AP8=", "no base64", "é"])
def test_a_key_that_is_no_base64_of_an_object_stays(tmp_path: Path, write: Write, key: str) -> None:
    """A plain text may look like Base64, also like Base64 of what begins as an object does."""
    write(tmp_path / "records", rows_of([(key, "{}"), (None, "{}")]))
    assert keys(tmp_path / "records") == [key.encode(), None]


def envelope() -> list[Record]:
    """Return a row that is deleted: the log of its table has the key alone, so its zero says nothing."""
    key = b'{"id":4}'
    row = {"id": 4, "label": "left", "weight": 9}
    inserted = {"before": None, "after": row, "source": {**SOURCE, "lsn": 700}, "op": "c"}
    deleted = {
        "before": {"id": 4, "label": None, "weight": 0},
        "after": None,
        "source": {**SOURCE, "lsn": 705},
        "op": "d",
    }
    return [(key, json.dumps(inserted).encode()), (key, json.dumps(deleted).encode())]


def flattened() -> list[Record]:
    """Return a flattened row, and the tombstone that deletes it."""
    return [(b'{"id":4}', b'{"id":4,"label":"left","__op":"c","__lsn":700}'), (b'{"id":4}', None)]


FLATTENED = {"flattened": True, "table": "depot.public.bins"}


@in_each_container
@pytest.mark.parametrize(("records", "options"), [(envelope(), {}), (flattened(), FLATTENED)], ids=["envelope", "flat"])
def test_base64_changes_no_event(tmp_path: Path, write: Write, records: list[Record], options: dict[str, Any]) -> None:
    """Keys, deletes by tombstones and deleted rows are those of the same records as text."""
    write(tmp_path / "plain", rows_of([(key and key.decode(), value and value.decode()) for key, value in records]))
    write(tmp_path / "coded", rows_of([(text_of(key), text_of(value)) for key, value in records]))
    expected = events(tmp_path / "plain", **options)
    assert [event["operation"] for event in expected] == ["INSERT", "DELETE"]
    assert events(tmp_path / "coded", **options) == expected


class Polled:
    """A record as Confluent's client gives it."""

    def __init__(self, offset: int, record: Record) -> None:
        self._offset = offset
        self._record = record

    def error(self) -> None:
        """Return no error."""

    def topic(self) -> str:
        """Return the topic."""
        return "depot"

    def partition(self) -> int:
        """Return the partition."""
        return 0

    def offset(self) -> int:
        """Return the offset."""
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the time, and the time."""
        return 1, 1_790_000_000_000

    def key(self) -> bytes | None:
        """Return the key."""
        return self._record[0]

    def value(self) -> bytes | None:
        """Return the value."""
        return self._record[1]


def consumer_of(records: Sequence[Record]) -> type:
    """Return a consumer that gives these records and then none."""
    left: Iterator[Polled] = (Polled(offset, record) for offset, record in enumerate(records))

    class Consumer:
        def __init__(self, _settings: dict[str, str]) -> None: ...

        def subscribe(self, _topics: list[str]) -> None: ...

        def poll(self, _seconds: float) -> Polled | None:
            return next(left, None)

        def close(self) -> None: ...

    return Consumer


@pytest.mark.parametrize(("records", "options"), [(envelope(), {}), (flattened(), FLATTENED)], ids=["envelope", "flat"])
def test_the_script_of_the_page_writes_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[Record], options: dict[str, Any]
) -> None:
    """Its dump gives the events of the records, with their keys."""
    (script,) = re.findall(r"```text\n(import base64.*?)```", PAGE.read_text(), re.DOTALL)
    client = ModuleType("confluent_kafka")
    client.Consumer = consumer_of(records)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "confluent_kafka", client)
    monkeypatch.setattr(sys, "argv", ["dump.py", "depot"])
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(compile(script, str(PAGE), "exec"), {})  # noqa: S102 - a text of the repository
    (tmp_path / "dump.jsonl").write_text(written.getvalue())
    as_lines(tmp_path / "plain", rows_of([(key and key.decode(), value and value.decode()) for key, value in records]))
    expected = events(tmp_path / "plain", **options)
    assert [event["operation"] for event in expected] == ["INSERT", "DELETE"]
    assert events(tmp_path / "dump.jsonl", **options) == expected
