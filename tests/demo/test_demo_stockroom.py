"""The demo's table without a key: its life holds what it promises, written as statements or as rows alone."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import Row, RowEvent, Rows, ShopHistory, Transaction, act, apply
from tidemark.demo.story.shop_history import history
from tidemark.demo.story.stockroom import TABLE
from tidemark.events import Operation


@pytest.fixture(scope="module")
def shop() -> ShopHistory:
    """Return the history that every test looks at."""
    return history()


def _scans(shop: ShopHistory) -> list[Transaction]:
    """Transactions and statements of the stockroom, in order."""
    return [each for each in shop.transactions if _of_the_stockroom(each)]


def _of_the_stockroom(transaction: Transaction) -> bool:
    ddl = transaction.ddl
    return bool(ddl and ddl.schema.table == TABLE) or any(event.table == TABLE for event in transaction.events)


def _counted(rows: list[Row]) -> Counter[str]:
    return Counter(map(repr, rows))


def test_life_is_the_same_at_any_seed_and_scale(shop: ShopHistory) -> None:
    """Nothing of it is random, so its last rows can be said here: SKU, location, pieces, price, scanner."""
    for other in (history(seed=8), history(scale=2)):
        assert other.final_state()[TABLE] == shop.final_state()[TABLE]
    row_counts = Counter((*map(str, list(row.values())[:4]), row["scanner"]) for row in shop.final_state()[TABLE])
    assert row_counts == {
        ("SKU-TEA", "A1", "1", "1.10", "hand"): 3,
        ("SKU-TEA", "A1", "1", "1.10", "gun"): 2,
        ("SKU-SALT", "None", "1", "0.00", "hand"): 2,
        ("SKU-MUG", "B2", "2", "12.50", "hand"): 1,
        ("SKU-MUG", "C3", "1", "12.50", "hand"): 1,
        ("SKU-SOAP", "", "1", "3.00", "hand"): 1,
    }


def test_table_begins_on_day_two_with_equal_rows(shop: ShopHistory) -> None:
    """Created after the first run, loaded, and the load has rows that equal each other."""
    created, load, *_ = _scans(shop)
    assert created.ddl is not None
    assert created.committed_at.date() == date(2026, 1, 2)
    assert load.initial_load
    assert max(_counted([event.after for event in load.events if event.after]).values()) == 2


def test_one_of_equal_rows_goes(shop: ShopHistory) -> None:
    """Deletes and updates hit rows that occur several times, before and after the late events come."""
    for late in (True, False):
        rows: Rows = {}
        hits = 0
        for transaction in (each for each in _scans(shop) if late or not each.late):
            if transaction.ddl is not None:
                rows = transaction.ddl.alter(rows)
            for event in transaction.events:
                if event.table == TABLE:
                    hits += list(rows.values()).count(event.before or {}) > 1
                    _apply_if_there(rows, event)
        assert hits > 3


def _apply_if_there(rows: Rows, event: RowEvent) -> None:
    """Do what the event says; a row that only a late event brings is not there yet."""
    if event.before is None or event.before in rows.values():
        apply(rows, event)


def test_late_events_lie_on_both_sides_of_the_truncate(shop: ShopHistory) -> None:
    """Inserts and deletes; on each side a row comes late that equals one that came in time."""
    scans = _scans(shop)
    place = next(n for n, each in enumerate(scans) if each.ddl and each.ddl.kind == "TRUNCATE")
    for side in (scans[:place], scans[place:]):
        late = [event for each in side if each.late for event in each.events]
        assert {event.operation for event in late} >= {Operation.INSERT, Operation.DELETE}
        timely = [repr(event.after) for each in side if not each.late for event in each.events]
        assert any(event.operation is Operation.INSERT and repr(event.after) in timely for event in late)


def test_transactions_are_split_over_runs_and_rolled_back(shop: ShopHistory) -> None:
    """Scans lie in both days of the split transaction; one that nobody kept is split as well, and did nothing."""
    (split,) = [each for each in _scans(shop) if each.split]
    first, *_, last = split.statements()
    assert {event.table for event in (*first, *last)} == {TABLE}
    (attempt,) = shop.attempts
    assert len(list(attempt.statements())) == 2
    assert attempt.id not in {each.id for each in shop.transactions}
    assert [each.id for each in sorted((*shop.transactions, attempt), key=lambda each: each.committed_at)] == list(
        range(1, len(shop.transactions) + 2)
    )


def test_columns_are_renamed_dropped_and_added_with_a_default(shop: ShopHistory) -> None:
    """After the drop more rows are equal than before it; the default stands in rows that nothing touched since."""
    state: dict[str, Rows] = {table: {} for table in shop.schemas}
    kinds: dict[int, int] = {}
    for transaction in shop.transactions:
        before = len(_counted(list(state[TABLE].values())))
        act(state, transaction)
        if transaction.ddl and transaction.ddl.schema.table == TABLE and transaction.ddl.kind == "ALTER":
            kinds[transaction.committed_at.day] = before - len(_counted(list(state[TABLE].values())))
    assert kinds == {3: 0, 4: 1}
    assert [column.name for column in shop.columns(TABLE)][-1] == "scanner"
    touched = [event.after for event in shop.events() if event.after and event.after.get("scanner") == "hand"]
    assert sum(row["scanner"] == "hand" for row in shop.final_state()[TABLE]) > len(touched)


@pytest.mark.parametrize("truncates", [True, False])
def test_rows_alone_lead_to_the_same_rows(shop: ShopHistory, *, truncates: bool) -> None:
    """Without its statements the history ends with the same rows; columns that went are null in all of them."""
    reduced_history = rows_only(shop, truncates=truncates)
    assert [each.id for each in reduced_history.transactions] == [each.id for each in shop.transactions]
    state: dict[str, Rows] = {table: {} for table in shop.schemas}
    for transaction in reduced_history.transactions:
        if truncates and transaction.ddl and transaction.ddl.kind == "TRUNCATE":
            state[transaction.ddl.schema.table] = {}
        for event in transaction.events:
            _apply_narrow(state[event.table], event)
    for table, rows in shop.final_state().items():
        assert _counted([_without_nulls(row) for row in state[table].values()]) == _counted(
            [_without_nulls(row) for row in rows]
        ), table


def _apply_narrow(rows: Rows, event: RowEvent) -> None:
    """Do what the event says where nothing declared the columns: a column that a row lacks is null."""
    if event.before is not None and not event.schema.key:
        before = _without_nulls(event.before)
        del rows[next(key for key, row in rows.items() if _without_nulls(row) == before)]
        event = RowEvent(schema=event.schema, operation=event.operation, number=event.number, after=event.after)
    apply(rows, event)


def _without_nulls(row: Row) -> Row:
    return {name: row[name] for name in sorted(row) if row[name] is not None}
