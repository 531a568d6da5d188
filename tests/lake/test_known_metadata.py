"""No metadata file is read that is known, a table is always as its newest one says, and nothing known ever changes."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pyarrow as pa
import pytest
from cachetools import LRUCache
from pyiceberg.catalog import load_catalog
from pyiceberg.io import InputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import UTF8
from pyiceberg.types import LongType, StringType

from tidemark.lake import known_metadata
from tidemark.lake.branches import head
from tidemark.lake.filters import equals
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
    """What this process writes need not be read at all; what a table was before stays as it was."""
    name = _made(lake, "seen")
    before = lake.load(name)
    assert read == []
    known_metadata._known.clear()
    assert [lake.load(name).metadata_location for _ in range(3)] == [before.metadata_location] * 3
    assert read == [before.metadata_location]
    load_catalog(lake.name, **lake.properties).load_table(name).append(pa.table({"id": [1]}, schema=SCHEMA))
    known_metadata._known.clear()  # as if another process had made the commit
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


def _rename(table: Table) -> None:
    with table.update_schema() as schema:
        schema.rename_column("id", "number")


def _widen(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", StringType(), doc="a column")
        schema.add_column("size", LongType())


def _drop(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("size")


def _partition(table: Table) -> None:
    with table.update_spec() as spec:
        spec.add_field("number", IdentityTransform(), "each")


def _set(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"owner.team": "x", "owner.floor": "2"})


def _unset(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.remove_properties("owner.team")


def _expire(table: Table) -> None:
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()


UPDATES: list[Callable[[Table], object]] = [
    lambda table: table.append(pa.table({"id": [1, 2]}, schema=SCHEMA)),
    lambda table: table.delete(equals("id", 2)),
    lambda table: table.manage_snapshots().create_tag(head(table), "tagged").commit(),
    lambda table: table.manage_snapshots().create_branch(head(table), "branched").commit(),
    lambda table: table.append(pa.table({"id": [3]}, schema=SCHEMA), branch="branched"),
    lambda table: table.manage_snapshots().remove_branch("branched").commit(),
    _expire,
    _rename,
    _widen,
    _drop,
    _partition,
    lambda table: table.append(pa.table({"number": [4]})),
    _set,
    _unset,
]
"""Each kind of change that Tidemark, or a table's owner, makes by PyIceberg."""


def test_what_is_known_is_what_the_file_holds_and_never_changes(lake: Lake, read: list[str]) -> None:
    """Updates share what they leave as it is, and yet no earlier version sees them."""
    name = _made(lake, "changed")
    versions: dict[str, TableMetadata] = {}
    for update in UPDATES:
        update(lake.load(name))
        table = lake.load(name)
        versions[table.metadata_location] = table.metadata
    assert len(versions) == len(UPDATES)
    assert [*versions.values()] == [known_metadata._read(table.io.new_input(location)) for location in versions]
    metadata = table.metadata
    other = copy.deepcopy(metadata)
    assert other == metadata
    assert other is not metadata
    assert other.snapshots is metadata.snapshots
