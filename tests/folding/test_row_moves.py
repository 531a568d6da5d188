"""The DELETE that an INSERT with placeholders belongs to: found by the log, in whatever order the two are delivered."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.plans import found
from tidemark.events import Operation
from tidemark.folding import row_moves
from tidemark.positions import Position, changed, encode_position, placed
from tidemark.tables.plan import Plan
from tidemark.values.table_columns import TableColumn

pytestmark = pytest.mark.spark

_GONE, _CAME = Operation.DELETE, Operation.INSERT
Event = tuple[Operation, int, Position]


def _mysql(what: Operation, key: int, *delivery: int | str, number: int = 0) -> Event:
    """A change at one place of a binary log."""
    return what, key, placed(changed(3, 440), (number, *delivery), (0, 0 if what is _GONE else 1))


def _postgres(what: Operation, key: int, *delivery: int | str, number: int = 0) -> Event:
    """A change at one lsn."""
    return what, key, placed(changed(9000, number, 0 if what is _GONE else 1), (number, *delivery))


CASES: dict[str, tuple[list[Event], bool]] = {
    "in the order of the log": ([_mysql(_GONE, 1, 0, 0, "a", 1), _mysql(_CAME, 2, 0, 0, "a", 2)], True),
    "the delete stands behind in the file": ([_mysql(_CAME, 2, 0, 0, "a", 1), _mysql(_GONE, 1, 0, 0, "a", 2)], True),
    "the delete is in a later file": ([_mysql(_CAME, 2, 0, 0, "a", 9), _mysql(_GONE, 1, 0, 0, "b", 1)], True),
    "the delete is in a higher partition": ([_mysql(_CAME, 2, 1, 0, 500), _mysql(_GONE, 1, 1, 3, 7)], True),
    "numbers, and a higher partition": (
        [_mysql(_CAME, 2, 1, 0, 500, number=8), _mysql(_GONE, 1, 1, 3, 7, number=7)],
        True,
    ),
    "a delete with a higher number": (
        [_mysql(_CAME, 2, 1, 0, 500, number=8), _mysql(_GONE, 1, 1, 0, 501, number=9)],
        False,
    ),
    "sent again": (
        [_mysql(_CAME, 2, 1, 0, 5), _mysql(_GONE, 1, 1, 3, 7), _mysql(_GONE, 1, 1, 3, 8), _mysql(_CAME, 2, 1, 0, 6)],
        True,
    ),
    "two deletes": ([_mysql(_GONE, 1, 1, 0, 5), _mysql(_GONE, 4, 1, 0, 6), _mysql(_CAME, 2, 1, 0, 7)], False),
    "no delete": ([_mysql(_CAME, 2, 1, 0, 7)], False),
    "one lsn": ([_postgres(_CAME, 2, 1, 0, 5), _postgres(_GONE, 1, 1, 3, 7)], True),
    "one lsn, and numbers": ([_postgres(_CAME, 2, 1, 0, 5, number=8), _postgres(_GONE, 1, 1, 3, 7, number=7)], True),
    "nothing but the dump orders them": (
        [(_CAME, 2, changed(70, 0, 0, "a", 1)), (_GONE, 1, changed(70, 0, 0, "a", 2))],
        False,
    ),
}
"""Events at one place of the log, and whether the INSERT (of key 2) belongs to the row that was deleted (of key 1)."""


def test_the_order_of_the_log_makes_a_pair(spark: SparkSession) -> None:
    """The two records of a changed key have different keys of their own: no partition, file or run orders them."""
    lacking = {_CAME: '{"id": 2, "v": "?"}', _GONE: None}
    rows = [
        (name, what, lacking[what], what is _CAME, ["v"], encode_position(position), None, key, what is _GONE, None, 1)
        for name, (events, _) in CASES.items()
        for what, key, position in events
    ]
    types = "object string, operation string, after string, partial boolean, absent array<string>, position string"
    more = "transaction_id string, k0 long, deleted boolean, set_aside string, batch int"
    columns = (TableColumn("id", "long"), TableColumn("v", "string"))
    plan = Plan(found=found(), target=("shop", "t"), key=("id",), columns=columns)
    near = row_moves.near(row_moves.marked(spark.createDataFrame(rows, f"{types}, {more}")))
    pairs = row_moves.pairs(near, plan).rows.collect()
    found_in = {row["lookup"]: (row["o0"], row["k0"]) for row in pairs}
    assert {name: [keys for lookup, keys in found_in.items() if lookup.endswith(f" {name}")] for name in CASES} == {
        name: [(1, 2)] if is_pair else [] for name, (_, is_pair) in CASES.items()
    }
