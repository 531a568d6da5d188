"""Generated sources: tables of every key and of none, DDL and transactions over all of them, delivered in any order.

DDL is delivered no later than the events behind it, as rows do not say which names they were read with (ADR 14).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.feeds import published, replayed
from support.histories import deliver, position, with_position
from support.published import without_delivery
from support.reference import Alteration, Change, Row, fold
from support.rounds import PROVING, ROUNDS, how_many
from support.running import assert_ledgers_close, run_all
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD
from tidemark.tables.schemas import COMMITTED_AT

pytestmark = pytest.mark.spark

KEYS: dict[str, tuple[str, ...]] = {"one": ("id",), "two": ("id", "line"), "none": ()}
_OF_EACH, _RUNS = how_many(usually=2, proving=4), 3


class Item(NamedTuple):
    """An event or statement, in the run that it is delivered in; one that is sent again is another item."""

    run: int
    what: Change | Alteration
    transaction: str | None


class World(NamedTuple):
    """What a source delivers."""

    items: list[Item]
    ends: Mapping[str, int | None]
    """Transaction to the run in which its end is delivered; None: never."""

    def settled(self, table: str) -> list[Change | Alteration]:
        """What happened to a table, without the transactions that stay open."""
        of_table = (item for item in self.items if item.what.table == table)
        return [item.what for item in of_table if item.transaction is None or self.ends[item.transaction] is not None]

    def tables(self) -> dict[str, tuple[str, ...]]:
        """Tables with events, and their keys."""
        return {item.what.table: item.what.key for item in self.items if isinstance(item.what, Change)}

    def messages(self, run: int) -> list[bytes]:
        """The messages of a run."""
        members: dict[str, dict[tuple[str, Any], int]] = {name: {} for name in self.ends}
        for item in sorted(self.items, key=lambda item: item.what.position):
            if item.transaction is not None:
                numbers = members[item.transaction]
                numbers.setdefault((item.what.table, item.what.position), len(numbers) + 1)
        messages = []
        for item in self.items:
            if item.run == run:
                message = _message(item.what)
                if item.transaction is not None:
                    number = members[item.transaction][item.what.table, item.what.position]
                    (message,) = Log("").within(item.transaction, message, first=number)
                messages.append(message)
        ended = [name for name, at in self.ends.items() if at == run]
        return messages + [Log("").end(name, len(members[name])) for name in ended]


def _message(what: Change | Alteration) -> bytes:
    log, at = Log(what.table), int(what.position[2])
    if isinstance(what, Alteration):
        return log.ddl(at, what.clause)
    if what.operation is Operation.TRUNCATE:
        return log.truncate(at)
    if what.after is None:
        return log.delete(at, **(what.before or {}))
    absent = {name: ... for name in what.before or {} if name not in what.after} if what.partial else {}
    return log.put(at, what.before, **{**what.after, **absent})


class Grower:
    """Makes up the log of one table, step by step."""

    def __init__(self, dice: random.Random, name: str, key: tuple[str, ...]) -> None:
        self.dice = dice
        self.name = name
        self.key = key
        self.columns = {"a": "text", "b": "text"}
        self.rows: list[Row] = []
        """Rows that may be there."""

    def step(self, at: int) -> Change | Alteration:
        """What happens at a place of the log."""
        chance = self.dice.random()
        if chance < 0.15 and self.rows:
            return self._statement(at)
        if chance < 0.19:
            self.rows.clear()
            return Change(self.name, Operation.TRUNCATE, position(at, Operation.TRUNCATE), self.key)
        known = self.dice.choice(self.rows) if self.rows and self.dice.random() < 0.8 else self._row()
        if chance < 0.5 or not self.rows:
            return self._change(at, Operation.INSERT, None, self._row())
        if chance < 0.8:
            keeps = {name: known[name] for name in self.key} if self.dice.random() < 0.7 else {}
            return self._change(at, Operation.UPDATE, known, {**self._row(), **keeps}, partial=bool(keeps))
        return self._change(at, Operation.DELETE, known, None)

    def _change(
        self, at: int, operation: Operation, before: Row | None, after: Row | None, *, partial: bool = False
    ) -> Change:
        if before in self.rows:
            self.rows.remove(before)
        if after is not None:
            self.rows.append(after)
        texts = [name for name in after or () if self.columns.get(name) == "text"]
        if partial and after is not None and texts and self.dice.random() < 0.6:
            unseen = self.dice.choice(texts)
            after = {name: value for name, value in after.items() if name != unseen}
        else:
            partial = False
        return Change(self.name, operation, position(at, operation), self.key, before, after, partial=partial)

    def _statement(self, at: int) -> Alteration:
        dice, columns = self.dice, self.columns
        place = (self.name, position(at, Operation.UPDATE))
        column, chance = dice.choice(sorted(columns)), dice.random()
        free = dice.choice([name for name in "abcdefgh" if name not in columns])
        if len(columns) < 5 and (chance < 0.4 or (chance < 0.6 and (not self.key or len(columns) == 1))):
            columns[free] = kind = dice.choice(("text", "int"))
            type_, default, written = ("varchar(20)", "d'd", "'d''d'") if kind == "text" else ("int", 5, "5")
            clause = f"ADD COLUMN {free} {type_}"
            if dice.random() < 0.6:
                self.rows = [{**row, free: default} for row in self.rows]
                return Alteration(*place, {}, {free: default}, f"{clause} DEFAULT {written}")
            self.rows = [{**row, free: None} for row in self.rows]
            return Alteration(*place, {}, {}, clause)
        if chance < 0.6 and self.key:
            del columns[column]
            self.rows = [{name: row[name] for name in row if name != column} for row in self.rows]
            return Alteration(*place, {column: None}, {}, f"DROP COLUMN {column}")
        if chance < 0.8 and "int" in columns.values():
            column = next(name for name, kind in columns.items() if kind == "int")
            columns[column] = "big"
            return Alteration(*place, {}, {}, f"MODIFY {column} bigint")
        columns[free] = columns.pop(column)
        self.rows = [{free if name == column else name: row[name] for name in row} for row in self.rows]
        return Alteration(*place, {column: free}, {}, f"RENAME COLUMN {column} TO {free}")

    def _row(self) -> Row:
        key = {name: self.dice.randint(1, 4 if name == "id" else 2) for name in self.key}
        return {**key, **{name: self._value(kind) for name, kind in self.columns.items()}}

    def _value(self, kind: str) -> Any:
        few = {"text": ("x", "y", None), "int": (1, 5, None), "big": (1, 5, 50_000_000_000)}
        many = {"text": f"t{self.dice.randint(0, 99)}", "int": self.dice.randint(0, 99), "big": -(10**12)}
        return self.dice.choice(few[kind]) if not self.key or self.dice.random() < 0.3 else many[kind]


def generated(seed: int) -> World:
    """Make up a source: the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    tables = [Grower(dice, f"{kind}_{number}", key) for kind, key in KEYS.items() for number in range(_OF_EACH)]
    places = itertools.count(1)
    history: list[tuple[Change | Alteration, str | None]] = []
    ends: dict[str, int | None] = {}
    while len(history) < 16 * len(tables):
        transaction = f"tx{len(ends)}" if dice.random() < 0.6 else None
        steps = [dice.choice(tables).step(next(places)) for _ in range(dice.randint(1, 6) if transaction else 1)]
        history += [(step, transaction if isinstance(step, Change) else None) for step in steps]
        if transaction is not None and any(isinstance(step, Change) for step in steps):
            ends[transaction] = None if dice.random() < 0.1 else dice.randrange(_RUNS)
    items: list[Item] = []
    earliest = {table.name: 0 for table in tables}
    for what, transaction in history:
        first = earliest[what.table]
        run = dice.randrange(first, _RUNS)
        if isinstance(what, Alteration):
            earliest[what.table] = run
        items.append(Item(run, what, transaction))
        if dice.random() < 0.15:
            items.append(Item(dice.randrange(run, _RUNS), what, transaction))
    return World(dice.sample(items, len(items)), ends)


def _source(name: str, landing: Path, tables: Mapping[str, tuple[str, ...]]) -> Source:
    promised = {f"shop.{table}": {"key": list(key), "feed": PROVING} for table, key in tables.items()}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": promised}
    return Source.model_validate({**fields, "max_deletes": 1})


def _failing(world: World, name: str, landing: Path, lake: Lake, *, again: bool = False) -> dict[str, str]:
    """Deliver a world, and name the tables that did not come to the model's rows; ``again``: nor when rebuilt."""
    source = _source(name, landing, world.tables())
    deliver(landing, "first", [Log("").end("first", 0)])
    problems: list[str] = []
    for run in range(_RUNS):
        messages = world.messages(run)
        for number in range(2):
            deliver(landing, f"{run}-{number}", messages[number::2])
        problems += [problem for report in run_all(source).values() for problem in report.problems]
    failing = {table: "run by run" for table in world.tables() if not _agrees(world, table, name, lake)}
    if again and not failing:
        problems += [problem for stage in REBUILD for problem in run_stage(stage, source).problems]
        failing = {table: "rebuilt" for table in world.tables() if not _agrees(world, table, name, lake)}
    for problem in problems:
        failing[next((table for table in world.tables() if table in problem), problem)] = problem
    assert_ledgers_close(lake, name)
    return failing


def _agrees(world: World, table: str, source: str, lake: Lake) -> bool:
    changes = world.settled(table)
    expected = fold(what if isinstance(what, Alteration) else next(with_position([what])) for what in changes)
    found = lake.find((source, table))
    identifier = Identifier(source, table)
    if PROVING and found is not None and replayed(lake, identifier) != published(lake, identifier):
        return False
    rows = [] if found is None else found.scan().to_arrow().drop_columns([COMMITTED_AT]).to_pylist()
    return _comparable(map(without_delivery, rows)) == _comparable(expected.get(table, {}).values())


def _comparable(rows: Iterable[Row]) -> list[str]:
    return sorted(repr(sorted((name, value) for name, value in row.items() if value is not None)) for row in rows)


def _alone(world: World, table: str, without: range, name: str) -> World:
    """The events of one table but for some, as a table of another name with transactions of its own."""
    own = [item for item in world.items if item.what.table == table]
    left = [item for number, item in enumerate(own) if number not in without]
    named = [
        Item(run, what._replace(table=name), transaction and f"{name}:{transaction}") for run, what, transaction in left
    ]
    used = {item.transaction for item in left if item.transaction}
    return World(named, {f"{name}:{transaction}": world.ends[transaction] for transaction in sorted(used)})


def _together(worlds: Iterable[World]) -> World:
    all_worlds = list(worlds)
    ends = {name: run for world in all_worlds for name, run in world.ends.items()}
    return World([item for world in all_worlds for item in world.items], ends)


def _shrunk(world: World, table: str, landing: Path, lake: Lake, name: str) -> World:
    """Leave items of a failing table out, half of them, then less, while what is left still fails."""
    world, table = _alone(world, table, range(0), "alone"), "alone"
    size = len(world.items) // 2
    for step in range(7):
        if not size:
            break
        starts = range(0, len(world.items), size)
        tries = {f"s{start}": _alone(world, table, range(start, start + size), f"s{start}") for start in starts}
        tries = {label: each for label, each in tries.items() if each.tables()}
        failing = list(_failing(_together(tries.values()), f"{name}_{step}", landing / str(step), lake))
        kept = next((label for label in failing if label in tries), None)
        if kept is not None:
            world, table = tries[kept], kept
        size = min(size if kept else size // 2, len(world.items) // 2)
    return world


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(20260301, 20260301 + 1000 * ROUNDS, 1000))
def test_any_delivery_of_a_source_gives_the_model(seed: int, spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """All tables are the model's, run by run and rebuilt; of one that is not, the fewest events that fail are shown."""
    world = generated(seed)
    failing = _failing(world, f"world_{seed}", tmp_path / "all", lake, again=True)
    if failing:
        table = next((name for name in failing if name in world.tables()), "")
        least = _shrunk(world, table, tmp_path / "least", lake, f"least_{seed}") if table else world
        pytest.fail(f"seed {seed}: {failing}; {table} with the fewest events that fail:\n{_as_text(least)}")


def test_a_column_that_only_waiting_events_tell_is_none_yet(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Nothing types it before its values count: made at once it would be text for good."""
    items = []
    for number, table in enumerate(("ended", "open")):
        rows: list[Row] = [{"id": 1, "a": "x"}, {"id": 2, "a": "y", "e": 5}]
        for at, row in enumerate(rows, 10 * number):
            insert = Change(table, Operation.INSERT, position(at, Operation.INSERT), ("id",), None, row)
            items.append(Item(0, insert, table if "e" in row else None))
    world = World(items, {"ended": 1, "open": None})
    assert _failing(world, "waiting_columns", tmp_path, lake, again=True) == {}
    assert str(lake.load(("waiting_columns", "ended")).schema().find_type("e")) == "long"
    assert "e" not in lake.load(("waiting_columns", "open")).schema().column_names


def _as_text(world: World) -> str:
    return "\n".join(f"run {run}: {line.decode()}" for run in range(_RUNS) for line in world.messages(run))
