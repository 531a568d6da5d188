"""Avro object container files to messages: the very bytes of the data; cut, damaged and hostile files refused whole."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import dts_records
from tidemark.avro import skipping
from tidemark.avro.binary import varint
from tidemark.demo.renderers.dts_schema import record_schema
from tidemark.dumps import avro_file, beyond_limit, containers
from tidemark.errors import LandingError
from tidemark.normalization.decoding import decode_files

CODECS = ("null", "deflate", "snappy", "zstandard")
MARKER = bytes(range(16))
KAFKA = {
    "type": "record",
    "name": "KafkaRecord",
    "fields": [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": ["null", "long"]},
        {"name": "headers", "type": {"type": "map", "values": "bytes"}},
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
    ],
}
ROW = {
    "operation": "INSERT", "object": "shop.t", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}, "fields": [["id", 8]],
    "after": [{"Integer": "1"}],
}  # fmt: skip
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def number(value: int) -> bytes:
    """Write an Avro long."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def encoded(schema: Any, datum: Any) -> bytes:
    """Write one datum with fastavro."""
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), datum)
    return target.getvalue()


def compressed(content: bytes, codec: str) -> bytes:
    """Compress a block."""
    match codec:
        case "deflate":
            return zlib.compress(content, wbits=-15)
        case "snappy":
            packed: bytes = pa.compress(content, codec="snappy", asbytes=True)
            return packed + zlib.crc32(content).to_bytes(4, "big")
        case "zstandard":
            return zstandard.compress(content)
        case _:
            return content


def container(schema: Any, blocks: list[list[bytes]], codec: str = "null", **metadata: bytes) -> bytes:
    """Write a container by hand: one block for each list of encoded data."""
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode(), **metadata}
    entries = b"".join(number(len(name)) + name.encode() + number(len(value)) + value for name, value in header.items())
    text = b"Obj\x01" + number(len(header)) + entries + b"\0" + MARKER
    for block in blocks:
        content = compressed(b"".join(block), codec)
        text += number(len(block)) + number(len(content)) + content + MARKER
    return text


def write(folder: Path, content: bytes, name: str = "a.avro") -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content)
    return str(path)


def rows(path: str, **limits: int) -> list[dict[str, Any]]:
    """All messages of a file; inspection counts as many."""
    batches = list(containers.read(path, **limits))
    assert all(batch.schema == containers.MESSAGES and batch.num_rows for batch in batches)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert containers.inspect(path).messages == len(found)
    return found


def values(path: str, **limits: int) -> list[bytes | None]:
    """Values of all messages."""
    return [row["value"] for row in rows(path, **limits)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("born", [False, True])
def test_dts_records_come_out_as_they_stand(tmp_path: Path, codec: str, *, born: bool) -> None:
    """Each datum is one message with the bytes that a Kafka record would hold, whatever packs the blocks."""
    notations = [{**ROW, "id": n, **({"born": 1696984408731} if born else {})} for n in range(300)]
    data = [dts_records.encode(notation) for notation in notations]
    path = write(tmp_path, container(record_schema(born=born), [data[:100], [], data[100:]], codec))
    assert values(path, batch_messages=7) == data
    assert [row["place"] for row in rows(path, batch_bytes=1)] == list(range(1, 301))
    found = containers.inspect(path)
    assert (found.container, found.kafka) == ("avro", False)
    lines = [json.loads(line) for line in decode_files("dts_avro", [path], {})]
    assert {line["operation"] for line in lines} == {"INSERT"}


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_fastavro_are_read(tmp_path: Path, codec: str) -> None:
    """A file that another program wrote, in blocks of its own choice."""
    schema = record_schema(born=True)
    target = io.BytesIO()
    records = [dts_records.record(**{**ROW, "id": n}) for n in range(2000)]
    fastavro.writer(target, fastavro.parse_schema(schema), records, codec=codec)
    found = values(write(tmp_path, target.getvalue()))
    assert found == [dts_records.encode({**ROW, "id": n, "born": 0}) for n in range(2000)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".bz2"])
def test_a_compressed_container_is_read(tmp_path: Path, codec: str, suffix: str) -> None:
    """A container may be packed once more as a whole."""
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}[suffix]
    data = [number(n) for n in range(100)]
    path = write(tmp_path, pack(container({"type": "long"}, [data], codec)), f"a.avro{suffix}")
    assert values(path) == data


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_blocks_behind_an_empty_member_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    """The end of a compressed member, or one without content, is not the end of the container."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    text = container("bytes", [[number(2) + b"ab"], [number(2) + b"cd"]], note=b"a line end\n")
    for at in range(1, len(text) + 1):
        path = write(tmp_path, compress(text[:at]) + compress(b"") + compress(text[at:]), f"a.avro{suffix}")
        assert values(path, batch_bytes=30) == [b"ab", b"cd"]


def test_kafka_records_become_messages(tmp_path: Path) -> None:
    """Topic, partition, offset, time, key and value come through; a null value is a tombstone; headers stay behind."""
    binary = dts_records.encode(ROW)
    records = [
        {"topic": "t", "partition": 3, "offset": 2**40, "timestamp": 1700000000123, "headers": {"a": b"b"}, "key": b"k",
         "value": binary},
        {"topic": "t", "partition": 0, "offset": 0, "timestamp": None, "headers": {}, "key": None, "value": None},
    ]  # fmt: skip
    path = write(tmp_path, container(KAFKA, [[encoded(KAFKA, record) for record in records]]))
    assert containers.inspect(path).kafka
    assert rows(path) == [
        {"place": 1, "key": b"k", "value": binary, "topic": "t", "partition": 3, "offset": 2**40,
         "timestamp": 1700000000123},
        {"place": 2, "key": None, "value": None, "topic": "t", "partition": 0, "offset": 0, "timestamp": None},
    ]  # fmt: skip
    first, second = (json.loads(line) for line in decode_files("dts_avro", [path], {}))
    assert first["position"] == [1, 78, 67008, 1, 3, 2**40]
    assert second["control"] == "tombstone"


def _kafka_with(**types: Any) -> dict[str, Any]:
    fields = [{**field, "type": types.get(str(field["name"]), field["type"])} for field in KAFKA["fields"]]  # type: ignore[dict-item]
    return {**KAFKA, "fields": fields}


def _kafka_row(schema: dict[str, Any], **fields: Any) -> bytes:
    datum = {"topic": "t", "partition": 0, "offset": 0, "timestamp": None, "headers": {}, "key": None, "value": b"v"}
    return encoded(schema, {**datum, **fields})


def test_an_offset_without_a_partition_is_refused(tmp_path: Path) -> None:
    """Offsets of several partitions are no order. Records without either stand in the order of the file."""
    schema = _kafka_with(partition=["null", "int"], offset=["null", "long"])
    neither = _kafka_row(schema, partition=None, offset=None)
    path = write(tmp_path, container(schema, [[neither, _kafka_row(schema, partition=None, offset=41)]]))
    with pytest.raises(LandingError, match="an offset without a partition, which orders nothing"):
        containers.inspect(path)
    (row,) = rows(write(tmp_path, container(schema, [[neither]])))
    assert (row["partition"], row["offset"]) == (None, None)


def test_kafka_values_of_other_types(tmp_path: Path) -> None:
    """Text is JSON or Base64, as in JSON lines; an embedded Record is its binary form; times may be in microseconds."""
    text = _kafka_with(value="string", key="string")
    path = write(tmp_path, container(text, [[_kafka_row(text, key="k", value=v) for v in ('{"a": 1}', "AP8=", "x y")]]))
    assert [(row["key"], row["value"]) for row in rows(path)] == [
        (b"k", b'{"a": 1}'), (b"k", b"\0\xff"), (b"k", b"x y"),
    ]  # fmt: skip
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "long"}]}
    embedded = _kafka_with(value=["null", inner])
    path = write(tmp_path, container(embedded, [[_kafka_row(embedded, value={"a": 300})]]))
    assert values(path) == [number(300)]
    micros = _kafka_with(timestamp=["null", {"type": "long", "logicalType": "timestamp-micros"}])
    plain = _kafka_row(KAFKA, timestamp=1700000000123456)
    path = write(tmp_path, container(micros, [[plain]]))
    assert rows(path)[0]["timestamp"] == 1700000000123


def test_bytes_and_text_are_messages_of_their_own(tmp_path: Path) -> None:
    """A container of plain bytes or strings holds the messages without their length."""
    for schema, data in (("bytes", [b"", b"\0\xff"]), ("string", [b"", "é".encode()])):
        path = write(tmp_path, container(schema, [[number(len(each)) + each for each in data]]))
        assert values(path) == data


def test_a_union_is_its_branch(tmp_path: Path) -> None:
    """The list of types that DTS publishes makes a union: the branch's number is no part of the message."""
    schema = ["null", "long", record_schema(born=False)]
    data = dts_records.encode(ROW)
    path = write(tmp_path, container(schema, [[b"\x04" + data, b"\0", b"\x02" + number(7)]]))
    assert values(path) == [data, None, number(7)]


def test_an_empty_container_has_no_messages(tmp_path: Path) -> None:
    """A header without blocks is a whole file."""
    assert rows(write(tmp_path, container("long", []))) == []


@relaxed
@given(share=st.floats(0, 1, exclude_max=True), codec=st.sampled_from(CODECS))
def test_a_cut_file_is_refused(tmp_path: Path, share: float, codec: str) -> None:
    """Wherever it is cut: no message of it lands, unless it ends with a block."""
    head = container("long", [], codec)
    whole = container("long", [[number(n) for n in range(50)]] * 3, codec)
    cut = whole[: int(len(whole) * share)]
    block = (len(whole) - len(head)) // 3
    path = write(tmp_path, cut)
    if len(cut) >= len(head) and (len(cut) - len(head)) % block == 0:
        assert containers.inspect(path).messages == (len(cut) - len(head)) // block * 50
        return
    with pytest.raises(LandingError, match=r"a\.avro: "):
        containers.inspect(path)


@relaxed
@given(data=st.data(), codec=st.sampled_from(CODECS))
def test_a_flipped_bit_raises_landing_errors_only(tmp_path: Path, data: st.DataObject, codec: str) -> None:
    """A damaged file is refused with its name, or its data are the data of another sound file."""
    whole = bytearray(container(record_schema(born=True), [[dts_records.encode({**ROW, "born": 1})] * 5] * 2, codec))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path = write(tmp_path, bytes(whole))
    with contextlib.suppress(LandingError):
        assert containers.inspect(path).container == "avro"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "named .avro but does not begin as Avro"),
        (b'{"a": 1}\n', "named .avro but does not begin as Avro"),
        (container("long", [[number(1)]])[:-16] + bytes(16), "block 1: no sync marker behind it"),
        (container("long", [[number(1)]], "bzip2"), "codec b'bzip2'; known are null, deflate, snappy, zstandard"),
        (container("long", [[b"\x80"]]), "datum 1 of the Avro file is none of its schema"),
        (container("string", [[b"\x10abc"]]), "datum 1 of the Avro file is none of its schema"),
        (container("string", [[b"\x01"]]), "a negative length"),
        (container("long", [[number(1) + number(2)]]), "1 bytes follow datum 1"),
        (container("double", [[b"\0" * 7]]), "it is longer than its block"),
        (container(["null", "long"], [[b"\x04"]]), "branch 2 of a union of 2"),
        (container("long", [])[:-16] + MARKER + number(1) + number(1 << 40), "a block may have 64 MiB"),
        (container("long", [])[:-16] + MARKER + number(-1) + number(0), "-1 data in 0 bytes"),
        (b"Obj\x01\x02" + number(1 << 40), "an entry of 1099511627776 bytes"),
        (b"Obj\x01" + b"\xff" * 20, "a number of more than ten bytes"),
        (_kafka_row(KAFKA), "does not begin as Avro"),
        (container(_kafka_with(partition="string"), []), "`partition` of a Kafka record is string"),
        (container(KAFKA, [[_kafka_row(KAFKA, partition=-1)]]), "-1 is no partition, offset or time"),
        (container(KAFKA, [[_kafka_row(KAFKA, offset=-(2**62))]]), "is no partition, offset or time"),
    ],
)
def test_damaged_files_are_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    """The reason says what is wrong and where, and nothing of the file lands."""
    path = write(tmp_path, content)
    with pytest.raises(LandingError, match=reason):
        containers.inspect(path)


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
def test_damaged_blocks_are_refused(tmp_path: Path, codec: str) -> None:
    """What a codec cannot expand is named with its block."""
    for raw in (b"", b"\xff", b"\xff" * 40, compressed(b"a" * 100, codec)[:-6]):
        text = container("long", [], codec) + number(1) + number(len(raw)) + raw + MARKER
        with pytest.raises(LandingError, match=r"block 1: damaged|none of its schema|follow datum"):
            containers.inspect(write(tmp_path, text))


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path, codec: str) -> None:
    """A block that expands beyond the limit is never expanded whole, nor are many blocks beyond the ratio."""
    raw = compressed(bytes(avro_file.BLOCK_LIMIT + 1), codec)
    text = container("long", [], codec) + number(2) + number(len(raw)) + raw + MARKER
    with pytest.raises(LandingError, match="more than 64 MiB expanded"):
        containers.inspect(write(tmp_path, text))
    if codec != "snappy":
        many = container("bytes", [[number(8 << 20) + bytes(8 << 20)]] * 9, codec)
        with pytest.raises(LandingError, match="expands more than 200 times"):
            containers.inspect(write(tmp_path, many))


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_a_datum_that_is_too_long_is_set_aside_alone(tmp_path: Path, codec: str) -> None:
    """Its neighbours in the block and the blocks behind it are read."""
    texts = [b"a", b"b" * 300, b"c"]
    blocks = [[number(len(text)) + text for text in texts], [number(1) + b"d"]]
    path = write(tmp_path, container("bytes", blocks, codec))
    (first, long, *others) = values(path, limit=100)
    assert (first, others) == (b"a", [b"c", b"d"])
    header = beyond_limit.header_of(long)
    assert header is not None
    assert header.size == 300
    record = container(KAFKA, [[_kafka_row(KAFKA, value=b"x" * 300), _kafka_row(KAFKA, value=b"{}")]], codec)
    long_record, other = rows(write(tmp_path, record), limit=100)
    assert beyond_limit.header_of(long_record["value"]) is not None
    assert long_record["offset"] is not None
    assert other["value"] == b"{}"


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_block_of_one_datum_that_is_too_large_is_set_aside_alone(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is passed by in steps, and those behind it are read."""
    monkeypatch.setattr(avro_file, "BLOCK_LIMIT", 1000)
    large = number(5000) + bytes(5000)
    path = write(tmp_path, container("bytes", [[number(1) + b"a"], [large], [number(1) + b"b"]], codec))
    first, long, last = values(path, limit=100)
    assert (first, last) == (b"a", b"b")
    header = beyond_limit.header_of(long)
    assert header is not None
    assert header.size > 1000


def _doubling(depth: int, least: str) -> list[Any]:
    """Return a union of records each of which holds the one before it twice."""
    records: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": least}]}]
    for level in range(1, depth):
        fields = [{"name": name, "type": f"R{level - 1}"} for name in "ab"]
        records.append({"type": "record", "name": f"R{level}", "fields": fields})
    return records


def _nested(depth: int) -> Any:
    schema: Any = "long"
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}, "'L' contains itself"),
        ({"type": "array", "items": "null"}, "items that take no bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, "items that take no bytes"),
        ("null", "a datum takes no bytes"),
        ({"type": "record", "name": "E", "fields": []}, "a datum takes no bytes"),
        (_doubling(40, "long"), "more than 100000 parts"),
        (_nested(70), "nested too deeply"),
        ({"type": "fixed", "name": "F", "size": -1}, "a fixed of size -1"),
        ({"type": "fixed", "name": "F", "size": True}, "a fixed of size True"),
        ("strin", "unknown type 'strin'"),
        ({"type": "record", "fields": []}, "without a name"),
        ({"type": "record", "name": "R", "fields": 1}, "no list of fields"),
        ([{"type": "enum", "name": "R", "symbols": []}, {"type": "enum", "name": "R", "symbols": []}], "defined twice"),
        ([], "a union of nothing"),
        (7, "no type of Avro: 7"),
        ({}, "no type of Avro"),
    ],
)  # fmt: skip
def test_hostile_schemas_are_refused(tmp_path: Path, schema: Any, reason: str) -> None:
    """What would make reading run on, or run deep, shows in the schema alone."""
    path = write(tmp_path, container(schema, [[b"\x02" * 10_000]]))
    with pytest.raises(LandingError, match=reason):
        containers.inspect(path)


def test_schema_text_is_limited(tmp_path: Path) -> None:
    """A schema that is no JSON, nests brackets or is huge is refused at once."""
    for text in (b"{", b"[" * 100_000, b'"' + b"a" * (1 << 20) + b'"', b"\xff"):
        with pytest.raises(LandingError):
            containers.inspect(write(tmp_path, container("long", [], **{"avro.schema": text})))


def test_data_cannot_nest_deeper_than_their_schema(tmp_path: Path) -> None:
    """Reading is as deep as the schema, which is limited, however long the data."""
    path = write(tmp_path, container(_nested(50), [[b"\x02" * 100_000]]))
    before = time.process_time()
    with pytest.raises(LandingError, match="datum 1"):
        containers.inspect(path)
    assert time.process_time() - before < 2


names = st.sampled_from(["a", "b", "c"])
primitives = st.sampled_from(["boolean", "int", "long", "float", "double", "bytes", "string"])


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """Draw a schema without named types that repeat."""
    if depth == 0:
        return draw(primitives)
    inner = schemas(depth - 1)
    match draw(st.sampled_from(["primitive", "array", "map", "union", "record"])):
        case "array":
            return {"type": "array", "items": draw(inner)}
        case "map":
            return {"type": "map", "values": draw(inner)}
        case "union":
            return ["null", draw(primitives)]
        case "record":
            fields = [{"name": f"f{n}", "type": draw(inner)} for n in range(draw(st.integers(1, 3)))]
            return {"type": "record", "name": f"R{draw(st.uuids()).hex}", "fields": fields}
        case _:
            return draw(primitives)


def datum(schema: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a schema."""
    if isinstance(schema, list):
        return st.none() | datum(schema[1])
    if isinstance(schema, dict):
        match schema["type"]:
            case "array":
                return st.lists(datum(schema["items"]), max_size=3)
            case "map":
                return st.dictionaries(st.text(max_size=3), datum(schema["values"]), max_size=3)
            case _:
                return st.fixed_dictionaries({field["name"]: datum(field["type"]) for field in schema["fields"]})
    return {
        "boolean": st.booleans(), "int": st.integers(-(2**31), 2**31 - 1), "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32), "double": st.floats(), "bytes": st.binary(max_size=200),
        "string": st.text(max_size=200),
    }[schema]  # fmt: skip


@relaxed
@given(data=st.data())
def test_a_datum_ends_where_fastavro_ends_it(data: st.DataObject) -> None:
    """Whatever the schema, the end of each datum is where an independent reader stops."""
    schema = data.draw(schemas())
    parsed = fastavro.parse_schema(schema)
    first, second = (encoded(schema, data.draw(datum(schema))) for _ in range(2))
    stream = io.BytesIO(first + second)
    fastavro.schemaless_reader(stream, parsed, None)
    assert skipping.parse(json.dumps(schema).encode()).skip(first + second, 0) == stream.tell() == len(first)


@pytest.mark.parametrize(
    "items",
    [
        "double", "float", "boolean", {"type": "fixed", "name": "F", "size": 3},
        {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": "float"}]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["array", "map"])
@pytest.mark.parametrize("count", [10**6, -(10**6), 2**62])
def test_more_items_than_the_bytes_hold_are_refused_at_once(items: Any, kind: str, count: int) -> None:
    """The count is data of the file: no item is looked for where the bytes have no place for all of them."""
    schema = {"type": kind, "items" if kind == "array" else "values": items}
    size = number(9) if count < 0 else b""
    with pytest.raises(IndexError, match="more items than what is left holds"):
        skipping.parse(json.dumps(schema).encode()).skip(number(count) + size + bytes(64), 0)


def test_a_container_with_such_a_count_is_refused(tmp_path: Path) -> None:
    """It was read for as long as its count said."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "double"}}]}
    with pytest.raises(LandingError, match="more items than what is left holds"):
        rows(write(tmp_path, container(schema, [[number(10**6)]])))


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_zigzag(value: int) -> None:
    """Every long comes back, with the place behind it."""
    assert varint(number(value), 0) == (value, len(number(value)))
