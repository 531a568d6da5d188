"""Dumps of kcat and of Kafka's console consumer: found where it is certain, and never a message taken for a record."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.histories import canal
from tidemark.cli.app import app
from tidemark.dumps import containers
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import LandingError

VALUE = b'{"op": "c", "after": {"id": 1, "note": "a\\tb"}}'
TABS = b'{"op":\t"c",\t"after": {"id":\t1}}'
ENVELOPED = b'{"schema": {}, "payload": {"op": "c", "after": {}}}'


def kcat(payload: Any, **fields: Any) -> bytes:
    """A record as kcat writes it."""
    record = {"topic": "t", "partition": 2, "offset": 7, "tstype": "create", "ts": 1700000000000, "broker": 1}
    return json.dumps({**record, "key": "k", "payload": payload, **fields}).encode()


def read(
    folder: Path, *lines: bytes, name: str = "dump.txt", wrapping: Wrapping | None = None
) -> list[tuple[Any, ...]]:
    """Key, value, topic, partition, offset and timestamp of the messages of a dump."""
    path = folder / name
    text = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found: list[tuple[Any, ...]] = []

    def take(batch: Any) -> None:
        found.extend(tuple(row.values())[1:] for row in batch.to_pylist())

    containers.inspect(str(path), take, wrapping=wrapping)
    return found


def plain(*values: bytes) -> list[tuple[Any, ...]]:
    """Messages that are no records."""
    return [(None, value, None, None, None, None) for value in values]


def test_records_of_kcat(tmp_path: Path) -> None:
    """Payload, key and place; null is a tombstone, a payload is never Base64, and a broken line stays as it is."""
    lines = [
        kcat('{"a": 1}'),
        kcat(None, key=None, tstype="unknown", ts=-1),
        kcat("aGVsbG8=", headers=["h", "v"], tstype="logappend"),
        kcat({"a": 1.10}, value_schema_id=5),
        kcat("x")[:-3],
    ]
    assert read(tmp_path, *lines, name="a.jsonl.gz") == [
        (b"k", b'{"a": 1}', "t", 2, 7, 1700000000000),
        (None, None, "t", 2, 7, None),
        (b"k", b"aGVsbG8=", "t", 2, 7, 1700000000000),
        (b"k", b'{"a": 1.1}', "t", 2, 7, 1700000000000),
        *plain(lines[-1]),
    ]
    assert read(tmp_path, b"[" + kcat("{}") + b"," + kcat("[]") + b"]")[1][:2] == (b"k", b"[]")


@pytest.mark.parametrize(
    "message",
    [
        kcat("x", __deleted="false"),
        kcat("x", tstype="CREATE"),
        kcat("x", partition="2"),
        kcat("x", partition=-1),
        kcat("x", ts="1"),
        kcat(None, offset=1.5),
        b'{"topic": "t", "partition": 2, "offset": 7, "payload": "x"}',
        b'{"data": [%s]}' % kcat("x"),
    ],
)
def test_messages_that_look_like_records_of_kcat(tmp_path: Path, message: bytes) -> None:
    """Another field, or one of another type, is a message's own; and one message that is none speaks for all."""
    assert read(tmp_path, message) == plain(message)
    assert read(tmp_path, kcat("x"), message) == plain(kcat("x"), message)


def test_the_source_file_has_the_last_word(tmp_path: Path) -> None:
    """``container: plain`` for a table that looks like records, another one where the content is not certain."""
    record = b'{"topic": "t", "partition": 2, "offset": 7, "value": "{}"}'
    assert read(tmp_path, record)[0][1] == b"{}"
    for line in (record, kcat("{}")):
        assert read(tmp_path, line, wrapping=Wrapping.PLAIN) == plain(line)
    line = b'{"op": "u"}\t' + VALUE
    assert read(tmp_path, line, wrapping=Wrapping.CONSOLE) == [(b'{"op": "u"}', VALUE, None, None, None, None)]
    assert read(tmp_path, VALUE, kcat("{}"), wrapping=Wrapping.KCAT)[1][1] == b"{}"
    assert read(tmp_path, b"k\t" + VALUE, name="a.csv", wrapping=Wrapping.CONSOLE)[0][:2] == (b"k", VALUE)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"key\t" + VALUE, (b"key", VALUE)),
        (b"42\t" + VALUE, (b"42", VALUE)),
        (b"key\t" + TABS, (b"key", TABS)),
        (b"null\t" + VALUE, (None, VALUE)),
        (b"key\tnull", (b"key", None)),
        (b"null\tnull", (None, None)),
        (b'{"id": 1}\t' + VALUE, (b'{"id": 1}', VALUE)),
        (b'{"id":\t1}\t' + TABS, (b'{"id":\t1}', TABS)),
        (b'{"id": 1}\t{"id": 1, "note": ""}', (b'{"id": 1}', b'{"id": 1, "note": ""}')),
        (b'{"schema": {}, "payload": {"id": 1}}\t' + ENVELOPED, (b'{"schema": {}, "payload": {"id": 1}}', ENVELOPED)),
        (b"CreateTime:1700000000000\t" + VALUE, (None, VALUE, None, None, None, 1700000000000)),
        (b"LogAppendTime:17\tkey\t" + VALUE, (b"key", VALUE, None, None, None, 17)),
        (b"NO_TIMESTAMP\tPartition:1\tOffset:12\tkey\tnull", (b"key", None, None, 1, 12, None)),
        (b"CreateTime:17\tPartition:0\tOffset:12\tkey\t" + VALUE, (b"key", VALUE, None, 0, 12, 17)),
        (b"CreateTime:17\tPartition:0\tOffset:12\tNO_HEADERS\tkey\t" + TABS, (b"key", TABS, None, 0, 12, 17)),
        (b"Partition:3\tOffset:12\t" + TABS, (None, TABS, None, 3, 12, None)),
        (b"Partition:3\tOffset:12\tnull", (None, None, None, 3, 12, None)),
        (b"Partition:3\tOffset:12\t\t" + VALUE, (b"", VALUE, None, 3, 12, None)),
        (b"Offset:12\tkey\t" + VALUE, (b"key", VALUE, None, None, None, None)),
    ],
)
def test_lines_of_the_console_consumer(tmp_path: Path, line: bytes, expected: tuple[Any, ...]) -> None:
    """Whatever fields were printed; an offset counts only with its partition; the last line needs no line end."""
    expected = (*expected, *[None] * (6 - len(expected)))
    assert read(tmp_path, line, b"", line + b"\r") == [expected, expected]
    (tmp_path / "one.txt").write_bytes(line)
    inspection = containers.inspect(str(tmp_path / "one.txt"))
    assert (inspection.container, inspection.kafka, inspection.messages) == ("console", True, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"Partition:0\tOffset:1\th:v\tkey\t" + VALUE,
        b"Partition:0\tOffset:1\tkey\t{broken",
        b"key\ttext",
        b"Partition:99999999999\tkey\tx",
        b'{"id": 1\t' + VALUE,
        b"\t".join([b"[" * 9] * 99),
    ],
)
def test_a_line_that_is_not_certain_stays_as_it_is(tmp_path: Path, line: bytes) -> None:
    """Headers look like a part of the key: its decoder sets the line aside, and the others are read."""
    good = b"Partition:0\tOffset:1\tkey\t" + VALUE
    found = read(tmp_path, good, good, line)
    assert found[:2] == [(b"key", VALUE, None, 0, 1, None)] * 2
    assert found[2:] == plain(line)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ([VALUE, TABS], [VALUE, TABS]),
        ([b"\t" + VALUE], [b"\t" + VALUE]),
        ([VALUE, b"key\t" + VALUE, b"key\t" + VALUE], [VALUE, b"key\t" + VALUE, b"key\t" + VALUE]),
        ([VALUE + b"\t" + TABS], [VALUE, TABS]),
        ([b'{"id": 1}\t{"id": 2, "note": ""}'], [b'{"id": 1}', b'{"id": 2, "note": ""}']),
        ([ENVELOPED + b"\t" + ENVELOPED], [ENVELOPED, ENVELOPED]),
        ([b'{"a":\t{"id": 1},', b'"b":\t{"id": 2}', b"}"], [b'{"a":\t{"id": 1},\n"b":\t{"id": 2}\n}']),
    ],
)
def test_messages_with_tabs(tmp_path: Path, text: list[bytes], values: list[bytes]) -> None:
    """Tabs between the parts of JSON, and between two messages of a line, make no record."""
    assert read(tmp_path, *text) == plain(*values)


def test_a_dump_that_ends_inside_a_line_is_refused(tmp_path: Path) -> None:
    """A key alone, or half a value, is no record."""
    for end in (b'{"id": 2}', b'{"id": 2}\tnul', b'{"id": 2}\t' + VALUE[:-1]):
        (tmp_path / "cut.txt").write_bytes(b'{"id": 1}\t' + VALUE + b"\n" + end)
        with pytest.raises(LandingError, match="ends inside a message"):
            containers.inspect(str(tmp_path / "cut.txt"))


def test_identify_tells_the_tool(tmp_path: Path) -> None:
    """Beside the format of the messages, which is found in them."""
    message = canal("orders", "INSERT", {"id": "bigint"}, ("1",), key=("id",))
    dumps = {"kcat": kcat(message.decode()), "console": b"Partition:0\tOffset:1\tnull\t" + message}
    for name, line in dumps.items():
        (tmp_path / name).write_bytes(line + b"\n")
    done = CliRunner().invoke(app, ["identify", *(str(tmp_path / name) for name in dumps)])
    assert "JSON lines of Kafka records, as kcat writes them" in done.stdout
    assert "lines of Kafka records, as the console consumer writes them" in done.stdout
    assert done.stdout.count("format: canal_json") == 2
