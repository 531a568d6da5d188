"""An erasure finds the other keys of a row whose key changed in a DELETE and an INSERT, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table import Table

from support.plans import published
from tidemark.ddl.history import SchemaHistory
from tidemark.erasure.keys import KeysOfRow, keys_of, require_decided
from tidemark.erasure.moves import spot_of
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.pipeline import run_stage
from tidemark.queries.row_events import RowEvents
from tidemark.queries.row_life_steps import Reader
from tidemark.sources.model import Source

NAME = "moved_rows"
LACKING = "__debezium_unavailable_value"


def _message(table: str, place: int, transaction: int, before: Any, after: Any, **source: Any) -> bytes:
    """A change as Debezium for PostgreSQL sends it."""
    op = "c" if before is None else "d" if after is None else "u"
    origin = {"connector": "postgresql", "snapshot": "false", "db": "d", "schema": "app", "table": table}
    stated = {**origin, "lsn": place, "ts_ms": 1_767_225_600_000 + place, **source}
    block = {"id": str(transaction), "total_order": transaction, "data_collection_order": 1}
    envelope = {"op": op, "before": before, "after": after, "source": stated}
    return json.dumps(envelope | ({"transaction": block} if transaction else {})).encode()


def _binlog(place: int, row: int, before: Any, after: Any) -> bytes:
    """A row of an entry in MySQL's log, which has the rows of one statement."""
    origin = {"connector": "mysql", "db": "app", "schema": None, "lsn": None}
    file = {"file": "mysql-bin.000003", "pos": place, "row": row}
    return _message("entries", place, 0, before, after, **origin, **file)


def _row(number: int, title: str = "t") -> dict[str, Any]:
    return {"id": number, "title": title}


def _moved(table: str, place: int, old: int, new: int, title: str = "t") -> list[bytes]:
    """A row that gets another key."""
    return [_message(table, place, place, _row(old), None), _message(table, place, place, None, _row(new, title))]


def _redo(row_before: Any, row_after: Any) -> bytes:
    """A change in Oracle's log, where many changes may have one place."""
    origin = {"connector": "oracle", "lsn": None, "scn": "900", "commit_scn": "901"}
    return _message("redo", 900, 0, row_before, row_after, **origin)


MESSAGES = [
    _message("notes", 100, 1, None, _row(1)),
    *_moved("notes", 200, 1, 101),
    *_moved("notes", 300, 101, 201),
    _message("notes", 400, 4, None, _row(1, "another row")),
    _message("updated", 100, 1, None, _row(1)),
    _message("updated", 200, 2, _row(1), _row(101)),
    # Large values that did not change are not in the second half.
    _message("lent", 100, 1, None, _row(1)),
    *_moved("lent", 200, 1, 101, LACKING),
    # At one place in the log, and of two transactions; then of one, and the INSERT is the first.
    _message("apart", 100, 1, _row(1), None),
    _message("apart", 100, 2, None, _row(2)),
    _message("apart", 200, 3, _row(1), None, ts_ms=1_767_225_600_100),
    *[_binlog(500, row, _row(number), None) for row, number in enumerate((1, 2))],
    *[_binlog(500, row, None, _row(number)) for row, number in enumerate((101, 102))],
    *[_redo(_row(number), None) for number in (1, 2)],
    *[_redo(None, _row(number)) for number in (101, 102)],
]


@pytest.fixture(scope="module")
def events_of(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that returns the events of a table whose messages were decoded, as an erasure reads them."""
    landing = tmp_path_factory.mktemp("moves")
    # The second half of a move is a message before the first: they have different keys, so partitions of their own.
    (landing / "a.json").write_bytes(b"\n".join(reversed(MESSAGES)))
    fields = {"source": NAME, "format": "debezium_json", "landing": str(landing / "*")}
    for stage in ("land", "normalize"):
        run_stage(stage, Source.model_validate(fields))

    def found(name: str) -> RowEvents:
        table = _published(lake, name)
        return RowEvents(lake, table, Reader.of(lake, table, SchemaHistory()))

    return found


def _published(lake: Lake, name: str) -> Table:
    table = published(lake, {"id": "long", "title": "string"})
    with table.transaction() as transaction:
        transaction.set_properties({SOURCE_PROPERTY: NAME, OBJECT_PROPERTY: name})
    return table.refresh()


def _keys(found: KeysOfRow) -> list[str]:
    return [str(each.key["id"]) for each in found.others]


@pytest.mark.parametrize(
    ("table", "number", "others", "unpaired"),
    [
        ("d.app.notes", "1", ["101", "201"], 0),
        ("d.app.notes", "101", ["1", "201"], 0),
        ("d.app.notes", "201", ["101", "1"], 0),
        ("d.app.notes", "7", [], 0),
        ("d.app.apart", "1", [], 0),
        ("d.app.apart", "2", [], 0),
        ("app.entries", "1", ["101"], 0),
        ("app.entries", "102", ["2"], 0),
        ("d.app.redo", "1", [], 1),
        ("d.app.redo", "101", [], 1),
    ],
)
def test_the_other_half_is_at_the_same_place(
    events_of: Any, table: str, number: str, others: list[str], unpaired: int
) -> None:
    """Of the same transaction, and where several rows are there, of the same row; else nobody knows which one it is."""
    found = keys_of(events_of(table), {"id": number})
    assert (_keys(found), found.unpaired, found.borrowers) == (others, unpaired, [])


def test_a_person_decides_about_other_keys(events_of: Any) -> None:
    """An erasure of one key alone is refused if a row under another key needs values of its events."""
    kept, lent = (keys_of(events_of(table), {"id": "1"}) for table in ("d.app.notes", "d.app.lent"))
    moved = keys_of(events_of("d.app.lent"), {"id": "101"})
    assert [str(each["id"]) for each in lent.borrowers] == ["101"]
    assert (_keys(moved), moved.borrowers) == (["1"], [])
    with pytest.raises(ConfigurationError, match=r"before or later: id=101; id=201\. `--follow` .*, `--no-follow`"):
        require_decided("shop.notes", kept, follow=None)
    for keys, follow in ((kept, True), (kept, False), (lent, True), (moved, False)):
        require_decided("shop.notes", keys, follow=follow)
    bound = keys_of(events_of("d.app.updated"), {"id": "1"})
    require_decided("shop.notes", bound, follow=True)
    with pytest.raises(ConfigurationError, match="an event has the key together with id=101"):
        require_decided("shop.notes", bound, follow=False)
    with pytest.raises(ConfigurationError, match="moved to the key id=101, and large values"):
        require_decided("shop.notes", lent, follow=False)


def test_a_place_is_a_position_without_its_delivery_and_its_half() -> None:
    """A position that shows no place in a log has none, and a time with a place in the dump is one."""
    assert spot_of("011.013.03120.~.010.011.015.~.017.010", None) == ("011.013.03120", None)
    assert spot_of("011.011.010.015.010", "t") is None
    by_time = "011.13" + "1" * 13 + ".011.010.015"
    assert spot_of(by_time, "t") == ("011.13" + "1" * 13, "t")
