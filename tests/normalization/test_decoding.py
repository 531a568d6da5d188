"""Dump files to canonical events without Spark, and hostile messages that must not stop a run."""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tidemark import formats
from tidemark.errors import ConfigurationError, LandingError, UnknownNameError, UnreadableValueError
from tidemark.events import (
    ChangeEvent,
    Column,
    ControlEvent,
    Encoding,
    Event,
    Message,
    Operation,
    Quarantined,
    Shape,
    TableId,
)
from tidemark.formats import Format
from tidemark.normalization import decoding
from tidemark.positions import changed

MESSAGE = Message(value=b"{}", file="a.json", place=1)
CANAL = (
    b'{"data":[{"id":"%d"}],"database":"shop","table":"orders","type":"INSERT","es":1600161894000,"id":1,'
    b'"isDdl":false,"mysqlType":{"id":"int"},"old":null,"pkNames":["id"],"sql":"","ts":1600161894771}'
)


class NoOptions(BaseModel):
    """Options of a format that has none."""


def module_that(decoder: Callable[[Message, Any], list[Event]]) -> Format:
    """Make a format module of one function."""
    return cast("Format", SimpleNamespace(Options=NoOptions, decode=decoder))


def giving(events: list[Event]) -> Format:
    """Make a format that gives the same events for every message."""
    return module_that(lambda *_: events)


def failing_with(error: Exception) -> Format:
    """Make a format that raises."""

    def decoder(message: Message, options: Any) -> list[Event]:
        raise error

    return module_that(decoder)


def outcome(error: Exception) -> Quarantined:
    """What becomes of a message whose decoder raises."""
    quarantined = decoding.decode_message(failing_with(error), MESSAGE, NoOptions())
    assert isinstance(quarantined, Quarantined)
    return quarantined


def test_events_of_a_message_are_given_as_they_are() -> None:
    """The guard changes nothing of what the format gives."""
    events: list[Event] = [ControlEvent(kind="heartbeat", position=changed(1))]
    assert decoding.decode_message(giving(events), MESSAGE, NoOptions()) is events


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnreadableValueError("total: 'x' is no decimal"), ("unreadable_value", "total: 'x' is no decimal")),
        (msgspec.DecodeError("truncated"), ("malformed", "DecodeError: truncated")),
        (RecursionError("too deep"), ("malformed", "RecursionError: too deep")),
        (ValueError("bad"), ("malformed", "ValueError: bad")),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ("malformed", None)),
        (KeyError("op"), ("decoder_failed", "KeyError: 'op'")),
        (TypeError("None"), ("decoder_failed", "TypeError: None")),
    ],
)
def test_whatever_a_decoder_raises_sets_the_message_aside(error: Exception, expected: tuple[str, str | None]) -> None:
    """A wrong message has the reason of its error; a decoder that stumbles has a reason of its own."""
    quarantined = outcome(error)
    assert quarantined.reason == expected[0]
    assert quarantined.detail == (expected[1] or quarantined.detail)


def test_detail_shows_control_signs_and_is_cut() -> None:
    """Terminal sequences, line ends and signs that turn text round are written out; other scripts are left."""
    assert outcome(UnreadableValueError("\x1b[31m\n表\u202e\ud800")).detail == r"\x1b[31m\n表\u202e\ud800"
    assert outcome(UnreadableValueError("x" * 300)).detail == "x" * 300
    assert outcome(UnreadableValueError("x" * 301)).detail == "x" * 299 + "…"


@given(text=st.text(st.characters(), max_size=1000))
def test_detail_is_bounded_and_steers_no_terminal(text: str) -> None:
    """No text makes a detail of more than 300 signs, or of one that a terminal would not just show."""
    detail = outcome(UnreadableValueError(text)).detail
    assert len(detail) <= 300
    assert not {"Cc", "Cs", "Zl", "Zp"}.intersection(map(unicodedata.category, detail))
    assert not {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}.intersection(
        map(unicodedata.bidirectional, detail)
    )


def test_files_are_decoded_in_the_order_of_the_dump(tmp_path: Path) -> None:
    """Events come file by file and line by line, a broken message in its place, all as lines of JSON."""
    first, second = tmp_path / "b.json", tmp_path / "a.json.gz"
    first.write_bytes(CANAL % 1 + b"\nbroken\n" + CANAL % 2 + b"\n")
    second.write_bytes(gzip.compress(CANAL % 3))
    lines = list(decoding.decode_files("canal_json", [str(first), str(second)], {}))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    events = [json.loads(line) for line in lines]
    assert [event.get("after", event.get("quarantined", {}).get("reason")) for event in events] == [
        {"id": "1"},
        "malformed",
        {"id": "2"},
        {"id": "3"},
    ]
    assert [event["origin"]["position"] for event in events] == [1, 2, 3, 1]
    assert [Path(event["origin"]["file"]).name for event in events] == ["b.json"] * 3 + ["a.json.gz"]


def test_place_in_kafka_reaches_the_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka record brings its key, topic, partition, offset and time to the format."""
    seen: list[Message] = []

    def decoder(message: Message, options: Any) -> list[Event]:
        seen.append(message)
        return []

    monkeypatch.setattr(decoding, "resolve", lambda _: module_that(decoder))
    path = tmp_path / "a.json"
    path.write_text('{"topic":"t","partition":1,"offset":2,"timestamp":3,"key":"k","value":null}\n')
    assert list(decoding.decode_files("any", [str(path)], {})) == []
    assert seen == [
        Message(value=None, file=str(path), place=1, key=b"k", topic="t", partition=1, offset=2, timestamp=3)
    ]


def test_value_that_cannot_be_printed_sets_the_whole_message_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of two rows, one unreadable, is one quarantined line: never half of it."""
    shape = Shape(columns=(Column("at", "timestamp", Encoding.EPOCH_MICROS),))
    rows: list[Event] = [
        ChangeEvent(
            table=TableId(None, None, "t"), operation=Operation.INSERT, position=changed(1), after=image, shape=shape
        )
        for image in (b'{"at": 1}', b'{"at": "x"}')
    ]
    monkeypatch.setattr(decoding, "resolve", lambda _: giving(rows))
    path = tmp_path / "a.json"
    path.write_text("{}\n")
    events = [json.loads(line) for line in decoding.decode_files("any", [str(path)], {})]
    assert [list(event) for event in events] == [["quarantined", "origin"]]
    assert events[0]["quarantined"]["reason"] == "unreadable_value"


@pytest.mark.parametrize(
    "value", [b"[" * 200_000, b'{"data":' * 200_000, b'{"id":' + b"9" * 5_000 + b"}", b"\xff", b""]
)
@pytest.mark.parametrize("name", formats.names())
def test_hostile_message_is_set_aside_by_every_format(name: str, value: bytes) -> None:
    """Depth, numbers of 5,000 digits and bytes that are no text end in quarantine, not in a crash."""
    module = formats.resolve(name)
    message = msgspec.structs.replace(MESSAGE, value=value)
    assert isinstance(decoding.decode_message(module, message, module.Options()), Quarantined)


def test_a_time_that_no_reader_knows_is_quarantined(tmp_path: Path) -> None:
    """As normalize does it: the lake's readers know the years 1 to 9999."""
    path = tmp_path / "a.json"
    path.write_text('{"type":"INSERT","database":"d","table":"t","data":[{"id":1}],"es":253402300800000}\n')
    lines = [json.loads(line) for line in decoding.decode_files("canal_json", [str(path)], {})]
    assert [each.get("quarantined") for each in lines] == [
        {"reason": "malformed", "detail": "a time outside of the years 1 to 9999"}
    ]


@pytest.mark.parametrize("captured", [253402300800000, 1559729471739876149, -62135596800001, 10**24])
def test_a_time_of_capture_that_no_reader_knows_is_left_out(captured: int, tmp_path: Path) -> None:
    """Nothing is read from it where the time of the commit is known, so the row is sound; else it stands for that."""
    source = {"connector": "mysql", "db": "d", "table": "t", "file": "b.1", "pos": 4, "ts_ms": 1772000000000}
    row = {"op": "c", "after": {"id": 1}, "source": source, "ts_ms": captured}
    rows = {"es": 1772000000000, "ts": captured, "database": "d", "table": "t", "data": [{"id": 1}, {"id": 2}]}
    for name, message, count in (("debezium_json", row, 1), ("canal_json", {"type": "INSERT", **rows}, 2)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(message) + "\n")
        lines = [json.loads(line) for line in decoding.decode_files(name, [str(path)], {})]
        assert [(each["captured_at"], each["committed_at"]) for each in lines] == [
            (None, "2026-02-25T06:13:20.000000Z")
        ] * count
    path.write_text(json.dumps({"type": "INSERT", **rows, "es": None}) + "\n")
    (line,) = [json.loads(line) for line in decoding.decode_files("canal_json", [str(path)], {})]
    assert line["quarantined"]["reason"] == "malformed"


def test_wrong_options_and_names_are_configuration_errors(tmp_path: Path) -> None:
    """An unknown format, option or file says so, with what there is."""
    with pytest.raises(UnknownNameError, match="canal_json"):
        list(decoding.decode_files("canal_jsn", [], {}))
    with pytest.raises(ConfigurationError, match=r"canal_json: colour: .* It has: table, row_image"):
        list(decoding.decode_files("canal_json", [], {"colour": "red"}))
    with pytest.raises(LandingError, match="absent"):
        list(decoding.decode_files("canal_json", [str(tmp_path / "absent")], {}))
