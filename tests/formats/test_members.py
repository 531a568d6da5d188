"""Members of messages that their format does not know: found wherever they stand, and none in golden messages."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from support.cases import Case, case_name, cases
from tidemark.formats import members_of
from tidemark.normalization.members_seen import SAMPLED, MembersSeen

_ODD = {
    ("debezium_json", "mongodb_documents"): {"a"},
    ("debezium_json", "columns_called_as_members"): {"stamped_by"},
}
"""Golden messages that no producer writes."""


@pytest.mark.parametrize("case", [case for case in cases() if members_of(case.format)], ids=case_name)
def test_golden_messages_have_no_unknown_member(case: Case) -> None:
    """What producers write, and their documents name, is known."""
    known = members_of(case.format)
    assert known is not None
    found = {member for message in case.messages for member in known.unknown(message.value or b"null")}
    assert found == _ODD.get((case.format, case.folder.name), set())


_CANAL: dict[str, Any] = {"type": "INSERT", "database": "shop", "table": "t", "data": [{"id": "1"}], "id": 7}
_DEBEZIUM: dict[str, Any] = {"op": "c", "after": {"id": 1}, "source": {"connector": "mysql", "file": "b.1", "pos": 4}}
_SHAREPLEX: dict[str, Any] = {"meta": {"op": "ins", "table": "A.T", "scn": "1"}, "data": {"id": 1}}
_CDL: dict[str, Any] = {"message_version": "2.0", "op": "c", "after": {}, "source": {"lsn": 3}, "message_type": "0"}
_BLOB: dict[str, Any] = {"payload": {"op": "INSERT", "timestamp": {"eventTime": 1}}, "schema": {}, "version": "1"}
_REPLICATE: dict[str, Any] = {"magic": "atMSG", "type": "DT", "message": {"data": {"id": 1}, "headers": {}}}


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("canal_json", _CANAL, []),
        ("canal_json", {**_CANAL, "isPart": True}, ["isPart"]),
        ("canal_json", {**_CANAL, "_tidb": {"commitTs": 1, "part": 2}}, ["_tidb.part"]),
        ("canal_json", {"id": 1, "note": "a row, and no message"}, []),
        ("debezium_json", {**_DEBEZIUM, "part": 1}, ["part"]),
        ("debezium_json", {**_DEBEZIUM, "source": {**_DEBEZIUM["source"], "part": 1}}, ["source.part"]),
        ("debezium_json", {"schema": {"x": 1}, "payload": _DEBEZIUM}, []),
        ("debezium_json", {"schema": {"x": 1}, "payload": {**_DEBEZIUM, "part": 1}, "more": 1}, ["more", "part"]),
        ("debezium_json", {"op": "a flattened row", "source": "web", "part": 1}, []),
        ("debezium_json", {**_DEBEZIUM, "__op": "c", "part": 1}, []),
        ("debezium_json", {"schema": {"x": 1}, "payload": {**_DEBEZIUM, "__deleted": "false", "part": 1}}, []),
        ("debezium_json", {"id": 1, "payload": {**_DEBEZIUM, "part": 1}, "__op": "c"}, []),
        ("shareplex_json", {**_SHAREPLEX, "meta": {**_SHAREPLEX["meta"], "part": 1}}, ["meta.part"]),
        ("cdl_json", {"schema": {}, "payload": {**_CDL, "source": {"lsn": 3, "part": 1}}}, ["source.part"]),
        ("datahub_blob", {**_BLOB, "payload": {"op": "INSERT", "timestamp": {"part": 1}}}, ["payload.timestamp.part"]),
        ("replicate_json", {**_REPLICATE, "message": {"headers": {"part": 1}, "data": {}}}, ["headers.part"]),
    ],
)
def test_unknown_members_are_found(name: str, message: dict[str, Any], expected: list[str]) -> None:
    """At any depth, but not in rows and schemas; an object that is no message of the format is passed over."""
    known = members_of(name)
    assert known is not None
    assert known.unknown(json.dumps(message).encode()) == expected


@pytest.mark.parametrize("value", [b"", b"null", b"{", b"[1]", b'{"type": "\xff"}', b"[" * 5000])
def test_what_cannot_be_read_has_none(value: bytes) -> None:
    """Decoding sets it aside, with the reason."""
    for name in ("canal_json", "datahub_blob"):
        known = members_of(name)
        assert known is not None
        assert known.unknown(value) == []


def test_some_messages_are_looked_at() -> None:
    """From the first to the last part of many, with the place of the first one found."""
    odd, usual = json.dumps({**_CANAL, "isPart": True}).encode(), json.dumps(_CANAL).encode()
    count = 40 * SAMPLED
    values = [usual if place < 1000 else odd for place in range(count)]
    batch = pa.record_batch({"value": values, "file": ["a"] * count, "place": range(1, count + 1)})
    seen = MembersSeen("canal_json")
    seen.add(3, batch.slice(0, 900))
    assert seen.close() == []
    seen.add(3, batch)
    (found,) = seen.close()
    assert (found.member, found.batch, found.file, found.place) == ("isPart", 3, "a", 1001)
    rows = MembersSeen("datahub_tuple")
    rows.add(3, batch)
    assert rows.close() == []
