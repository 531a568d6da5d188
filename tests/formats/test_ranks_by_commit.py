"""Which positions rise with the commits in their log, so that a later change with a lower one is of another log."""

from __future__ import annotations

import msgspec
import pytest

from support.cases import Case, cases
from tidemark import formats
from tidemark.errors import DecodeError
from tidemark.events import ChangeEvent, Operation
from tidemark.positions import encode_position

RANK = {
    ("canal_json", "insert_update_delete"): False,  # files order them
    ("cdl_json", "positions"): False,
    ("datahub_blob", "update_in_two_messages"): True,
    ("datahub_tuple", "dataworks_rows"): True,
    ("debezium_json", "connector_without_position"): False,
    ("debezium_json", "mongodb_documents"): False,
    ("debezium_json", "mysql_operations"): True,
    ("debezium_json", "oracle_positions"): True,
    ("debezium_json", "postgresql_positions"): False,
    ("debezium_json", "sqlserver_positions"): True,
    ("dts_avro", "operations"): True,
    ("dts_avro", "postgresql"): False,
    ("replicate_avro", "operations"): True,
    ("replicate_json", "operations"): True,
    ("replicate_json", "without_change_sequence"): False,
    ("shareplex_json", "positions"): False,
}


def _ranks(case: Case, **record: int) -> set[bool]:
    """What is said of the positions of a case's changes; ``record`` is their place in a topic."""
    found = set()
    for message in case.messages:
        try:
            events = case.decode(msgspec.structs.replace(message, **record))
        except DecodeError:
            continue
        for event in events:
            if type(event) is ChangeEvent and event.operation not in {Operation.SNAPSHOT, Operation.TRUNCATE}:
                found.add(formats.traits_of(case.format).rises_with_commits(encode_position(event.position)))
    return found


@pytest.mark.parametrize(("name", "folder"), RANK)
def test_which_positions_rise_with_the_commits(name: str, folder: str) -> None:
    """Binary logs, commit numbers and sequences do; places in files, and of changes in PostgreSQL's log, do not."""
    case = next(case for case in cases(name) if case.folder.name == folder)
    assert _ranks(case) == {RANK[name, folder]}


def test_offsets_of_kafka_rise() -> None:
    """Where nothing else orders the messages."""
    for name, folder in (("canal_json", "insert_update_delete"), ("dts_avro", "postgresql")):
        case = next(case for case in cases(name) if case.folder.name == folder)
        assert _ranks(case, partition=0, offset=7) == {True}


def test_every_format_is_told() -> None:
    """A new format has to say it."""
    assert sorted({name for name, _ in RANK}) == sorted(formats.names())


def test_places_in_a_binary_log_rise_wherever_they_were_dumped() -> None:
    """DTS: in a topic as in files, and of a log that is called like the mark of an offset."""
    operations = next(case for case in cases("dts_avro") if case.folder.name == "operations")
    assert _ranks(operations, partition=4, offset=9) == {True}
    traits = formats.traits_of("dts_avro")
    in_dump = ((1, 4, 9), (1, 4, 9, 0), (0, 7, "a.jsonl", 9), (0, 7, "a.jsonl", 9, 0))
    for place in in_dump:
        assert traits.placing(encode_position((1, *place))) is formats.Placing.DUMP
        for log in (0, 1, 12):
            assert traits.placing(encode_position((1, log, 500, *place))) is formats.Placing.LOG
