"""Messages become rows of the change log, batch by batch: counted, traced to their bytes, and none stops the others."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tidemark.formats import resolve
from tidemark.lake.data_files import Partition
from tidemark.lake.log_schemas import RAW
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.tally import SEVERAL
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.decoding import decode_message
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, ErasedKeys, Erasure, KeyColumn, Noting, digest_of
from tidemark.positions import encode_position

LANDED = datetime(2026, 1, 1, tzinfo=UTC)


class Collected:
    """What a decoder handed on."""

    def __init__(
        self, *messages: dict[str, Any], erased: ErasedKeys | None = None, format_name: str = "canal_json"
    ) -> None:
        """Decode messages, given as rows of ``raw``; with ``erased``, strip the events of these keys."""
        module = resolve(format_name)
        self.log: list[dict[str, Any]] = []
        self.quarantine: list[dict[str, Any]] = []
        decode = partial(decode_message, module, options=module.Options())
        decoder = Decoder(7, Noting(erased, decode) if erased else decode, self._write, self._set_aside)
        rows = [{"batch": 7, "file": "f", "place": n, "landed_at": LANDED, **m} for n, m in enumerate(messages, 1)]
        decoder.add(pa.RecordBatch.from_pylist(rows, schema=RAW))
        self.tally = decoder.close()

    def _write(self, partition: Partition, rows: pa.RecordBatch) -> None:
        assert {(row["batch"], row["kind"], row["object"]) for row in rows.to_pylist()} == {partition}
        self.log += rows.to_pylist()

    def _set_aside(self, partition: Partition, rows: pa.RecordBatch) -> None:
        assert {(row["batch"], row["reason"], row["object"]) for row in rows.to_pylist()} == {partition}
        self.quarantine += rows.to_pylist()


def canal(table: str, *ids: int, kind: str = "INSERT", **more: Any) -> dict[str, Any]:
    """A row of ``raw`` that holds a message of Canal."""
    message = {"type": kind, "database": "shop", "table": table, "data": [{"id": i} for i in ids], "es": 1, **more}
    return {"value": msgspec.json.encode(message)}


def test_every_event_is_a_row_that_leads_back_to_its_message() -> None:
    """Messages of two tables with several rows each: place and row number say where each event stood."""
    found = Collected(canal("a", 1, 2), canal("b", 3), canal("a", 4))
    events = sorted((row["object"], row["place"], row["row"], row["after"]) for row in found.log)
    assert events == [
        ("shop.a", 1, 0, '{"id":1}'),
        ("shop.a", 1, 1, '{"id":2}'),
        ("shop.a", 3, 0, '{"id":4}'),
        ("shop.b", 2, 0, '{"id":3}'),
    ]
    assert {row["landed_at"] for row in found.log} == {LANDED}


@pytest.mark.parametrize(("databases", "known"), [("a", "a"), ("ab", SEVERAL), ("ba", SEVERAL), ([None], None)])
def test_a_batch_tells_the_database_of_rows_that_no_table_names(databases: list[str], known: str | None) -> None:
    """CDL leaves it out of the names of tables; of several it is told that they are several."""
    for parts in ([databases], [[name] for name in databases]):  # in one file of raw, and in one for each message
        spans = [
            Collected(
                *(
                    {
                        "value": msgspec.json.encode(
                            {"op": "c", "after": {"id": 1}, "source": {"db": name, "table": "t", "lsn": 5}}
                        )
                    }
                    for name in part
                ),
                format_name="cdl_json",
            ).tally.spans["t"]
            for part in parts
        ]
        for other in spans[1:]:
            spans[0].add(other)
        assert SpanRow.of(7, "t", spans[0]).database == known


@pytest.mark.parametrize(("topics", "known"), [(["crm.a.t", "crm.a.t"], "crm.a"), (["crm.a.t", "crm.b.t"], SEVERAL)])
def test_a_batch_tells_of_flattened_rows_of_one_name_in_several_topics(topics: list[str], known: str) -> None:
    """Debezium's transform leaves the database and the schema out, unless it is set to add them."""
    value = msgspec.json.encode({"id": 1, "__op": "c", "__table": "t", "__source_ts_ms": 5})
    places = [{"topic": topic, "partition": part, "offset": 9} for part, topic in enumerate(topics)]
    found = Collected(*({"value": value, **place} for place in places), format_name="debezium_json")
    assert SpanRow.of(7, "t", found.tally.spans["t"]).database == known


def test_messages_and_events_are_counted_once() -> None:
    """The tally closes: each message is decoded, control or quarantined, and contents add up to the events."""
    broken = {"value": b"{"}
    found = Collected(canal("a", 1, 2), broken, {"value": None}, canal("a", 3, kind="UPDATE", old=[{"id": 2}]), broken)
    tally = found.tally
    assert (tally.landed, tally.decoded, tally.control, tally.quarantined) == (5, 2, 1, 2)
    counts = Counter({(content.operation, str(content.table)): count for content, count in tally.contents})
    assert counts == {("INSERT", "shop.a"): 2, ("UPDATE", "shop.a"): 1}
    assert {shape for _, shape, _ in tally.shapes} == {row["shape"] for row in found.log if row["kind"] == "change"}


_LAST_MS = 253_402_300_799_999


@pytest.mark.parametrize(
    "beyond",
    [
        {"es": 1 << 62},
        {"es": None, "ts": 1 << 63},
        {"es": _LAST_MS + 1},
        {"es": None, "ts": 10**15},
        {"es": -62_135_596_800_001},
    ],
)
def test_a_time_that_no_row_can_hold_sets_aside_its_message_only(beyond: dict[str, int]) -> None:
    """Beyond 64 bits, or beyond the years that readers know: quarantined with its bytes; the other messages go on."""
    bad = canal("a", 9, **beyond)
    found = Collected(canal("a", 1), canal("b", 2), bad, canal("a", 3))
    assert [row["value"] for row in found.quarantine] == [bad["value"]]
    assert found.quarantine[0]["reason"] == "malformed"
    assert sorted(row["after"] for row in found.log) == ['{"id":1}', '{"id":2}', '{"id":3}']
    assert (found.tally.landed, found.tally.decoded, found.tally.quarantined) == (4, 3, 1)


@pytest.mark.parametrize("ts", [1 << 63, 10**15, _LAST_MS + 1])
def test_a_time_of_capture_that_no_row_can_hold_is_left_out(ts: int) -> None:
    """Nothing is read from it where the time of the commit is known."""
    found = Collected(canal("a", 1), canal("a", 9, es=5, ts=ts))
    assert [(row["after"], row["captured_at"]) for row in found.log][1:] == [('{"id":9}', None)]
    assert (found.tally.decoded, found.tally.quarantined) == (2, 0)


def test_statements_tell_when_they_were_committed_else_captured_else_landed() -> None:
    """The first and the last time that an event may have are kept as they are."""
    drop = {"isDdl": True, "sql": "DROP TABLE a"}
    found = Collected(
        canal("a", es=-62_135_596_800_000, ts=5, **drop),
        canal("a", es=None, ts=_LAST_MS, **drop),
        canal("a", es=None, ts=None, **drop),
    )
    landed_at = int(LANDED.timestamp()) * 10**6
    assert [statement.at for statement in found.tally.statements] == [
        -62_135_596_800_000_000,
        _LAST_MS * 1000,
        landed_at,
    ]


def test_a_negative_offset_sets_aside_its_message_only() -> None:
    """A position below zero cannot be ordered: the message is quarantined."""
    found = Collected({**canal("a", 1), "offset": 5}, {**canal("a", 2), "offset": -5})
    assert [row["place"] for row in found.quarantine] == [2]
    assert [row["position"] for row in found.log] == [encode_position((1, 1, 0, 5, 0))]


def test_a_negative_offset_of_an_erased_row_sets_aside_its_message_only() -> None:
    """It is of no place, so nothing of it enters the change log; the other messages go on."""
    digest = digest_of(b"secret", "shop.a", [("id", "2")])
    columns = (KeyColumn(name="id", type="int", called=("id",)),)
    erasure = Erasure(object="shop.a", columns=columns, digest=digest, before=EVER, horizon=EVERYWHERE)
    keys = ErasedKeys(secret=b"secret", erasures=(erasure,))
    found = Collected({**canal("a", 1), "offset": 5}, {**canal("a", 2), "offset": -1}, erased=keys)
    assert [row["place"] for row in found.quarantine] == [2]
    assert [row["after"] for row in found.log] == ['{"id":1}']
