"""The demo: its history holds what it promises, and every rendered dump leads to the same tables."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from support.reference import Alteration, Change, fold, read_change
from tidemark.demo.comparison import OPTIONS
from tidemark.demo.render import SOURCES, Counts, Rendered, deliver_late, render
from tidemark.demo.story import renames
from tidemark.demo.story.landmarks import DAYS, HOT, LARGEST_SCALE
from tidemark.demo.story.model import Row, RowEvent, Rows, ShopHistory, apply
from tidemark.demo.story.shop_history import EXTREME, NEW_NUMBER, RENUMBERED, RETURNING, SPARSE, history
from tidemark.dumps import containers
from tidemark.errors import DecodeError, UnknownNameError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, SchemaChange
from tidemark.formats import Informed, Known, gather, informed, resolve
from tidemark.normalization.decoding import metadata_of
from tidemark.positions import Position
from tidemark.sources.files import load_source
from tidemark.sources.model import Source

TODAY = {renames.EARLIER: renames.TABLE}
"""Tables that are renamed in the dumps of a source."""
PLACE_TELLS_REPEATS = {"shop_canal", "shop_cdl", "shop_dts", "shop_lindorm"}
FOLDER = Path(__file__).parents[2] / "include" / "sources"

Outcome = list[Event] | DecodeError
"""What a message says: its events, or why it is set aside."""


@dataclass(frozen=True)
class Dump:
    """The files of one source."""

    rendered: Rendered
    landing: Path
    source: Source

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (*self.rendered.files, *self.rendered.late_files)

    @cached_property
    def outcomes(self) -> dict[Path, list[Outcome]]:
        """What the messages of each file say."""
        return {path: list(_decoded(self, path)) for path in self.paths}

    @cached_property
    def known(self) -> Known | None:
        """What is known from the metadata messages of all files, for a format that asks for them."""
        module = informed(resolve(self.source.format))
        if module is None:
            return None
        messages = itertools.chain.from_iterable(map(_messages, self.paths))
        return gather(metadata_of(module, messages, self.source.options))


@pytest.fixture(scope="module")
def shop() -> ShopHistory:
    """Return the history that every test looks at."""
    return history()


@pytest.fixture(scope="module", params=sorted(SOURCES.keys() - {OPTIONS}))
def dump(request: pytest.FixtureRequest, shop: ShopHistory, tmp_path_factory: pytest.TempPathFactory) -> Dump:
    """Return the dump of each source in turn, all of it written, nothing late delivered.

    The source with options has other tables: see ``test_demo_options.py``.
    """
    landing = tmp_path_factory.mktemp("landing")
    return Dump(render(request.param, shop, landing), landing, load_source(FOLDER / f"{request.param}.yaml"))


def test_history_is_the_same_for_a_seed_and_another_for_another() -> None:
    """A seed fixes every value."""
    assert history(seed=7) == history(seed=7)
    assert history(seed=8).final_state() != history(seed=7).final_state()


def test_history_grows_with_scale(shop: ShopHistory) -> None:
    """The scale multiplies events, and one that a day has no seconds for is refused."""
    assert sum(1 for _ in history(scale=3).events()) > 2.5 * sum(1 for _ in shop.events())
    with pytest.raises(ValueError, match="scale is 401"):
        history(scale=LARGEST_SCALE + 1)


def test_history_has_the_promised_size(shop: ShopHistory) -> None:
    """About 3,000 row events in four days, hundreds of rows at the end."""
    assert 2500 < sum(1 for _ in shop.events()) < 3500
    assert {transaction.committed_at.date() for transaction in shop.transactions} == set(DAYS)
    assert 400 < sum(map(len, shop.final_state().values())) < 2000
    assert all(shop.final_state().values())


def test_commits_ascend_in_whole_seconds(shop: ShopHistory) -> None:
    """Transactions are ordered, and their events numbered from one without a gap."""
    assert all(a.committed_at < b.committed_at and a.id < b.id for a, b in pairwise(shop.transactions))
    assert all(transaction.committed_at.microsecond == 0 for transaction in shop.transactions)
    for transaction in shop.transactions:
        assert [event.number for event in transaction.events] == list(range(1, len(transaction.events) + 1))


def test_every_before_image_is_the_row_that_was_there(shop: ShopHistory) -> None:
    """Replayed event by event, each image has the columns of its schema and each before image is the current row."""
    state: dict[str, Rows] = {table: {} for table in shop.schemas}
    for transaction in shop.transactions:
        if transaction.ddl is not None:
            state[transaction.ddl.schema.table] = transaction.ddl.alter(state[transaction.ddl.schema.table])
        for event in transaction.events:
            rows, schema = state[event.table], event.schema
            for image in filter(None, (event.before, event.after)):
                assert list(image) == [column.name for column in schema.columns]
            if schema.key and event.before is not None:
                assert rows[schema.key_of(event.before)] == event.before
            if schema.key and event.after is not None and (event.before is None or event.key_changed):
                assert schema.key_of(event.after) not in rows
            apply(rows, event)
    assert {table: len(rows) for table, rows in state.items()} == {
        table: len(rows) for table, rows in shop.final_state().items()
    }


def test_history_holds_every_kind_of_change(shop: ShopHistory) -> None:
    """Each operation, key changes of a single and of a composite key, a hot row, transactions over several tables."""
    events = list(shop.events())
    assert {event.operation for event in events} == set(Operation) - {Operation.TRUNCATE}
    assert {event.table for event in events if event.key_changed} == {"customers", "order_lines"}
    assert (
        sum(event.table == "orders" and event.after is not None and event.after["order_id"] == HOT for event in events)
        > 100
    )
    assert sum(len({event.table for event in transaction.events}) > 2 for transaction in shop.transactions) > 50
    assert {transaction.ddl.kind for transaction in shop.transactions if transaction.ddl} == {
        "CREATE",
        "ALTER",
        "TRUNCATE",
        "CINDEX",
    }
    assert any(transaction.late for transaction in shop.transactions)
    assert sum(transaction.split for transaction in shop.transactions) == 1


def test_a_table_with_a_key_changes_its_columns(shop: ShopHistory) -> None:
    """Renamed, dropped and added with a default, which stands in rows that nothing touched; one row comes late."""
    altered = [each.ddl for each in shop.transactions if each.ddl and each.ddl.kind == "ALTER"]
    renaming, change = [ddl for ddl in altered if ddl.schema.table == "payments"]
    assert renaming.schema.key
    assert renaming.renamed == {"channel": "method"}
    assert change.defaults == {"currency": "EUR"}
    assert "receipt" not in {column.name for column in shop.columns("payments")}
    late = {
        event.after["payment_id"]
        for each in shop.transactions
        if each.late
        for event in each.events
        if event.table == "payments" and event.after and "method" in event.after
    }
    final = {row["payment_id"]: row["currency"] for row in shop.final_state()["payments"]}
    touched = {event.after["payment_id"] for event in shop.events() if event.after and "currency" in event.after}
    assert late & final.keys() - touched
    assert {final[number] for number in final.keys() - touched} == {"EUR"}


def test_keys_come_back(shop: ShopHistory) -> None:
    """One customer is deleted and inserted again; the number that another gave up is given to a new one."""
    operations = [event.operation for event in _events_of(shop, RETURNING)]
    assert operations[operations.index(Operation.DELETE) + 1] is Operation.INSERT
    moved = next(event for event in _events_of(shop, RENUMBERED) if event.key_changed)
    assert moved.after is not None
    assert moved.after["customer_number"] == NEW_NUMBER
    assert {RENUMBERED, NEW_NUMBER} <= {row["customer_number"] for row in shop.final_state()["customers"]}


def test_values_go_to_null_and_to_empty_and_back(shop: ShopHistory) -> None:
    """Null, empty text and text follow each other in one column."""
    emails = [event.after["email"] for event in _events_of(shop, SPARSE) if event.after]
    assert {None, "", "back@example.com"} <= set(emails)
    assert emails[-1] == ""


def _events_of(shop: ShopHistory, number: int) -> list[RowEvent]:
    return [
        event
        for event in shop.events()
        if event.table == "customers"
        and number in {(image or {}).get("customer_number") for image in (event.before, event.after)}
    ]


def test_extreme_values_survive_to_the_end(shop: ShopHistory) -> None:
    """The ends of the types are in the final tables."""
    state = shop.final_state()
    customer = next(row for row in state["customers"] if row["customer_number"] == EXTREME)
    order = next(row for row in state["orders"] if row["customer_number"] == EXTREME)
    assert customer["lifetime_value"] == Decimal("1234567890123456789012345678.0123456789")
    assert customer["credit_limit"] == Decimal("-9999999999999999.99")
    assert order["external_reference"] == Decimal(2**64 - 1)
    assert order["total"] == Decimal("9999999999999999.99")
    assert order["weight_kg"] == 5e-324
    assert {"😀", "\\", "\n", "\x00", '"'} <= set(str(customer["notes"]))
    assert any(row["total"] == 0 for row in state["orders"])


def test_schemas_change_on_day_three(shop: ShopHistory) -> None:
    """A column is added and used, another is widened and holds what it could not hold before."""
    assert [column.name for column in shop.columns("customers")][-1] == "loyalty_level"
    assert {column.name: column.type for column in shop.columns("orders")}["quantity_total"] == "long"
    state = shop.final_state()
    assert len({row["loyalty_level"] for row in state["customers"]}) > 2
    assert 2**62 + 1 in {row["quantity_total"] for row in state["orders"]}
    first = next(
        transaction for transaction in shop.transactions if transaction.ddl and transaction.ddl.kind == "ALTER"
    )
    assert first.committed_at.date() == date(2026, 1, 3)


def test_an_unknown_source_is_refused(shop: ShopHistory, tmp_path: Path) -> None:
    """The error names the sources that there are."""
    with pytest.raises(UnknownNameError, match="shop_canal"):
        render("shop_oracle", shop, tmp_path)


def test_rendering_twice_gives_the_same_bytes(dump: Dump, shop: ShopHistory, tmp_path: Path) -> None:
    """No clock and no chance in the files."""
    again = render(dump.rendered.source, shop, tmp_path)
    assert len(dump.rendered.files) > 8
    for one, other in zip(dump.rendered.files, again.files, strict=True):
        assert one.relative_to(dump.landing) == other.relative_to(tmp_path)
        assert one.read_bytes() == other.read_bytes()


def test_every_day_has_several_files_and_its_own_counts(dump: Dump) -> None:
    """Read by the containers and decoded by the format, a day's files hold what the renderer says."""
    files = dump.rendered.files
    assert set(dump.rendered.days) == set(DAYS)
    for day, counts in dump.rendered.days.items():
        mine = [path for path in files if path.parent.name == day.isoformat()]
        assert len(mine) >= 4
        assert _counted(dump, mine) == _as_decoded(counts)
    assert _counted(dump, dump.rendered.late_files) == _as_decoded(dump.rendered.late)


def test_a_table_is_renamed_and_one_is_loaded_again_where_messages_tell_it(dump: Dump) -> None:
    """One source has two names of the payments, before and after a statement; another has two loads of orders."""
    events = [
        event for outcome in _outcomes(dump, dump.rendered.files) if isinstance(outcome, list) for event in outcome
    ]
    rows = [event for event in events if isinstance(event, ChangeEvent)]
    names = {event.table.name for event in rows} & {renames.TABLE, renames.EARLIER}
    assert (names == {renames.TABLE, renames.EARLIER}) is (dump.rendered.source == "shop_debezium")
    loads = {event.load for event in rows if event.table.name == "orders" and event.load is not None}
    assert (len(loads) == 2) is (dump.rendered.source == "shop_debezium_bare")


def test_faults_and_duplicates_are_there(dump: Dump) -> None:
    """Each source has one broken message, one unknown operation and some events twice."""
    total = dump.rendered.total
    assert (total.broken, total.unknown_operation) == (1, 1)
    assert total.duplicates >= 25
    assert dump.rendered.late.rows >= 25


def test_scans_are_sent_again_where_they_can_be_told(dump: Dump, shop: ShopHistory) -> None:
    """Rows of the table without a key come twice, except where only the place tells a repeat from an equal row."""
    changes = _changes(dump, dump.rendered.files, shop)
    scans = Counter(
        change.position for change in changes if isinstance(change, Change) and change.table == "stock_scans"
    )
    assert (max(scans.values()) == 2) is (dump.rendered.source not in PLACE_TELLS_REPEATS)


def _as_decoded(counts: Counts) -> Counter[str]:
    return +Counter(
        {
            "messages": counts.messages,
            "rows": counts.rows,
            "ddl": counts.ddl,
            "control": counts.control,
            "malformed": counts.broken,
            "unknown_operation": counts.unknown_operation,
        }
    )


def _counted(dump: Dump, paths: Iterable[Path]) -> Counter[str]:
    kinds = {ChangeEvent: "rows", SchemaChange: "ddl", ControlEvent: "control"}
    counter: Counter[str] = Counter()
    for outcome in _outcomes(dump, paths):
        counter["messages"] += 1
        if isinstance(outcome, DecodeError):
            counter[outcome.reason] += 1
        else:
            counter.update(kinds[type(event)] for event in outcome)
    return counter


def _outcomes(dump: Dump, paths: Iterable[Path]) -> Iterator[Outcome]:
    return itertools.chain.from_iterable(dump.outcomes[path] for path in paths)


def _decoded(dump: Dump, path: Path) -> Iterator[Outcome]:
    format_ = resolve(dump.source.format)
    for message in _messages(path):
        try:
            if dump.known is None:
                yield format_.decode(message, dump.source.options)
            else:
                yield cast("Informed", format_).decode(message, dump.source.options, dump.known)
        except DecodeError as error:
            yield error


def _messages(path: Path) -> Iterator[Message]:
    start = datetime.fromisoformat(path.parent.name).replace(tzinfo=UTC)
    interval = int(start.timestamp()) * 10**6
    for batch in containers.read(str(path)):
        for record in batch.to_pylist():
            yield Message(**record, file=str(path), interval=interval)


def _changes(dump: Dump, paths: Iterable[Path], shop: ShopHistory) -> list[Change | Alteration]:
    """Read what the files say of rows; what was rolled back says nothing."""
    events = [event for events in _outcomes(dump, paths) if isinstance(events, list) for event in events]
    given_up = {
        event.transaction.id
        for event in events
        if isinstance(event, ControlEvent) and event.kind == "transaction_rollback" and event.transaction
    }
    alterations = _alterations(shop)
    changes: list[Change | Alteration] = []
    for event in events:
        if isinstance(event, SchemaChange) and event.statement in alterations:
            changes.append(alterations[event.statement]._replace(position=event.position))
        elif isinstance(event, ChangeEvent) and not (event.transaction and event.transaction.id in given_up):
            promised = dump.source.table_for(str(event.table))
            change = read_change(event, promised.key or (), promised.columns)
            change = change._replace(table=TODAY.get(change.table, change.table))
            changes.append(change._replace(position=_in_its_log(_without_delivery(change.position), event, dump)))
    return changes


def _in_its_log(position: Position, event: ChangeEvent, dump: Dump) -> Position:
    """Return a position that ranks above all of the logs before its own."""
    begun = sum(moment.timestamp() * 10**6 <= (event.committed_at or 0) for moment in dump.source.log_restarts)
    first, *others = position
    return (int(first) + 2 * begun, *others)


def _without_delivery(position: Position) -> Position:
    """Return the part of a position that the copies of an event share."""
    if "" not in position:
        return position
    end = len(position) - position[::-1].index("")
    return (*position[: position.index("")], *position[end:])


def _alterations(shop: ShopHistory) -> dict[str, Alteration]:
    """Return by statement what it does to the columns of its table, as the history knows it."""
    found = {}
    current = {table: versions[0] for table, versions in shop.schemas.items()}
    for ddl in (transaction.ddl for transaction in shop.transactions if transaction.ddl):
        table = ddl.schema.table
        here = {column.name for column in ddl.schema.columns}
        names: dict[str, str | None] = {
            column.name: None for column in current[table].columns if column.name not in here
        }
        names |= {old: new for new, old in ddl.renamed.items()}
        found[ddl.statement] = Alteration(table, (), names, dict(ddl.defaults))
        current[table] = ddl.schema
    return found


def _state(changes: list[Change | Alteration], shop: ShopHistory) -> dict[str, list[Row]]:
    names = {table: [column.name for column in shop.columns(table)] for table in shop.schemas}
    return {
        table: _ordered(shop, table, [{name: rows[key].get(name) for name in names[table]} for key in sorted(rows)])
        for table, rows in fold(changes).items()
    }


def _ordered(shop: ShopHistory, table: str, rows: list[Row]) -> list[Row]:
    """Rows of a table without a key have no order but the order of their values."""
    return rows if shop.schemas[table][-1].key else sorted(rows, key=repr)


def test_every_dump_leads_to_the_same_tables(dump: Dump, shop: ShopHistory) -> None:
    """Decoded and folded in any order of delivery, each source gives the final state, value by value."""
    changes = _changes(dump, dump.paths, shop)
    random.Random(1).shuffle(changes)  # noqa: S311 - an order of delivery
    state, expected = _state(changes, shop), shop.final_state()
    assert state.keys() == expected.keys()
    for table, rows in expected.items():
        assert state[table] == _ordered(shop, table, rows), table


def test_late_events_matter(dump: Dump, shop: ShopHistory) -> None:
    """Without its late files, a source gives other tables."""
    state, expected = _state(_changes(dump, dump.rendered.files, shop), shop), shop.final_state()
    different = {table for table in expected if state[table] != _ordered(shop, table, expected[table])}
    assert {"customers", "order_lines", "payments", "stock_scans"} <= different


def test_a_server_fails_over(shop: ShopHistory, tmp_path: Path) -> None:
    """On day 3 of the source without schemas: its new log lies below the old one, and its source file says when."""
    name = "shop_debezium_bare"
    dump = Dump(render(name, shop, tmp_path), tmp_path, load_source(FOLDER / f"{name}.yaml"))
    (begins,) = dump.source.log_restarts
    found = [event for events in _outcomes(dump, dump.rendered.files) if isinstance(events, list) for event in events]
    placed = [event for event in found if isinstance(event, ChangeEvent) and event.operation is not Operation.SNAPSHOT]
    moment = begins.timestamp() * 10**6
    old, new = (
        [event.position for event in placed if (event.committed_at >= moment) is later] for later in (False, True)
    )
    assert len(old) > 1000 < len(new)
    assert max(new) < min(old)


def test_transactions_are_cut_by_files_and_by_runs(dump: Dump) -> None:
    """Rows of one commit lie in two files of a day, and those of another in two days, with the table without a key.

    No two transactions share a second, so the second of the commit tells them apart in every format.
    """
    files: dict[int, set[Path]] = {}
    tables: dict[int, set[str]] = {}
    for path in dump.rendered.files:
        for outcome in _outcomes(dump, [path]):
            for event in outcome if isinstance(outcome, list) else ():
                if isinstance(event, ChangeEvent) and event.committed_at is not None:
                    second = event.committed_at // 10**6
                    files.setdefault(second, set()).add(path)
                    tables.setdefault(second, set()).add(event.table.name)
    days = {second: {path.parent.name for path in paths} for second, paths in files.items()}
    committed = {second: datetime.fromtimestamp(second, UTC).date().isoformat() for second in days}
    assert any(len(files[second]) > 1 and days[second] == {committed[second]} for second in days)
    # What is sent again on day 3 has all its rows on day 2 as well, so look for the tables of the split one.
    cut = [second for second in days if days[second] == {"2026-01-02", "2026-01-03"}]
    assert any({"stock_scans", "orders"} <= tables[second] for second in cut)


def test_every_column_is_published_with_one_type(dump: Dump, shop: ShopHistory) -> None:
    """The type by the source file, else by the messages, is the type of the source database, whatever the format."""
    types: dict[str, dict[str, str | None]] = {}
    for events in _outcomes(dump, dump.rendered.files):
        for event in events if isinstance(events, list) else ():
            if not isinstance(event, ChangeEvent) or event.shape is None:
                continue
            promised = dump.source.table_for(str(event.table)).columns
            columns = types.setdefault(TODAY.get(event.table.name, event.table.name), {})
            for column in event.shape.columns:
                type_ = promised.get(column.name, column.type)
                # int is widened, whatever comes first in the dump; a null may leave the type open
                if columns.get(column.name) != "long":
                    columns[column.name] = type_ or columns.get(column.name)
    assert types == {
        table: {column.name: column.type for version in versions for column in version.columns}
        for table, versions in shop.schemas.items()
    }


def test_late_files_are_delivered_once(shop: ShopHistory, tmp_path: Path) -> None:
    """The staged file moves into the folder of its day, and a second call finds nothing."""
    rendered = render("shop_debezium", shop, tmp_path)
    (delivered,) = deliver_late("shop_debezium", tmp_path)
    assert delivered.parent == tmp_path / "shop_debezium" / "2026-01-02"
    assert delivered.exists()
    assert delivered not in rendered.files
    assert deliver_late("shop_debezium", tmp_path) == []


class TestReference:
    """The reference model itself, on the smallest histories."""

    def test_order_of_delivery_and_repeats_do_not_matter(self) -> None:
        """Positions order the changes; the same position twice is one change."""
        put = Change("t", Operation.INSERT, (1, 9), ("k",), after={"k": 1, "v": "a"})
        drop = Change("t", Operation.DELETE, (1, 10), ("k",), before={"k": 1})
        again = Change("t", Operation.INSERT, (1, 100), ("k",), after={"k": 1, "v": "b"})
        assert fold([again, drop, put, drop]) == {"t": {(1,): {"k": 1, "v": "b"}}}
        assert fold([put, drop, put]) == {"t": {}}

    def test_partial_image_keeps_what_it_lacks_also_over_a_key_change(self) -> None:
        """An absent column has the value of the row before, which is found by the old key."""
        put = Change("t", Operation.INSERT, (1,), ("k",), after={"k": 1, "v": "a", "w": "b"})
        move = Change("t", Operation.UPDATE, (2,), ("k",), before={"k": 1}, after={"k": 2, "w": None}, partial=True)
        assert fold([put, move]) == {"t": {(2,): {"k": 2, "v": "a", "w": None}}}

    def test_truncate_removes_what_came_before_it(self) -> None:
        """Rows that were inserted after the truncation stay."""
        one = Change("t", Operation.INSERT, (1,), ("k",), after={"k": 1})
        emptied = Change("t", Operation.TRUNCATE, (2,), ("k",))
        two = Change("t", Operation.INSERT, (3,), ("k",), after={"k": 2})
        assert fold([two, emptied, one]) == {"t": {(2,): {"k": 2}}}

    def test_table_without_key_is_a_bag(self) -> None:
        """Of two equal rows one delete removes one."""
        rows = [Change("t", Operation.INSERT, (n,), (), after={"v": "a"}) for n in (1, 2)]
        drop = Change("t", Operation.DELETE, (3,), (), before={"v": "a"})
        assert list(fold([*rows, drop])["t"].values()) == [{"v": "a"}]
