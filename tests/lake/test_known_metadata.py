"""Each metadata file is read once in a process, and a table is always as its newest one says."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cachetools import LRUCache
from pyiceberg.catalog import load_catalog
from pyiceberg.io import InputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import UTF8

from tidemark.lake import known_metadata
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import TABLE_PROPERTIES

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The metadata files that were read since the test began, when none was known."""
    found, really = list[str](), known_metadata._read

    def reading(file: InputFile, encoding: str = UTF8) -> TableMetadata:
        found.append(file.location)
        return really(file, encoding)

    monkeypatch.setattr(known_metadata, "_read", reading)
    known_metadata._known.clear()
    return found


def _made(lake: Lake, name: str) -> Identifier:
    lake.ensure(("known_metadata", name), SCHEMA, TABLE_PROPERTIES)
    return Identifier("known_metadata", name)


def test_a_file_is_read_once_and_a_commit_is_seen_at_once(lake: Lake, read: list[str]) -> None:
    """Also a commit of somebody else, by a catalog of their own; what a table was before stays as it was."""
    name = _made(lake, "seen")
    read.clear()
    before = lake.load(name)
    assert [lake.load(name).metadata_location for _ in range(3)] == [before.metadata_location] * 3
    assert read == [before.metadata_location]
    load_catalog(lake.name, **lake.properties).load_table(name).append(pa.table({"id": [1]}, schema=SCHEMA))
    after = lake.load(name)
    assert after.scan().to_arrow().num_rows == 1
    assert before.scan().to_arrow().num_rows == 0
    assert read == [before.metadata_location, after.metadata_location]


def test_what_was_not_asked_for_longest_is_forgotten(
    lake: Lake, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory has an end: the files are read again, and tell the same."""
    first, other = _made(lake, "first"), _made(lake, "other")
    room = LRUCache[str, TableMetadata](11, getsizeof=known_metadata._weight)  # one table with a snapshot
    monkeypatch.setattr(known_metadata, "_known", room)
    read.clear()
    locations = [lake.load(name).metadata_location for name in (first, first, other, first)]
    assert read == [locations[0], locations[2], locations[0]]
    assert list(room) == [locations[0]]


def test_metadata_beyond_all_room_is_read_each_time(
    lake: Lake, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with more snapshots than are kept of all tables is no error."""
    large = _made(lake, "large")
    monkeypatch.setattr(known_metadata, "_known", LRUCache[str, TableMetadata](9, getsizeof=known_metadata._weight))
    read.clear()
    locations = [lake.load(large).metadata_location for _ in range(2)]
    assert read == locations
