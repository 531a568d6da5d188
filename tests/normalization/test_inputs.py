"""Metadata that decoding needs is collected first and handed in, without Spark and on its workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile

from support.replicate_messages import ID, column, in_json, metadata, row
from support.running import run_all
from tidemark import formats
from tidemark.events import Message
from tidemark.lake.data_files import FileWriter, TableFolder
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW
from tidemark.normalization import decoding, inputs, tasks
from tidemark.normalization.parts import RawPart, messages_in
from tidemark.sources.model import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGE = Message(value=b"{}", file="a.json", place=1)
ROW = in_json("DT", row("INSERT", {"id": 1, "status": "new"}))
TOLD = in_json("MD", metadata({"id": column(1, "INT8", key=1), "status": column(2, "STRING")}))


@pytest.mark.parametrize(
    "files", [[ROW + b"\n", TOLD + b"\n"], [TOLD + b"\n", ROW + b"\n"], [ROW + b"\n" + TOLD + b"\n"]]
)
def test_metadata_is_collected_before_the_first_message_is_decoded(files: list[bytes], tmp_path: Path) -> None:
    """In one dump or in two, before its rows or behind them: the rows are read, in the order of the dump."""
    paths = [tmp_path / f"{number}.json" for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    events = [json.loads(line) for line in decoding.decode_files("replicate_json", list(map(str, paths)), {})]
    assert {event.get("operation", "schema change") for event in events} == {"INSERT", "schema change"}
    assert ("schema_change" in events[0]) == files[0].startswith(TOLD)
    assert next(event["key"] for event in events if "key" in event) == ["id"]


def test_row_without_metadata_says_what_to_do(tmp_path: Path) -> None:
    """A row whose metadata is in none of the files has a reason of its own."""
    path = tmp_path / "a.json"
    path.write_bytes(ROW + b"\n")
    (event,) = map(json.loads, decoding.decode_files("replicate_json", [str(path)], {}))
    assert event["quarantined"]["reason"] == "missing_metadata"
    assert "land the dump of the metadata topic" in event["quarantined"]["detail"]


def test_metadata_that_cannot_be_read_is_left_to_decoding() -> None:
    """A broken metadata message, and one on which the format stumbles, hide no other."""
    module = formats.informed(formats.resolve("replicate_json"))
    assert module is not None
    broken = [
        TOLD[:-1],
        TOLD.replace(b"INT8", b"INT8\xff"),
        b"tableStructure" * 1000,
        b"[" * 100_000 + b"tableStructure",
    ]
    messages = [msgspec.structs.replace(MESSAGE, value=value) for value in [None, *broken, ROW, TOLD]]
    ((id_, content),) = decoding.metadata_of(module, messages, module.Options())
    assert id_ == ID
    assert b"INT8" in content


def test_workers_collect_metadata_and_decode_by_it(tmp_path: Path) -> None:
    """The metadata in any part of ``raw`` is one set, and its rows are decoded by it."""
    targets = {name: _target(tmp_path / name, schema) for name, schema in SCHEMAS.items()}
    raw, part = targets["raw"], _raw_part(targets["raw"], [ROW, TOLD, TOLD])
    collected = _done(tasks.collect(part, format_name="replicate_json", options={}, raw=raw)).metadata
    assert [each[0] for each in collected] == [ID]
    known = formats.gather(collected)
    for given_, kinds in ((known, ["change", "schema_change"]), (formats.NOTHING, ["schema_change"])):
        decoding = tasks.Decoding(format_name="replicate_json", options={}, known=given_)
        outputs = tasks.Outputs(log=targets["log"], quarantine=targets["quarantine"])
        transactions = tasks.KnownTransactions()
        done = _done(tasks.normalize(part, decoding=decoding, raw=raw, outputs=outputs, transactions=transactions))
        assert sorted(str(file.partition[1]) for file in done.files) == kinds
        assert done.tallies[1].quarantined == ("change" not in kinds)
        assert len(done.set_aside) == done.tallies[1].quarantined


SCHEMAS = {"raw": RAW, "log": CHANGE_LOG, "quarantine": QUARANTINE}


def _target(folder: Path, schema: pa.Schema) -> TableFolder:
    folder.mkdir()
    return TableFolder(filesystem=pafs.LocalFileSystem(), folder=str(folder), location=folder.as_uri(), schema=schema)


def _raw_part(raw: TableFolder, values: list[bytes]) -> bytes:
    landed_at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"batch": 1, "file": "f", "place": place, "value": value, "landed_at": landed_at}
        for place, value in enumerate(values, 1)
    ]
    writer = FileWriter(raw)
    writer.write((1,), pa.RecordBatch.from_pylist(rows, schema=RAW))
    (file,) = writer.close()
    return msgspec.json.encode([RawPart(path=file.location.removeprefix("file://"), batch=1, first=0, last=1)])


@pytest.mark.parametrize("offsets", [[4, 90, 180], [4], None, []], ids=str)
def test_every_row_group_is_read_once(offsets: object, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the entry of a file does not say where its row groups begin, or of all of them, as other engines do."""
    monkeypatch.setattr("tidemark.lake.data_files.ROW_GROUP_BYTES", 1)
    name = "".join(letter for letter in str(offsets) if letter.isalnum())
    raw = lake.ensure(("raw", f"groups_{name}"), RAW, {}, partition_by=["batch"])
    target = lake.folder_of(raw, RAW)
    writer = FileWriter(target)
    for place in range(3):
        writer.write((1,), pa.RecordBatch.from_pylist([{"batch": 1, "file": "f", "place": place}], schema=RAW))
    lake.append_files(raw, writer.close(), {})
    monkeypatch.setattr(DataFile, "split_offsets", property(lambda _: offsets))
    parts = [part for part, _ in inputs.parts(raw.refresh(), AlwaysTrue())]
    read = [rows.column("place").to_pylist() for part in parts for rows in messages_in(part, target)]
    assert sorted(place for places in read for place in places) == [0, 1, 2]
    assert len(parts) == max(1, len(offsets or ()))  # type: ignore[arg-type]


def _done(text: bytes) -> tasks.Done:
    return msgspec.json.decode(text, type=tasks.Done)


def test_formats_without_metadata_are_not_asked() -> None:
    """A format of two arguments is called with two, and no pass is made over its messages."""
    assert formats.informed(formats.resolve("canal_json")) is None
    asking = formats.informed(formats.resolve("replicate_avro"))
    assert asking is not None
    assert asking.METADATA_MARK == b"tableStructure"


@given(pairs=st.lists(st.tuples(st.sampled_from("ab"), st.binary(max_size=2))), data=st.data())
def test_what_is_known_is_a_set(pairs: list[tuple[str, bytes]], data: st.DataObject) -> None:
    """Neither the order nor the number of times that metadata is sent shows in what is known."""
    again = data.draw(st.permutations([*pairs, *pairs[:3]]))
    assert formats.gather(again) == formats.gather(pairs)
    assert list(formats.gather(again)) == list(formats.gather(pairs))


@pytest.mark.spark
def test_runs_find_the_metadata_of_earlier_runs(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Metadata behind a row is there for the rows of the next run; a row that landed before it is set aside."""
    made = source("replicate_json")
    rows = [in_json("DT", row("INSERT", {"id": number, "status": "new"}, seq=number)) for number in (1, 2, 3)]
    for number, messages in enumerate([[rows[0]], [rows[1], TOLD], [rows[2]]]):
        (tmp_path / "landing" / f"{number}.json").write_bytes(b"".join(message + b"\n" for message in messages))
        run_all(made)
    published = lake.load((made.source, "orders")).scan().to_arrow().to_pylist()
    assert sorted(each["id"] for each in published) == [2, 3]
    quarantined = lake.load(("quarantine", made.source)).scan().to_arrow().to_pylist()
    assert [(each["reason"], each["value"]) for each in quarantined] == [("missing_metadata", rows[0])]
