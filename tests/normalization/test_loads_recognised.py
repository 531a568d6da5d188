"""What normalize records of complete initial loads, and which of them replace what came before: without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial

import msgspec
import pyarrow as pa
import pytest

from support.histories import Table, message
from tidemark.ddl.history import Emptying, histories
from tidemark.events import TableId
from tidemark.formats import resolve
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.ledger.tally import LOAD, Load, LoggedStatement, Tally
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.decoding import decode_message
from tidemark.positions import encode_position

LANDED = datetime(2026, 1, 1, tzinfo=UTC)


def _tally(*batches: list[bytes]) -> Tally:
    module = resolve("debezium_json")
    decode = partial(decode_message, module, options=module.Options())
    decoder = Decoder(7, decode, lambda *_: None, lambda *_: None)
    for values in batches:
        rows = [{"batch": 7, "file": "f", "place": n, "landed_at": LANDED, "value": v} for n, v in enumerate(values, 1)]
        decoder.add(pa.RecordBatch.from_pylist(rows, schema=RAW))
    return decoder.close()


def _at(value: bytes, millis: int) -> bytes:
    envelope = json.loads(value)
    envelope["source"]["ts_ms"] = millis
    return json.dumps(envelope).encode()


def test_a_batch_tells_each_load_once() -> None:
    """Whatever the number of its rows: the table, where the load began, and the earliest time of a row."""
    one, other = Table("one"), Table("other")
    first = [_at(message(row), 9000 - n) for n, row in enumerate(one.load(10, (1, "a", "b"), (2, "a", "b")))]
    more = [*map(message, one.load(10, (3, "a", "b"))), *map(message, other.load(10, (1, "a", "b")))]
    tally = _tally(
        first, [message(one.insert(20, 4, "a", "b")), *more], [_at(message(one.load(50, (1, "", ""))[0]), 0)]
    )
    loads = [
        (str(statement.table), statement.position, statement.dialect, *_of(statement.text))
        for statement in tally.statements
    ]
    at, later = encode_position((1, 3, 10, 0, 1)), encode_position((1, 3, 50, 0, 1))
    several, one_row = True, False
    assert loads == [
        ("shop.one", at, LOAD, 8999000, several),
        ("shop.other", at, LOAD, 1767225600000000, one_row),
        ("shop.one", later, LOAD, None, one_row),
    ]


def _of(text: str) -> tuple[int | None, bool]:
    load = msgspec.json.decode(text, type=Load)
    return load.at, load.row is None


def test_rows_with_places_of_their_own_are_not_told_one_by_one() -> None:
    """Of very many loads of one row a few are recorded; a load of several rows always is. Copies make no other row."""
    one = Table("one")
    rows = [message(one.load(place, (place, "a", "b"))[0]) for place in range(1000, 3000)]
    several = [message(row) for row in one.load(10, (1, "a", "b"), (2, "a", "b"))]
    copies = [message(one.load(5000, (7, "a", "b"))[0])] * 2
    loads = [_of(statement.text) for statement in _tally(several, rows, copies).statements]
    assert (len(loads), loads.count((1767225600000000, True))) == (100, 1)


P, Q, R = "011.011", "011.012", "011.013"
"""Positions, in this order."""
NEW_LOG, RELOAD = "013.011", "012"
"""A place in a log that began anew; a moment at which the source file says that a table was loaded again."""
A, B = "digest of a row", "digest of another"
_Told = tuple[int, str, str] | tuple[int, str, str, str]
"""Batch, table, position; and the digest of the one row that was seen, where it was one."""
CASES: dict[str, tuple[list[_Told], dict[str, list[tuple[str, int]]]]] = {
    "the_first_replaces_nothing": ([(1, "a", P)], {}),
    "of_any_table": ([(1, "a", P), (1, "b", P)], {}),
    "the_second_does": ([(1, "a", P), (2, "a", Q)], {"a": [(Q, 2)]}),
    "and_the_third": ([(1, "a", P), (2, "a", R), (3, "a", Q)], {"a": [(Q, 3), (R, 2)]}),
    "told_again_later": ([(1, "a", P), (2, "a", Q), (3, "a", Q), (4, "a", P)], {"a": [(Q, 2)]}),
    "the_first_was_of_another_table": ([(1, "b", P), (2, "a", Q)], {"a": [(Q, 2)]}),
    "the_first_lands_last": ([(1, "a", Q), (2, "a", P)], {"a": [(Q, 2)]}),
    "two_wait_for_the_first": ([(1, "a", R), (2, "a", Q), (3, "b", P)], {"a": [(Q, 3), (R, 2)]}),
    "a_place_for_each_row_is_no_load": ([(1, "a", P, A), (1, "a", Q, B), (2, "a", R, A)], {}),
    "nor_is_a_copy_another_row": ([(1, "a", P, A), (2, "a", P, A), (2, "a", Q, B)], {}),
    "two_rows_share_a_place": ([(1, "a", P, A), (1, "a", Q, A), (2, "a", P, B)], {"a": [(Q, 2)]}),
    "rows_of_two_tables_do": ([(1, "a", P, A), (1, "a", Q, A), (3, "b", Q, A)], {"a": [(Q, 3)], "b": [(Q, 3)]}),
    "the_first_of_a_new_log": ([(1, "a", NEW_LOG)], {"a": [(NEW_LOG, 1)]}),
    "rows_of_a_new_log_at_places_of_their_own": ([(1, "a", NEW_LOG, A), (1, "a", f"{NEW_LOG}1", B)], {}),
    "one_row_of_a_table_loaded_anew": ([(2, "a", RELOAD, A)], {"a": [(RELOAD, 2)]}),
    "of_a_table_that_is_not_asked_for": ([(1, "a", P), (2, "unknown", Q)], {}),
}


def _statement(batch: int, name: str, position: str, dialect: str, text: str, at: int | None = None) -> StatementRow:
    table = TableId("shop", None, name)
    return StatementRow.of(batch, LoggedStatement(table, position, dialect, text, at))


def _text(at: int | None, row: str | None = None) -> str:
    return msgspec.json.encode(Load(at, row)).decode()


@pytest.mark.parametrize("case", CASES)
def test_which_loads_replace_what_came_before_and_since_when(case: str, lake: Lake) -> None:
    """All but the lowest of the source, from the batch that first knew both: until then nothing is replaced."""
    rows, expected = CASES[case]
    ledger = Ledger(lake, f"told_{case}")
    ledger.replace(
        StatementRow, [_statement(batch, name, at, LOAD, _text(None, *row)) for batch, name, at, *row in rows]
    )
    found = histories(ledger, ["shop.a", "shop.b"])
    emptied = {table: [(each.position, each.batch) for each in history.emptyings] for table, history in found.items()}
    assert emptied == {f"shop.{table}": emptyings for table, emptyings in expected.items()}
    assert all(each.load for history in found.values() for each in history.emptyings)


def test_a_load_and_a_statement_that_empties_stand_in_the_order_of_the_log(lake: Lake) -> None:
    """A load says when by its rows, a statement by the time in its own row."""
    ledger = Ledger(lake, "told_beside_ddl")
    loads = [_statement(1, "a", place, LOAD, _text(at)) for place, at in ((P, 5), (R, 9), (R, 7))]
    ledger.replace(StatementRow, [*loads, _statement(1, "a", Q, "mysql", "DROP TABLE a", at=8)])
    dropped, loaded = histories(ledger, ["shop.a"])["shop.a"].emptyings
    assert dropped == Emptying(Q, 1, 8)
    assert loaded == Emptying(R, 1, 7, load=True)
