"""How much Python a message costs: calls of Python functions for 1,000 messages of each format, counted, not timed."""

from __future__ import annotations

import itertools
import json
import sys
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from support.cases import Case, cases, known_of
from tidemark import formats
from tidemark.lake.log_schemas import RAW
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.tasks import Decoding

MESSAGES = 1_000

MOST = {
    ("canal_json", "insert_update_delete"): 24,
    ("cdl_json", "operations_of_version_2"): 37,
    ("datahub_blob", "update_in_one_message"): 26,
    ("datahub_tuple", "dataworks_rows"): 17,
    ("debezium_json", "mysql_operations"): 34,
    ("dts_avro", "operations"): 46,
    ("replicate_avro", "operations"): 33,
    ("replicate_json", "operations"): 30,
    ("shareplex_json", "insert_update_delete"): 27,
}
"""By format and golden folder, the most calls a message. A tenth above what was counted on 2026-11-25; Canal's
on 2026-11-26, with labels of ENUM and SET; CDL's on 2026-11-27, with the old row of a change of the key."""


@pytest.mark.parametrize(("name", "folder"), MOST)
def test_a_message_takes_few_calls(name: str, folder: str) -> None:
    """What is done for each message stays little, whatever the machine: a change that adds calls shows here."""
    case = next(case for case in cases(name) if case.folder.name == folder)
    raw = _raw(case)
    decoder = Decoder(1, _decoding(case).decode(), lambda *_: None, lambda *_: None)
    decoder.add(raw)  # shapes are recognised once
    calls = 0

    def counted(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        decoder.add(raw)
    finally:
        sys.setprofile(None)
    tally = decoder.close()
    assert tally.landed == 2 * MESSAGES
    assert not tally.quarantined
    assert calls / MESSAGES <= MOST[name, folder]


def test_every_format_is_counted() -> None:
    """A new format gets its bound."""
    assert sorted(name for name, _ in MOST) == sorted(formats.names())


def _decoding(case: Case) -> Decoding:
    options = case.folder / "options.json"
    known = known_of(case) if formats.informed(formats.resolve(case.format)) else None
    given = json.loads(options.read_text()) if options.exists() else {}
    return Decoding(format_name=case.format, options=given, known=known)


def _raw(case: Case) -> pa.RecordBatch:
    """Return the messages of a case, in turn, as rows of ``raw``."""
    messages = itertools.islice(itertools.cycle(case.messages), MESSAGES)
    landed = {"batch": 1, "landed_at": datetime(2026, 1, 1, tzinfo=UTC)}
    rows = [
        {**landed, "file": each.file, "place": place, "value": each.value, "key": each.key}
        for place, each in enumerate(messages, 1)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RAW)
