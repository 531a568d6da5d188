"""Dump files to messages: every container and compression, verbatim, in order; cut and damaged files refused."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import json
import os
import resource
import tarfile
import time
import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.rounds import how_many
from tidemark.dumps import beyond_limit, containers, datahub_csv, stored_file
from tidemark.dumps.beyond_limit import Header, header_of
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import LandingError

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
}
LINE = b'{"id": 1, "name": "a"}'
KAFKA_LINE = b'{"topic":"t","partition":2,"offset":7,"timestamp":1700000000000,"key":"k","value":"{}"}'

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["}", '"', "\\"])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)
steps = st.sampled_from([1, 2, 3, 7, 64, 1 << 20])
_EXAMPLES = how_many(usually=50, proving=120)
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=_EXAMPLES)


def write(folder: Path, name: str, content: bytes) -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content)
    return str(path)


def rows(path: str, **limits: int) -> list[dict[str, Any]]:
    """All messages of a file; checks on the way that batches have the schema and are not empty."""
    batches = list(containers.read(path, **limits))
    assert all(batch.schema == containers.MESSAGES and batch.num_rows for batch in batches)
    assert containers.inspect(path).messages == sum(batch.num_rows for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def values(path: str, **limits: int) -> list[bytes | None]:
    """Values of all messages of a file."""
    return [row["value"] for row in rows(path, **limits)]


def places_and_values(path: str, **limits: int) -> list[tuple[int, bytes | None]]:
    """Places and values of all messages of a file."""
    return [(row["place"], row["value"]) for row in rows(path, **limits)]


def dumped(messages: Sequence[Any], **options: Any) -> list[bytes]:
    """Each message as JSON text."""
    return [json.dumps(message, **options).encode() for message in messages]


@pytest.mark.more
@relaxed
@given(
    messages=st.lists(json_values, max_size=6),
    codec=st.sampled_from(["ascii", "utf-8"]),
    ending=st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \t\r\n"]),
    endings_less=st.sampled_from([0, 1]),
    suffix=st.sampled_from(list(COMPRESSIONS)),
    step=steps,
)
def test_json_lines_come_back_verbatim(
    tmp_path: Path, messages: list[Any], codec: str, ending: bytes, endings_less: int, suffix: str, step: int
) -> None:
    """A line is a message at its line number; blank lines and kinds of line ends are none of it."""
    lines = dumped(messages, ensure_ascii=codec == "ascii")
    text = ending.join(lines) + ending * (1 - endings_less)
    path = write(tmp_path, f"a.json{suffix}", COMPRESSIONS[suffix](text))
    if len(lines) == 1 and lines[0].startswith(b"["):
        lines = dumped(messages[0], ensure_ascii=codec == "ascii")
        expected = list(enumerate(lines, 1))
    else:
        expected = [(1 + ending.count(b"\n") * number, line) for number, line in enumerate(lines)]
    assert places_and_values(path, batch_bytes=step, batch_messages=2) == expected


@pytest.mark.more
@relaxed
@given(
    messages=st.lists(json_values, max_size=6),
    layout=st.sampled_from([(b"[", b",", b"]"), (b"[\n", b",\n", b"\n]\n"), (b" [ ", b" \r\n, ", b" ] ")]),
    indent=st.sampled_from([None, 0, 2]),
    suffix=st.sampled_from(list(COMPRESSIONS)),
    step=steps,
)
def test_array_comes_back_verbatim(
    tmp_path: Path, messages: list[Any], layout: tuple[bytes, bytes, bytes], indent: int | None, suffix: str, step: int
) -> None:
    """An element of the array is a message, at its ordinal, with its own blanks and line ends."""
    elements = dumped(messages, indent=indent, ensure_ascii=False)
    text = layout[0] + layout[1].join(elements) + layout[2]
    path = write(tmp_path, f"a.json{suffix}", COMPRESSIONS[suffix](text))
    assert places_and_values(path, batch_bytes=step, batch_messages=2) == list(enumerate(elements, 1))
    assert containers.inspect(path).container == "json_array"


@pytest.mark.more
@relaxed
@given(
    first=st.dictionaries(st.text(), json_values, min_size=1, max_size=2),
    messages=st.lists(json_objects, max_size=6),
    indent=st.sampled_from([0, 2]),
    between=st.sampled_from([b"", b"\n", b" ", b"\n\n", b"\r\n"]),
    suffix=st.sampled_from(list(COMPRESSIONS)),
    step=steps,
)
def test_pretty_printed_values_come_back_verbatim(
    tmp_path: Path, first: Any, messages: list[Any], indent: int, between: bytes, suffix: str, step: int
) -> None:
    """Objects one after another, over any number of lines, are messages at their ordinals."""
    texts = dumped([first, *messages], indent=indent, ensure_ascii=False)
    path = write(tmp_path, f"a.json{suffix}", COMPRESSIONS[suffix](between.join(texts)))
    assert places_and_values(path, batch_bytes=step, batch_messages=2) == list(enumerate(texts, 1))
    assert containers.inspect(path).container == "json_values"


records = st.fixed_dictionaries(
    {
        "topic": st.text(),
        "partition": st.integers(0, 2**31 - 1),
        "offset": st.integers(0, 2**63 - 1),
        "timestamp": st.none() | st.integers(-1, 2**63 - 1),
        "key": st.none() | st.text(),
        "value": st.none() | json_objects,
    }
)


@pytest.mark.more
@relaxed
@given(
    wrapped=st.lists(records, min_size=1, max_size=6),
    encoding=st.sampled_from(["text", "base64", "embedded"]),
    suffix=st.sampled_from(list(COMPRESSIONS)),
    step=steps,
)
def test_kafka_lines_come_back_verbatim(
    tmp_path: Path, wrapped: list[dict[str, Any]], encoding: str, suffix: str, step: int
) -> None:
    """A Kafka record in JSON gives its value, as text, Base64 or embedded, its key and where it stood in Kafka."""
    expected, lines = [], []
    for place, record in enumerate(wrapped, 1):
        value = None if record["value"] is None else json.dumps(record["value"]).encode()
        key = None if record["key"] is None else record["key"].encode()
        expected.append({**record, "place": place, "value": value, "key": key})
        written = {
            "text": value and value.decode(),
            "base64": value and base64.b64encode(value).decode(),
            "embedded": record["value"],
        }
        lines.append(json.dumps({**record, "value": written[encoding]}) + "\n")
    path = write(tmp_path, f"k.json{suffix}", COMPRESSIONS[suffix]("".join(lines).encode()))
    assert rows(path, batch_bytes=step, batch_messages=2) == expected
    assert containers.inspect(path).kafka


@pytest.mark.more
@relaxed
@given(wrapped=st.lists(records, min_size=1, max_size=6), kind=st.sampled_from([pa.binary(), pa.string()]), step=steps)
def test_kafka_parquet_comes_back_verbatim(
    tmp_path: Path, wrapped: list[dict[str, Any]], kind: pa.DataType, step: int
) -> None:
    """A row of Parquet is a message at its row number, its value binary or text."""
    expected = [
        {
            **record,
            "place": place,
            "value": None if record["value"] is None else json.dumps(record["value"]).encode(),
            "key": None if record["key"] is None else record["key"].encode(),
        }
        for place, record in enumerate(wrapped, 1)
    ]
    schema = pa.schema(
        [("value", kind), *[field for field in containers.MESSAGES if field.name not in {"value", "place"}]]
    )
    table = {name: [row[name] for row in expected] for name in schema.names}
    if kind == pa.string():
        table["value"] = [value and value.decode() for value in table["value"]]
    pq.write_table(pa.table(table, schema=schema), tmp_path / "k.parquet")
    assert rows(str(tmp_path / "k.parquet"), batch_bytes=step, batch_messages=2) == expected
    assert containers.inspect(str(tmp_path / "k.parquet")).container == "parquet"


def test_parquet_columns_are_read_as_kafka_has_them(tmp_path: Path) -> None:
    """Other integer and time types fit, Base64 text is decoded, what is not needed may lack or be more."""
    table = pa.table(
        {
            "topic": pa.array(["t"]).dictionary_encode(),
            "partition": pa.array([3], pa.uint8()),
            "offset": pa.array([2**40], pa.uint64()),
            "timestamp": pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")),
            "value": pa.array([base64.b64encode(b"\x00\xff").decode()], pa.large_string()),
            "headers": [[1]],
        }
    )
    pq.write_table(table, tmp_path / "a")
    assert rows(str(tmp_path / "a")) == [
        {
            "place": 1,
            "key": None,
            "value": b"\x00\xff",
            "topic": "t",
            "partition": 3,
            "offset": 2**40,
            "timestamp": 1_700_000_000_123,
        }
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', b'{"a": 1}'),
        (" [1] ", b" [1] "),
        ("AAEC/w==", b"\x00\x01\x02\xff"),
        (" AAEC\n", b"\x00\x01\x02"),
        ("AAEC/w", b"AAEC/w"),
        ("AA-_", b"AA-_"),
        ("no base64", b"no base64"),
        ("é", "é".encode()),
        ("null", b"null"),
        ("", b""),
    ],
)
def test_value_text_is_json_or_strict_base64_or_itself(tmp_path: Path, text: str, expected: bytes) -> None:
    """Only whole, padded Base64 in the standard alphabet is decoded; JSON text never is."""
    line = json.dumps({"topic": "t", "partition": 0, "offset": 1, "value": text}).encode()
    assert values(write(tmp_path, "a.json", line)) == [expected]


@pytest.mark.parametrize(
    "broken",
    [
        b'{"topic":"t","partition":0,"offset":1,"value":',
        b'{"topic":"t","partition":0,"offset":1}',
        b'{"topic":"t","partition":"0","offset":1,"value":null}',
        b'{"topic":"t","partition":2147483648,"offset":1,"value":null}',
        b'{"topic":"t","partition":0,"offset":9223372036854775808,"value":null}',
        b'{"topic":"t","partition":0,"offset":1,"value":7}',
        b'{"topic":"t","partition":0,"offset":1,"value":"\\ud800"}',
        b'{"topic":"t","partition":0,"offset":1,"value":"\xff"}',
        b'{"topic":"\xff","partition":0,"offset":1,"value":"x"}',
        b'{"topic":"t","partition":0,"offset":1,"key":7,"value":"x"}',
        b"not JSON",
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("place", [1, 2])
def test_broken_kafka_record_is_kept_as_it_stands(tmp_path: Path, broken: bytes, place: int) -> None:
    """A wrapper that cannot be read is a message of its own bytes, wherever it stands, and its neighbours are read."""
    good = {"place": 3 - place, "key": b"k", "value": b"{}", "topic": "t", "partition": 2, "offset": 7}
    good["timestamp"] = 1_700_000_000_000
    bad = dict.fromkeys(containers.MESSAGES.names) | {"place": place, "value": broken}
    lines = [broken, KAFKA_LINE] if place == 1 else [KAFKA_LINE, broken]
    path = write(tmp_path, "a.json", b"\n".join(lines) + b"\n")
    assert rows(path) == ([bad, good] if place == 1 else [good, bad])


@pytest.mark.parametrize(
    ("text", "container", "expected"),
    [
        (b"", "json_lines", []),
        (b" \n\r\n\t", "json_lines", []),
        (b'\xef\xbb\xbf{"a":1}\n{"b":2}', "json_lines", [b'{"a":1}', b'{"b":2}']),
        (b'\xef\xbb\xbf[{"a":1},{"b":2}]', "json_array", [b'{"a":1}', b'{"b":2}']),
        (b'{"a": {\n{"b":2}\n', "json_lines", [b'{"a": {', b'{"b":2}']),
        (b'{"a": "b\n{"b":2}\n{"c":3}\n', "json_lines", [b'{"a": "b', b'{"b":2}', b'{"c":3}']),
        (b'{"a":1}x\n{"b":2}\n', "json_lines", [b'{"a":1}x', b'{"b":2}']),
        (b'{"a":}\n{"b":2}\n', "json_lines", [b'{"a":}', b'{"b":2}']),
        (b'[INFO] begin\n{"b":2}\n', "json_lines", [b"[INFO] begin", b'{"b":2}']),
        (b'[{"a":\n{"b":2}\n', "json_lines", [b'[{"a":', b'{"b":2}']),
        (b'{"b":2}\n{"a": [\n{"c":3}\n', "json_lines", [b'{"b":2}', b'{"a": [', b'{"c":3}']),
        (b'[1]\n{"a":\n[2]\n', "json_lines", [b"[1]", b'{"a":', b"[2]"]),
        (b"broken\n", "json_lines", [b"broken"]),
        (b"broken\nbroken\n", "json_lines", [b"broken", b"broken"]),
        (b"\xff\x00\n", "json_lines", [b"\xff\x00"]),
        (b'{"a":1}x\n', "json_lines", [b'{"a":1}x']),
        (b'["a","b"]\n["c"]\n', "json_lines", [b'["a","b"]', b'["c"]']),
        (b"[" * 100_000 + b"\n" + LINE + b"\n", "json_lines", [b"[" * 100_000, LINE]),
        (b'{"a":1}{"b":2}', "json_values", [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\n{\n"b":2\n}', "json_values", [b'{"a":1}', b'{\n"b":2\n}']),
        (b'{\n"rows": [\n{"a":1}\n]\n}', "json_values", [b'{\n"rows": [\n{"a":1}\n]\n}']),
        (b'{\n"a": tru}\n{\n"b": 1}\n', "json_values", [b'{\n"a": tru}', b'{\n"b": 1}']),
        (b'[{"a": tru},{"b": 1}]', "json_array", [b'{"a": tru}', b'{"b": 1}']),
        (b'[\n{"a": tru},\n{"b": 1}\n]\n', "json_array", [b'{"a": tru}', b'{"b": 1}']),
        (b"[]", "json_array", []),
    ],
)
def test_broken_message_does_not_change_the_container(
    tmp_path: Path, text: bytes, container: str, expected: list[bytes]
) -> None:
    """The container is known by all the messages at the beginning, so that one broken message spoils only itself."""
    path = write(tmp_path, "a.json", text)
    assert values(path) == expected
    assert containers.inspect(path).container == container


def tar(kind: int) -> bytes:
    """Return an archive with one dump file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=kind) as members:
        member = tarfile.TarInfo("a.json")
        member.size = len(LINE)
        members.addfile(member, io.BytesIO(LINE))
    return archive.getvalue()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a":1}\n{"b":', "line 2: the file ends inside a message"),
        (b'{"b":', "ends inside"),
        (b'[{"a":1},{"b":2}', "byte 16 of the expanded text: the text ends inside"),
        (b'[{"a":1},', "byte 9 of the expanded text: the text ends inside"),
        (b"[", "the text ends inside"),
        (b'[{"a":1}] x', "byte 10 of the expanded text: something follows the array"),
        (b'[{"a":1} {"b":2}]', "ends inside a message"),
        (b'[{"a":1},{"b":2} {"c":3}]', "byte 17 of the expanded text: expected one of , ]"),
        (b'[{"a":1},]', "no JSON value begins here"),
        (b'[{"a":1},nul]', "byte 9 of the expanded text: no JSON value begins here"),
        (b'{\n"a":1}\n{\n"b":', "byte 15 of the expanded text: the text ends inside"),
        (b'{\n"a":1}\n{\n"b": [}', "byte 17 of the expanded text: a bracket closes"),
        (b'{\n"a":1}\n}\n', "byte 9 of the expanded text: neither an object nor an array"),
        (b'{\n"a":1}\n{\n"b": "c\n"}', "a line ends in a string"),
        (b"PK\x03\x04", "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (tar(tarfile.USTAR_FORMAT), "a tar archive, which is not read; unpack"),
        (tar(tarfile.GNU_FORMAT), "a tar archive, which is not read; unpack"),
        (gzip.compress(tar(tarfile.PAX_FORMAT), mtime=0), "a tar archive, which is not read; unpack"),
        (b"Obj\x01\x04", "cut: the Avro file ends"),
        ("[]".encode("utf-16"), "UTF-16"),
        (gzip.compress(gzip.compress(LINE, mtime=0), mtime=0), "compressed twice"),
    ],
)
def test_cut_or_foreign_text_is_refused_whole(tmp_path: Path, text: bytes, reason: str) -> None:
    """What cannot be split into messages is refused, naming the file, the place and what to do."""
    path = write(tmp_path, "a.json", text)
    with pytest.raises(LandingError, match=reason) as caught:
        containers.inspect(path)
    assert path in str(caught.value)


def test_a_text_with_the_letters_of_an_archive_is_none(tmp_path: Path) -> None:
    """A text has no byte of zero behind them, wherever they stand."""
    line = b'{"a":"' + b"c" * 251 + b'ustar  "}'
    assert values(write(tmp_path, "a.json", line + b"\n")) == [line]


HEADER = "_sequence_id_,id,name\n"

cells = (
    st.none() | st.text(st.characters(codec="utf-8")) | st.sampled_from(["", '"', ",", "a\nb", "a\r\n", "null", " "])
)


def quoted(cell: str | None, *, always: bool) -> str:
    """Write a cell of CSV, in quotation marks where it must be or where all are."""
    if cell is None:
        return ""
    must = always or cell == "" or cell.isspace() or any(sign in cell for sign in '",\r\n')
    return '"' + cell.replace('"', '""') + '"' if must else cell


@pytest.mark.more
@relaxed
@given(
    table=st.lists(st.tuples(st.integers(0), cells, cells), max_size=6),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
    endings_less=st.sampled_from([0, 1]),
    always=st.booleans(),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    suffix=st.sampled_from(list(COMPRESSIONS)),
    step=steps,
)
def test_rows_of_csv_come_back_as_objects(
    tmp_path: Path,
    table: list[tuple[int, str | None, str | None]],
    ending: str,
    endings_less: int,
    always: bool,  # noqa: FBT001 - drawn
    mark: bytes,
    suffix: str,
    step: int,
) -> None:
    """A row is an object of texts at the line it begins on; an empty cell is null, a quoted empty one empty text."""
    names = ["_sequence_id_", "naïve, name", "third"]
    lines = [",".join(quoted(name, always=always) for name in names)]
    expected, number = [], 1 + ending.count("\n")
    for sequence, *others in table:
        row = [str(sequence), *others]
        lines.append(",".join(quoted(cell, always=always) for cell in row))
        expected.append((number, dict(zip(names, row, strict=True))))
        number += lines[-1].count("\n") + ending.count("\n")
    text = mark + (ending.join(lines) + ending * (1 - endings_less)).encode()
    for name in (f"a.csv{suffix}", f"a{suffix}"):
        path = write(tmp_path, name, COMPRESSIONS[suffix](text))
        found = places_and_values(path, batch_bytes=step, batch_messages=2)
        assert [(place, json.loads(value or b"")) for place, value in found] == expected
        assert containers.inspect(path).container == "csv"
        assert not containers.inspect(path).kafka


@pytest.mark.parametrize(
    ("name", "text", "container"),
    [
        ("a.txt", "id,_sequence_id_\n1,2\n", "csv"),
        ("a", '"new_dts_sync_dts_record_id","id"\r\n"1","2"\r\n', "csv"),
        ("a", "dts_record_id,dts_id\n", "csv"),
        ("a", "dts_record_id", "csv"),
        ("A.CSV", "id,name\n1,2\n", "csv"),
        ("a.csv", '{"_sequence_id_":"1"}\n', "json_lines"),
        ("a.csv", '[{"_sequence_id_":"1"}]', "json_array"),
        ("a.csv", "", "json_lines"),
        ("a.json", "my_dts_record_id,id\n", "json_lines"),
        ("a.json", "broken, _sequence_id_, line\n{}\n", "json_lines"),
        ("a.csv.json", "id,name\n", "json_lines"),
    ],
)
def test_csv_is_told_by_its_name_or_its_header(tmp_path: Path, name: str, text: str, container: str) -> None:
    """The sequence column of Tuple rows in the first line says CSV, so does the name; JSON is JSON by any name."""
    assert containers.inspect(write(tmp_path, name, text.encode())).container == container


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEADER + "1,2,a\n1,2\n", "line 3: 2 cells where the header has 3"),
        (HEADER + "1,2,a,\n", "line 2: 4 cells where the header has 3"),
        (HEADER + '1,"a\nb",x\n1\n', "line 4: 1 cells where the header has 3"),
        (HEADER + '1,2,a"b\n', "line 2: a quotation mark|line 2: the file ends inside a quoted cell"),
        (HEADER + '1,2,"a"b\n', "line 2: a quotation mark inside or behind a cell"),
        (HEADER + '1,2,a""b\n', "line 2: a quotation mark inside or behind a cell"),
        (HEADER + '1,2,a\n1,2,"b\n1,2,c\n', "line 3: the file ends inside a quoted cell"),
        ("_sequence_id_,id,id\n", "line 1: the header names a column twice: id"),
        ("_sequence_id_,,id\n", "line 1: the header has a column without a name"),
        (HEADER.replace("\n", "\r") + "1,2,a\r", "line 1: the header has a carriage return without a line feed"),
        (HEADER.replace("\n", "\r\r\n") + "1,2,a\n", "line 1: the header has a carriage return without"),
        ('_sequence_id_,""\n', "line 1: the header has a column without a name"),
    ],
)
def test_ragged_or_broken_csv_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    """Cells that belong to no column are never guessed: the error names the file, the line and the problem."""
    path = write(tmp_path, "a.csv", text.encode())
    with pytest.raises(LandingError, match=reason) as caught:
        containers.inspect(path)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "unended"),
    [
        ("1,2,abc", True),
        ("1,2,abc ", True),
        ("1,2,", True),
        ('1,"2",abc', True),
        ("1,2,abc\n", False),
        ("1,2,abc\r\n", False),
        ("1,2,abc\r", False),
        ('1,2,"abc"', False),
        ("", False),
    ],
)
def test_a_last_row_of_csv_without_an_end_is_noticed(tmp_path: Path, ending: str, *, unended: bool) -> None:
    """Its last cell may be cut, unless a quotation mark closes it; the row is read all the same."""
    for suffix, compress in COMPRESSIONS.items():
        path = write(tmp_path, f"a.csv{suffix}", compress((HEADER + "1,2,a\n" + ending).encode()))
        found = containers.inspect(path)
        assert (found.unended, found.messages) == (unended, 1 + bool(ending))


def test_a_last_row_of_csv_is_read_however_it_is_cut_into_chunks(tmp_path: Path) -> None:
    """An empty chunk ends no row and loses none."""
    with stored_file.opened(write(tmp_path, "a.csv", b"")) as stored:
        for ending, count in (([b"3,", b"4,c", b""], 2), ([b"3,", b"", b"4,c"], 2), ([b"", b""], 1)):
            chunks = iter([HEADER.encode(), b"", b"1,2,", b"a\n", *ending])
            assert sum(len(rows) for _, rows in datahub_csv.groups(chunks, stored, 1)) == count


def test_a_header_of_csv_with_many_columns_twice_is_refused_at_once(tmp_path: Path) -> None:
    """Each name is counted once, however many there are."""
    header = ",".join(f"c{number}" for number in range(100_000))
    began = time.process_time()
    with pytest.raises(LandingError, match="line 1: the header names a column twice: c0, c1, c10, "):
        containers.inspect(write(tmp_path, "a.csv", f"{header},{header}\n1,2\n".encode()))
    assert time.process_time() - began < 10  # about 1; in the square of the names it is minutes


def test_a_row_of_csv_that_is_no_utf8_is_kept_as_it_stands(tmp_path: Path) -> None:
    """Its decoder sets it aside with its bytes, and its neighbours are read."""
    path = write(tmp_path, "a.csv", HEADER.encode() + b"1,2,a\n2,\xff,b\n3,4,c\n")
    assert [value for value in values(path) if value and value[:1] != b"{"] == [b"2,\xff,b"]
    assert len(values(path)) == 3
    with pytest.raises(LandingError, match="line 1: the header is not UTF-8"):
        containers.inspect(write(tmp_path, "b.csv", b"_sequence_id_,\xff\n1,2\n"))


def test_a_row_of_csv_that_is_too_long_is_set_aside_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its neighbours are read, with the numbers of their lines; so is one at the limit."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    fits = HEADER + "1,2," + "x" * 50 + "\n"
    assert len(values(write(tmp_path, "a.csv", fits.encode()), batch_bytes=30, limit=100)) == 1
    for row in ("1,2," + "x" * 1000, '1,2,"' + "x" * 1000 + '"', "1,2," + "x" * 70):
        path = write(tmp_path, "b.csv", f"{HEADER}1,2,a\n{row}\n3,4,c\n".encode())
        for step in (30, 1 << 16):
            (first, long, last) = values(path, batch_bytes=step, limit=100)
            assert (b'"a"' in (first or b""), b'"c"' in (last or b"")) == (True, True)
            assert header_of(long) is not None


def test_a_row_of_csv_without_a_certain_end_refuses_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long row with line ends in it may be a quotation mark left open, which would swallow the rows behind it."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    for row in ('1,2,"' + "\n" * 100 + '"', '1,2,"' + "x\n" * 1000, '1,2,"' + "x" * 200 + '\n"'):
        with pytest.raises(LandingError, match=r"line 2: a row of more than .*max_message_mib"):
            containers.inspect(write(tmp_path, "b.csv", f"{HEADER}{row}\n".encode()), limit=100)


def test_long_names_of_csv_columns_are_no_bomb(tmp_path: Path) -> None:
    """Short rows under a long header are counted as what they become."""
    names = ",".join(["_sequence_id_", *(f"{number}{'x' * 2000}" for number in range(1000))])
    path = write(tmp_path, "a.csv", gzip.compress((names + "\n" + ("," * 1000 + "\n") * 400).encode()))
    with pytest.raises(LandingError, match="bomb"):
        containers.inspect(path)


def test_large_csv_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """A file of many times the memory allowed is streamed."""
    path = tmp_path / "a.csv"
    block = ("1,2," + "x" * 1000 + "\n") * 1000
    with path.open("w") as file:
        file.write(HEADER)
        for _ in range(200):
            file.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert containers.inspect(str(path)).messages == 200_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB


def parquet_row(tmp_path: Path, *, batch_bytes: int = 1 << 20, **columns: pa.Array) -> list[dict[str, Any]]:
    """Write Tuple rows as Parquet and return the objects that they become."""
    count = len(next(iter(columns.values())))
    table = pa.table({"_sequence_id_": pa.array(range(count), pa.int64()), **columns})
    pq.write_table(table, tmp_path / "t.parquet")
    return [json.loads(value or b"") for value in values(str(tmp_path / "t.parquet"), batch_bytes=batch_bytes)]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**63 - 1, -(2**63), None]), ["9223372036854775807", "-9223372036854775808", None]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([Decimal("12345678901234567890.123456789012345678")]), ["12345678901234567890.123456789012345678"]),
        (pa.array([Decimal("1.10"), Decimal("-0.00")], pa.decimal128(5, 2)), ["1.10", "0.00"]),
        (pa.array([Decimal("0.0000000001")], pa.decimal256(60, 10)), ["0.0000000001"]),
        (pa.array([5e-324, 1.7976931348623157e308, 0.1 + 0.2]), ["5e-324",
         "1.7976931348623157e+308", "0.30000000000000004"]),
        (pa.array([3.14, None], pa.float32()), ["3.14", None]),
        (pa.array([float("nan"), float("inf"), float("-inf")]), ["nan", "inf", "-inf"]),
        (pa.array([True, False, None]), [True, False, None]),
        (pa.array(["", '😀\0"', None]), ["", '😀\0"', None]),
        (pa.array(["a", "a", None]).dictionary_encode(), ["a", "a", None]),
        (pa.array([b"", b"\x00\xff\x80", None]), ["", "AP+A", None]),
        (pa.array([-719162, 2932896, 0], pa.int32()).cast(pa.date32()), ["0001-01-01", "9999-12-31", "1970-01-01"]),
        (pa.array([253402300799999999, -1], pa.timestamp("us")),
         ["9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999"]),
        (pa.array([-62135596800000], pa.timestamp("ms")), ["0001-01-01T00:00:00.000000"]),
        (pa.array([0], pa.timestamp("us", "Asia/Shanghai")), ["1970-01-01T00:00:00.000000Z"]),
        (pa.array([1700000000123456789, 1000], pa.timestamp("ns")),
         ["2023-11-14T22:13:20.123456789", "1970-01-01T00:00:00.000001"]),
        (pa.array([86399999999], pa.time64("us")), ["23:59:59.999999"]),
        (pa.array([1000], pa.time32("ms")), ["00:00:01.000000"]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_values_of_tuple_rows_in_parquet_are_exact(tmp_path: Path, column: pa.Array, expected: list[object]) -> None:
    """Numbers are all their digits as text, times ISO 8601, bytes Base64."""
    found = parquet_row(tmp_path, c=column)
    assert [row["c"] for row in found] == expected
    assert [row["_sequence_id_"] for row in found] == [str(number) for number in range(len(expected))]


def test_tuple_rows_in_parquet_are_messages_at_their_row_numbers(tmp_path: Path) -> None:
    """In the order of the file, whatever the size of a batch; they are no Kafka records."""
    table = pa.table({"dts_record_id": list(map(str, range(7))), "dts_name": [f"{n}" * 10 for n in range(7)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3)
    path = str(tmp_path / "t.parquet")
    expected = [(n + 1, f'{{"dts_record_id":"{n}","dts_name":"{str(n) * 10}"}}'.encode()) for n in range(7)]
    assert places_and_values(path, batch_messages=2, batch_bytes=20) == places_and_values(path) == expected
    inspection = containers.inspect(path)
    assert (inspection.container, inspection.kafka, inspection.messages) == ("parquet", False, 7)


def test_a_text_in_parquet_that_is_no_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    """Its decoder sets the row aside with its bytes."""
    column = pa.Array.from_buffers(pa.string(), 1, pa.array([b"a\xffb"]).buffers())
    pq.write_table(pa.table({"_sequence_id_": ["1"], "c": column}), tmp_path / "t.parquet")
    assert values(str(tmp_path / "t.parquet")) == [b'{"_sequence_id_":"1","c":"a\xffb"}']


@pytest.mark.parametrize("column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([5], pa.duration("s"))])
def test_nested_columns_of_tuple_rows_are_refused(tmp_path: Path, column: pa.Array) -> None:
    """DataHub has no such types; the error names the column and its type."""
    with pytest.raises(LandingError, match=r"Parquet column c is (list|struct|duration)"):
        parquet_row(tmp_path, c=column)


def test_parquet_bomb_of_tuple_rows_is_refused(tmp_path: Path) -> None:
    """One large value that a dictionary repeats is counted before it is expanded."""
    value = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * (1 << 20)]))
    with pytest.raises(LandingError, match="bomb"):
        parquet_row(tmp_path, c=value)


@pytest.mark.more
@relaxed
@given(count=st.integers(1, 40), suffix=st.sampled_from([".gz", ".zst", ".bz2"]), share=st.floats(0, 1))
@example(count=3, suffix=".gz", share=0.0)
def test_cut_compressed_file_is_refused(tmp_path: Path, count: int, suffix: str, share: float) -> None:
    """A compressed file cut at any byte is refused, even at none."""
    stored = COMPRESSIONS[suffix](b"".join(b'{"id": %d}\n' % number for number in range(count)))
    path = write(tmp_path, f"a.json{suffix}", stored[: int(share * (len(stored) - 1))])
    with pytest.raises(LandingError, match="fetch the file again"):
        containers.inspect(path)


@pytest.mark.more
@relaxed
@given(count=st.integers(1, 20), cut=st.integers(0, 200))
def test_cut_plain_lines_are_refused_or_fewer(tmp_path: Path, count: int, cut: int) -> None:
    """Plain lines cut at a line end, with or without it, are fewer messages; cut elsewhere they are refused."""
    lines = [b'{"id": %d}' % number for number in range(count)]
    text = b"\n".join(lines)[:cut]
    path = write(tmp_path, "a.json", text)
    whole = text.split(b"\n")
    if whole[-1] and not whole[-1].endswith(b"}"):
        with pytest.raises(LandingError, match="ends inside"):
            containers.inspect(path)
    else:
        assert values(path) == [line for line in whole if line]
        assert [line for line in whole if line] == lines[: len([line for line in whole if line])]


@pytest.mark.more
@relaxed
@given(data=st.data(), suffix=st.sampled_from([".gz", ".bz2", ".zst"]))
def test_flipped_bit_is_refused_or_harmless(tmp_path: Path, data: st.DataObject, suffix: str) -> None:
    """One flipped bit in a checksummed stream never gives other messages (a gzip header holds bits without meaning)."""
    lines = [b'{"id": %d, "name": "%x"}' % (number, number * 2654435761 % 2**32) for number in range(50)]
    stored = bytearray(COMPRESSIONS[suffix](b"\n".join(lines)))
    bit = data.draw(st.integers(0, len(stored) * 8 - 1))
    stored[bit // 8] ^= 1 << bit % 8
    path = write(tmp_path, f"a.json{suffix}", bytes(stored))
    try:
        assert values(path) == lines
    except LandingError as error:
        assert path in str(error)  # noqa: PT017  both outcomes are right


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2"])
def test_members_one_after_another_are_one_content(tmp_path: Path, suffix: str) -> None:
    """A message may begin in one compressed member and end in the next; anything else after a member is refused."""
    compress = COMPRESSIONS[suffix]
    members = compress(LINE + b"\n" + LINE[:5]) + compress(b"") + compress(LINE[5:] + b"\n")
    assert values(write(tmp_path, f"a{suffix}", members)) == [LINE, LINE]
    assert values(write(tmp_path, "no_suffix", members)) == [LINE, LINE]
    for tail in (b"garbage", b"\0" * 512, members[:1], members[:7]):
        with pytest.raises(LandingError, match="damaged or cut"):
            containers.inspect(write(tmp_path, f"b{suffix}", members + tail))


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2"])
@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.csv", b"_sequence_id_,id,name\n1,2,abc\n3,4,def", 2),
        ("a.csv", b'_sequence_id_,id,name\n1,2,"a\nc"\n3,4,' + b"d" * 70, 2),
        ("a.json", b'{"a":1}\n{"b":2}', 2),
        ("a.json", b'[{"a":1},\n12,"%s"]' % (b"x" * 70), 3),
        ("a.json", b'{\n"a":1}\n{"b":"%s"}' % (b"x" * 70), 2),
    ],
)
def test_an_empty_member_at_any_place_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: bytes, count: int, suffix: str
) -> None:
    """Joined files may have one between two parts, and behind a last row that has no line end."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    compress = COMPRESSIONS[suffix]
    expected = places_and_values(write(tmp_path, name, text), batch_bytes=30, limit=60)
    assert len(expected) == count
    for at in range(1, len(text) + 1):
        members = compress(text[:at]) + compress(b"") + compress(text[at:])
        path = write(tmp_path, f"{name}{suffix}", members)
        assert places_and_values(path, batch_bytes=30, limit=60) == expected


def test_an_end_mark_in_a_read_of_its_own_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last read of a bzip2 file may have nothing but the last bytes of its end mark."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    packed = bz2.compress(f"{HEADER}1,2,abc\n3,4,def".encode())
    path = write(tmp_path, "a.csv.bz2", packed)
    for rest in range(1, 12):
        monkeypatch.setattr(stored_file, "_BZ2_STEP", len(packed) - 8 - rest)
        assert len(values(path)) == 2


def test_name_that_promises_another_content_is_refused(tmp_path: Path) -> None:
    """A plain or empty file is not what its compressed name says; the content decides which compression it is."""
    for name, content in {"a.gz": LINE, "b.zst": b"", "c.parquet": LINE}.items():
        with pytest.raises(LandingError, match="does not begin as"):
            containers.inspect(write(tmp_path, name, content))
    assert values(write(tmp_path, "d.bz2", gzip.compress(LINE))) == [LINE]


RECORD_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "key": pa.string(),
    "value": pa.string(),
}


@pytest.mark.parametrize("where", ["here", "store"])
@pytest.mark.parametrize("columns", [("_sequence_id_", "c"), tuple(RECORD_TYPES)], ids=["rows", "records"])
def test_parquet_that_changes_after_it_was_hashed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, columns: tuple[str, ...]
) -> None:
    """It is read twice, once for its checksum; other bytes of the same number and time may stand there the second."""
    path = tmp_path / "a.parquet"
    types = [RECORD_TYPES.get(name, pa.string()) for name in columns]
    one, other = (pa.table([pa.array([1 + n] * 5).cast(t) for t in types], [*columns]) for n in (0, 1))
    pq.write_table(other, path)
    written = path.read_bytes()
    pq.write_table(one, path)
    if where == "store":
        store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
        monkeypatch.setattr(stored_file, "locate", lambda _: (store, "a.parquet"))
    status = path.stat()

    def exchange(_: pa.RecordBatch) -> None:
        path.write_bytes(written)
        if where == "here":
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert containers.inspect(str(path)).messages == 5
    assert len(written) == status.st_size
    time.sleep(0.02)  # a file system counts times of change by the clock's ticks
    with pytest.raises(LandingError, match=r"a\.parquet: changed while it was read; land it when its writer is done"):
        containers.inspect(str(path), exchange)


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    """Parquet without its footer, or with a page that does not unpack, is refused."""
    table = pa.table({"topic": ["t"] * 500, "partition": [0] * 500, "offset": range(500), "value": ["{}"] * 500})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    stored = (tmp_path / "a.parquet").read_bytes()
    damaged = stored[:4] + bytes(len(stored) - 504) + stored[-500:]
    for content in (stored[:-1], stored[: len(stored) // 2], b"PAR1", stored[:-8] + b"\xff" * 8, damaged):
        with pytest.raises(LandingError, match=r"a\.parquet"):
            containers.inspect(write(tmp_path, "a.parquet", content))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"topic": ["t"], "offset": [1]}, "without column partition, value"),
        ({"topic": ["t"], "partition": [0.5], "offset": [1], "value": ["{}"]}, "column partition is double"),
        ({"topic": ["t"], "partition": [2**31], "offset": [1], "value": ["{}"]}, "cannot be read"),
    ],
)
def test_parquet_of_other_columns_is_refused(tmp_path: Path, columns: dict[str, list[Any]], reason: str) -> None:
    """Parquet that is no Kafka dump says which column lacks or has the wrong type."""
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(LandingError, match=reason):
        containers.inspect(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["value", "key", "topic", "partition", "offset", "timestamp"])
def test_parquet_of_kafka_records_that_names_a_column_twice_is_refused(tmp_path: Path, name: str) -> None:
    """Which of the two holds the message is not known. A column that is not read may be there twice."""
    columns = {
        "topic": ["t"], "partition": [0], "offset": [4], "timestamp": [5], "key": [b"k"], "value": [b"{}"], "note": [1],
    }  # fmt: skip
    path = tmp_path / "twice.parquet"
    for again in (name, "note"):
        arrays = [*map(pa.array, columns.values()), pa.array(columns[again])]
        pq.write_table(pa.Table.from_arrays(arrays, names=[*columns, again]), path)
        if again == "note":
            assert values(str(path)) == [b"{}"]
            continue
        with pytest.raises(LandingError, match=rf"twice\.parquet: Parquet that names a column twice: {name}; write"):
            containers.inspect(str(path))


@pytest.mark.parametrize("late", [False, True], ids=["opened", "read"])
def test_what_no_reader_foresaw_refuses_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    """The error names the file. What fails when a batch is written is no fault of the file, and stays as it is."""
    path = write(tmp_path, "odd.jsonl", LINE)

    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("no such thing")

    with pytest.raises(ZeroDivisionError):
        containers.inspect(path, fails)
    if late:
        monkeypatch.setattr(containers, "_TO_BATCH", dict.fromkeys(Wrapping, fails))
    else:
        monkeypatch.setattr(containers, "layout_of", lambda *_, **__: fails())
    for run in (containers.inspect, rows):
        with pytest.raises(LandingError, match=r"odd\.jsonl: cannot be read.*\(ZeroDivisionError: no such thing\)"):
            run(path)


def test_parquet_with_an_offset_without_a_partition_is_refused(tmp_path: Path) -> None:
    """Offsets of several partitions are no order. Rows without either stand in the order of the file."""
    rows = {"topic": ["t"] * 3, "offset": [7, None, 8], "value": ["{}"] * 3}
    kind = pa.schema(
        [("topic", pa.string()), ("offset", pa.int64()), ("value", pa.string()), ("partition", pa.int32())]
    )
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**rows, "partition": [0, None, None]}, schema=kind), path)
    with pytest.raises(LandingError, match=r"a\.parquet: .*row 3: an offset without a partition"):
        containers.inspect(str(path))
    pq.write_table(pa.table({**rows, "partition": [0, 5, 1]}, schema=kind), path)
    found = pa.Table.from_batches(containers.read(str(path))).to_pydict()
    assert (found["partition"], found["offset"]) == ([0, 5, 1], [7, None, 8])


@pytest.mark.parametrize(
    ("suffix", "compressor"),
    [
        (".gz", zlib.compressobj(wbits=31)),
        (".zst", zstandard.ZstdCompressor().compressobj()),
        (".bz2", bz2.BZ2Compressor()),
    ],
)
def test_bomb_stops_early_in_bounded_memory(tmp_path: Path, suffix: str, compressor: Any) -> None:
    """One stream of 256 MiB in a few hundred KiB is refused after 64 MiB, in little time and memory."""
    block = (LINE + b"\n").ljust(1 << 20)
    stored = b"".join([*(compressor.compress(block) for _ in range(256)), compressor.flush()])
    path = write(tmp_path, f"a{suffix}", stored)
    assert len(stored) < 1 << 20
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(LandingError, match="bomb"):
        containers.inspect(path)
    assert time.process_time() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB


def test_parquet_bomb_is_refused(tmp_path: Path) -> None:
    """One large value that a dictionary repeats is counted before it is expanded."""
    value = pa.DictionaryArray.from_arrays(
        pa.array([0] * 100_000, pa.int32()), pa.array([b"x" * (1 << 20)], pa.binary())
    )
    names = ["topic", "partition", "offset", "value"]
    count = pa.array([0] * 100_000)
    pq.write_table(pa.table([count.cast(pa.string()), count, count, value], names=names), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 2 << 20
    with pytest.raises(LandingError, match="bomb"):
        containers.inspect(str(tmp_path / "a.parquet"))


def test_expanded_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit of expanded bytes a file is read, one byte above it is refused."""
    path = write(tmp_path, "a.json", LINE + b"\n")
    monkeypatch.setattr(stored_file, "EXPANDED_LIMIT", len(LINE) + 1)
    assert containers.inspect(path).messages == 1
    monkeypatch.setattr(stored_file, "EXPANDED_LIMIT", len(LINE))
    with pytest.raises(LandingError, match="expanded"):
        containers.inspect(path)


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (b"%s\n{}\n", 1),
        (b"{}\n%s\n", 1),
        (b"{}\n%s", 1),
        (b'{}\n%s\nno JSON\n{"b":1}\n', 3),
        (b"{}\r\n%s\r\n\r\n{}\r\n", 2),
        (b"[{},%s]", 1),
        (b"[%s ,\n{}]", 1),
        (b"{}\n{\n}%s{}", 3),
        (b"%s", 0),
        (b"%s\n%s\n{}", 1),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".bz2"])
def test_a_message_that_is_too_long_is_set_aside_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, others: int, suffix: str
) -> None:
    """A message of the limit is read, one byte more keeps its start, length and checksum, and the others are read."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    message = b'{"a":"' + b"x" * 92 + b'"}'
    pack = COMPRESSIONS[suffix]
    fits = write(tmp_path, f"a.json{suffix}", pack(text.replace(b"%s", message)))
    count = text.count(b"%s")
    assert values(fits, batch_bytes=30, limit=100).count(message) == count
    for long in (
        message[:50] + b" " + message[50:],
        rb'{"a":{"]}":["\\","\"}{",%s]},"b":"%s"}' % (b"[1]", b"y\\\\" * 400),
    ):
        path = write(tmp_path, f"b.json{suffix}", pack(text.replace(b"%s", long)))
        for step in (7, 30, 1 << 16):
            found = values(path, batch_bytes=step, limit=100)
            kept = [value for value in found if header_of(value)]
            assert (len(kept), len(found)) == (count, count + others)
            for value in kept:
                assert header_of(value) == Header(len(long), 100, hashlib.sha256(long).hexdigest())
                assert (value or b"").endswith(b"\n" + long)


def test_a_long_message_at_a_cut_end_refuses_its_file(tmp_path: Path) -> None:
    """The file is fetched again, and the message is not taken for a whole one."""
    for text in (b'{}\n{"a":"' + b"x" * 300, b'[{},{"a":"' + b"x" * 300 + b'"}', b'[{"a":"' + b"x" * 300):
        with pytest.raises(LandingError, match=r"ends inside|fetch"):
            containers.inspect(write(tmp_path, "a.json", text), limit=100)


def test_a_long_kafka_record_is_set_aside_alone(tmp_path: Path) -> None:
    """In JSON lines its line is too long; in Parquet it keeps topic, partition and offset, beside a tombstone too."""
    rows: dict[str, list[Any]] = {
        "topic": ["t"] * 4, "partition": [0] * 4, "offset": [1, 2, 3, 4], "key": [None, b"k", b"k" * 70_000, b"k"],
        "value": [None, b"x" * 70_000, b"y" * 200_000, b"{}"],
    }  # fmt: skip
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    (batch,) = [pa.Table.from_batches(containers.read(str(tmp_path / "a.parquet"), limit=66_000)).to_pydict()]
    assert (batch["offset"], batch["value"][0], batch["value"][3]) == ([1, 2, 3, 4], None, b"{}")
    assert batch["key"] == [None, b"k", None, b"k"]
    assert [getattr(header_of(value), "size", None) for value in batch["value"]] == [None, 70_001, 270_000, None]
    line = b'{"topic":"t","partition":0,"offset":%d,"value":"{%s}"}\n'
    path = write(tmp_path, "a.json", line % (1, b"") + line % (2, b" " * 200) + line % (3, b""))
    found = pa.Table.from_batches(containers.read(path, limit=100)).to_pydict()
    assert (found["offset"], found["place"]) == ([1, None, 3], [1, 2, 3])
    assert header_of(found["value"][1]) is not None


@pytest.mark.parametrize("key", [b"", b"k" * 100, b"k" * (66 << 10)])
def test_a_record_that_is_too_long_by_its_key_says_the_size_of_both(key: bytes) -> None:
    """So the limit that the reason asks for is one at which the record is read."""
    limit = 1 << 20
    _, value = beyond_limit.record(key, b"v" * (limit - 10), limit)
    header = header_of(value)
    assert header is not None
    assert (header.size, header.limit) == (limit - 10 + len(key), limit)
    assert f"`max_message_mib: {2 if key else 1}` or more" in beyond_limit.detail(header)


def test_a_file_that_begins_with_a_long_record_is_known_as_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first message that is not too long shows what the file holds."""
    monkeypatch.setattr(containers, "_BEGINNING", 10)
    line = b'{"topic":"t","partition":0,"offset":%d,"value":"{%s}"}\n'
    path = write(tmp_path, "a.json", (line % (1, b" " * 200)) * 3 + line % (2, b""))
    found = pa.Table.from_batches(containers.read(path, limit=100, batch_bytes=20)).to_pydict()
    assert found["offset"] == [None, None, None, 2]


def test_a_long_row_of_a_tuple_topic_is_set_aside_alone(tmp_path: Path) -> None:
    """Parquet of a TUPLE topic goes on behind it."""
    pq.write_table(pa.table({"_sequence_id_": ["1", "2", "3"], "a": ["x", "y" * 300, "z"]}), tmp_path / "t.parquet")
    found = values(str(tmp_path / "t.parquet"), limit=100)
    assert [header_of(value) is not None for value in found] == [False, True, False]


def test_a_long_message_takes_bounded_memory(tmp_path: Path) -> None:
    """A message of 200 MiB is skipped step by step, as a line, in an array, and as nothing but escapes."""
    for start, block, end in (
        (b'{}\n{"a":"', b"x" * 1024, b'"}\n{}\n'),
        (b'[{},{"a":"', b"x" * 1024, b'"},{}]'),
        (b'[{},"', b"\\n" * 512, b'",{}]'),
    ):
        path = tmp_path / "a.json"
        with path.open("wb") as file:
            file.write(start)
            for _ in range(200):
                file.write(block * 1024)
            file.write(end)
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        assert containers.inspect(str(path)).messages == 3
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10  # KiB
        assert time.process_time() - begun < 20


def test_special_files_are_refused(tmp_path: Path) -> None:
    """Links, pipes, devices, folders and absent files are refused at once, without waiting or following."""
    write(tmp_path, "a.json", LINE)
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in (tmp_path / "link.json", tmp_path / "pipe.json", "/dev/null", tmp_path, tmp_path / "absent"):
        with pytest.raises(LandingError, match="regular file"):
            containers.inspect(str(name))
    with pytest.raises(LandingError, match="regular file"):
        containers.inspect(f"file://{tmp_path}/link.json")
    assert values(f"file://{tmp_path}/a.json") == [LINE]


def test_inspection_tells_hash_and_size_of_the_stored_bytes(tmp_path: Path) -> None:
    """Hash and size are taken of the file as stored, in every container."""
    stored = gzip.compress(LINE + b"\n" + LINE)
    expected = containers.Inspection(
        sha256=hashlib.sha256(stored).hexdigest(), size=len(stored), messages=2, container="json_lines", kafka=False
    )
    assert containers.inspect(write(tmp_path, "a.gz", stored)) == expected
    pq.write_table(pa.table({"topic": ["t"], "partition": [0], "offset": [1], "value": ["{}"]}), tmp_path / "p")
    stored = (tmp_path / "p").read_bytes()
    inspection = containers.inspect(str(tmp_path / "p"))
    assert (inspection.sha256, inspection.size) == (hashlib.sha256(stored).hexdigest(), len(stored))


def test_another_file_than_the_one_meant_is_refused(tmp_path: Path) -> None:
    """A reading that is given a hash ends in an error when the file is another by then."""
    path = write(tmp_path, "a.json", LINE + b"\n")
    sha256 = hashlib.sha256(LINE + b"\n").hexdigest()
    assert containers.inspect(path, sha256=sha256).messages == 1
    write(tmp_path, "a.json", LINE.replace(b"1", b"2") + b"\n")
    with pytest.raises(LandingError, match="another file than before"):
        containers.inspect(path, sha256=sha256)


def test_inspection_gives_the_messages_that_it_counts(tmp_path: Path) -> None:
    """What an inspection gives is what a reader reads, up to the fault of a file that has one."""
    content = gzip.compress(b"\n".join([LINE] * 100_000))
    taken: list[pa.RecordBatch] = []
    path = write(tmp_path, "a.gz", content)
    assert containers.inspect(path, taken.append).messages == sum(batch.num_rows for batch in taken) == 100_000
    assert pa.Table.from_batches(taken) == pa.Table.from_batches(containers.read(path))
    taken.clear()
    with pytest.raises(LandingError, match="damaged or cut"):
        containers.inspect(write(tmp_path, "b.gz", content[:-9]), taken.append)
    assert taken


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.parquet"])
def test_growing_file_is_refused(tmp_path: Path, name: str) -> None:
    """A file that another process appends to, or cuts, while it is read is not landed."""
    for change in (lambda file: file.write(b"more"), lambda file: file.truncate(1)):
        path = write(tmp_path, name, LINE * 100)
        with stored_file.opened(path) as stored, Path(path).open("ab") as file:
            stored.head()
            change(file)
            file.flush()
            with pytest.raises(LandingError, match="changed while it was read"):
                stored.sha256()


def test_object_store_is_read_as_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URI is opened through its file system, in all containers; an absent object is an error that names it."""
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(stored_file, "locate", lambda path: (store, path.removeprefix("s3://")))
    write(tmp_path, "a.json.gz", gzip.compress(LINE))
    pq.write_table(pa.table({"topic": ["t"], "partition": [0], "offset": [1], "value": ["{}"]}), tmp_path / "a.parquet")
    assert values("s3://a.json.gz") == [LINE]
    assert values("s3://a.parquet") == [b"{}"]
    with pytest.raises(LandingError, match="s3://absent: not there"):
        containers.inspect("s3://absent")


@pytest.mark.parametrize("path", ["nosuch://a/b.json", "s3://"])
def test_unknown_store_is_a_landing_error(path: str) -> None:
    """A URI that no file system knows is refused by name."""
    with pytest.raises(LandingError, match=path):
        containers.inspect(path)
