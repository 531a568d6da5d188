"""A message that was too long when it landed is set aside with the remedy, and the remedy works."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import BaseModel

from tidemark.dumps import beyond_limit, containers
from tidemark.dumps.wrapping import Reading
from tidemark.events import Message, Quarantined
from tidemark.formats import names, resolve
from tidemark.lake.log_schemas import RAW
from tidemark.normalization.decoding import decode_message
from tidemark.normalization.raised_limits import with_raised_limit


def _landed(path: Path, limit: int) -> pa.RecordBatch:
    """Return the messages of a dump file as rows of raw."""
    messages = pa.Table.from_batches(containers.read(str(path), limit=limit)).combine_chunks().to_batches()[0]
    own = {
        "batch": pa.repeat(pa.scalar(1, pa.int32()), len(messages)),
        "file": pa.repeat(str(path), len(messages)),
        "checksum": pa.repeat(hashlib.sha256(path.read_bytes()).hexdigest(), len(messages)),
    }
    arrays = [
        messages.column(name)
        if name in messages.schema.names
        else own[name].cast(RAW.field(name).type)
        if name in own
        else pa.nulls(len(messages), RAW.field(name).type)
        for name in RAW.names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=RAW.names)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of three Kafka records, the second of which is long."""
    path = tmp_path / "a.jsonl"
    sizes = (1, 3000, 1)
    lines = [
        json.dumps({"topic": "t", "partition": 0, "offset": number, "value": json.dumps({"a": "x" * size})})
        for number, size in enumerate(sizes)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", names())
def test_every_format_sets_a_long_message_aside_with_the_remedy(name: str) -> None:
    """The detail names the length, the limit, and the setting that raises it."""
    module = resolve(name)
    options: BaseModel = module.Options.model_construct()
    kept = beyond_limit.within(b"x" * (20 << 20), 16 << 20)
    found = decode_message(module, Message(value=kept, file="f", place=1), options)
    assert isinstance(found, Quarantined)
    assert found.reason == "message_too_long"
    for part in ("20971520 bytes", "16777216", "`max_message_mib: 20`", "tidemark quarantine retry"):
        assert part in found.detail
    beyond = beyond_limit.TooLong(1)
    beyond.add(b"x")
    found = decode_message(module, Message(value=beyond.kept(1 << 40), file="f", place=1), options)
    assert isinstance(found, Quarantined)
    assert "128 at most" in found.detail


def test_what_is_kept_of_a_message_is_bounded() -> None:
    """The first 64 KiB, behind a line with length and checksum."""
    kept = beyond_limit.within(b"ab" * (1 << 20), 1 << 20)
    assert len(kept) < (64 << 10) + 300
    header = beyond_limit.header_of(kept)
    assert header is not None
    assert (header.size, header.sha256) == (2 << 20, hashlib.sha256(b"ab" * (1 << 20)).hexdigest())
    assert beyond_limit.header_of(beyond_limit.MARK + b"no header\n") is None


def test_a_message_is_read_again_once_the_limit_is_high_enough(dump: Path) -> None:
    """It comes back whole, with the place that Kafka gave it; its neighbours stay."""
    raw, whole = _landed(dump, 1000), _landed(dump, 1 << 20)
    assert with_raised_limit(raw, Reading(limit=1000)).equals(raw)
    assert with_raised_limit(whole, Reading(limit=1 << 20)) is whole
    assert with_raised_limit(raw, Reading(limit=1 << 20)).to_pylist() == whole.to_pylist()


def test_a_message_whose_file_is_gone_or_changed_stays_set_aside(dump: Path) -> None:
    """Another content is never taken for the message."""
    raw = _landed(dump, 1000)
    dump.write_text(dump.read_text().replace("xxx", "yyy"))
    assert with_raised_limit(raw, Reading(limit=1 << 20)).equals(raw)
    dump.unlink()
    assert with_raised_limit(raw, Reading(limit=1 << 20)).equals(raw)
