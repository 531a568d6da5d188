"""Lost events are reported with their keys, in tables of every kind; no row is reported whose events all came.

A history without a fault is delivered in order with repeats, and mixed, with late events. A row that is reported then
must have an earlier event that has not come yet. Other rows of the same tables lose one event each.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support import sound_histories as histories
from support.histories import deliver, mixed
from support.rounds import PROVING, ROUNDS, how_many
from support.running import assert_ledger_closes, run_all
from support.sound_histories import Step, Unit, Writer
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source

Make = Callable[..., Source]
_RUNS = how_many(usually=2, proving=3)


class Kind(NamedTuple):
    """How a source writes, and what its tables are."""

    format: str
    writers: dict[str, Writer]
    """By table. ``make test`` has late events of the first one alone."""
    options: Mapping[str, Any] = MappingProxyType({})
    tables: Mapping[str, Any] = MappingProxyType({})
    moves: bool = True
    """Whether keys change."""
    truncates: bool = False
    """Whether a table is emptied."""
    by_dump: bool = False
    """Whether the dump alone gives the order."""


_SOFT = {"deletes": "soft"}
KINDS = {
    "soft deletes and parts of rows": Kind(
        "debezium_json",
        how_many(
            usually={"softparts": histories.debezium},
            proving={"softparts": histories.debezium, "soft": histories.debezium_whole, "parts": histories.debezium},
        ),
        tables={"shop.soft": _SOFT, "shop.softparts": _SOFT},
        truncates=PROVING,  # ``make test`` has a table that is emptied in ``test_contradictions.py``
    ),
    "updates in two messages": Kind(
        "shareplex_json", {"halves": histories.halves, "parts": histories.one_message}, moves=False
    ),
    "updates in two whole messages": Kind(
        "shareplex_json", {"whole": histories.whole_halves}, options={"row_image": "full"}
    ),
    "the order of the dump": Kind("canal_json", {"dumped": histories.canal}, moves=False, by_dump=True),
}


_PROVED = {"updates in two messages", "updates in two whole messages", "the order of the dump"}
"""``make test`` has lost updates of two messages, and of the order of the dump, in ``test_before_images.py``."""


def _lost() -> list[list[Step]]:
    """Return the steps of rows that lose one of them, by run: in the midst of a run (odd keys), and between two."""
    runs: list[list[Step]] = [[] for _ in range(_RUNS)]
    for key in range(1, 7):
        a, b, c = ({"id": key, "name": name, "note": "same"} for name in "abc")
        # Rows 1 and 2 lose their second insert, 3 and 4 their delete, 5 and 6 an update.
        states, lost = (((None, a, None, b, c), 2), ((None, a, None, b), 1), ((None, a, b, c), 1))[(key - 1) // 2]
        for number, (before, after) in enumerate(itertools.pairwise(states)):
            run = int(key % 2 == 0 and number > lost)
            if number != lost:
                runs[run].append(Step(1000 * run + 10 * key + number, before, after))
    return runs


def _emptied() -> list[list[bytes]]:
    """Return the messages of a table that is emptied in the midst of a run, without a fault, by run."""
    a, b = ({"id": 1, "name": name, "note": "same"} for name in "ab")
    before, after = (histories.debezium("emptied", Step(place, None, a))[0].message for place in (1, 40))
    whole = json.loads(after)
    truncate = json.dumps(whole | {"op": "t", "after": None, "source": whole["source"] | {"pos": 30}}).encode()
    other = histories.debezium("emptied", Step(20, None, {**a, "id": 2}))[0].message
    again = histories.debezium("emptied", Step(41, None, {**a, "id": 2}))[0].message
    changes = [histories.debezium("emptied", step)[0].message for step in (Step(50, a, b), Step(51, b, None))]
    return [[before], [other, truncate, after, again], changes]


_MISSING, _EXISTING = "updates or deletes of rows that were not there", "inserts of rows that were there"
_BEFORE = "before images that are not the row before"
_EXPECTED = {
    1: {_MISSING: {1}, _EXISTING: {3}, _BEFORE: {5}},
    2: {_MISSING: {2}, _EXISTING: {4}, _BEFORE: {6}},
    3: {},
}
"""By cut, by kind of contradiction: the keys."""


def _split(units: Sequence[Unit]) -> list[list[Unit]]:
    """Deliver a history in order, where each run begins with what the one before ended with."""
    size = len(units) // _RUNS
    starts = [number * size for number in range(1, _RUNS)]
    ends = [*starts[1:], len(units)]
    others = [list(units[start - 5 : end]) for start, end in zip(starts, ends, strict=True)]
    return [[*units[:size], *units[size - 4 : size]], *others]


def _told(remarks: Sequence[str], table: str) -> dict[str, set[int]]:
    """Return the keys that compact reported for a table, by kind."""
    pattern = re.compile(rf"shop\.{table}: \d+ ([a-z ]+) \((.*?)\)\. The first is")
    found = (match for text in remarks if (match := pattern.match(text)))
    return {match[1]: {int(key) for key in re.findall(r"id=(\d+)", match[2])} for match in found}


def _in_order(kind: Kind, dice: random.Random) -> list[list[bytes]]:
    """Return the messages of the tables that no late event comes to, by run."""
    runs: list[list[bytes]] = [[] for _ in range(_RUNS)]
    for table, write in kind.writers.items():
        sound = histories.steps(dice, range(10, 20), range(100, 190), moves=kind.moves)
        in_order = _split([unit for step in sound for unit in write(table, step)])
        lost = [[unit for step in steps for unit in write(table, step)] for steps in _lost()]
        for run in range(_RUNS):
            runs[run] += [unit.message for unit in (*lost[run], *in_order[run])]
    return runs


@pytest.mark.more
@pytest.mark.parametrize("seed", range(how_many(usually=1, proving=max(2, ROUNDS // 4))))
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.prove] if name in _PROVED else []) for name, kind in KINDS.items()],
    ids=KINDS,
)
def test_lost_events_are_told_and_nothing_else(
    source: Make, spark: SparkSession, lake: Lake, kind: Kind, seed: int
) -> None:
    """Each lost event is reported in the cut of the event behind it; a history without a fault raises nothing."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    keyed: dict[str, dict[str, Any]] = {"shop.emptied": {"key": ["id"], **_SOFT}}
    late = {table: f"{table}_late" for table in (kind.writers if PROVING else list(kind.writers)[:1])}
    for table, name in (*zip(kind.writers, kind.writers, strict=True), *late.items()):
        keyed[f"shop.{name}"] = {"key": ["id"], **kind.tables.get(f"shop.{table}", {})}
    shop = source(kind.format, options=dict(kind.options), tables=keyed)
    runs = _in_order(kind, dice)
    mixtures: dict[str, tuple[list[Step], list[list[Unit]]]] = {}
    for table, name in late.items():
        steps = histories.steps(dice, range(1, 5), range(1, 60), moves=kind.moves)
        units = [unit for step in steps for unit in kind.writers[table](name, step)]
        mixtures[table] = (steps, mixed(dice, units, _RUNS))
        for run in range(_RUNS):
            runs[run] += [unit.message for unit in mixtures[table][1][run]]
    for run, messages in enumerate(_emptied() if kind.truncates else []):
        runs[run] += messages
    came: dict[str, list[Step]] = {table: [] for table in late}
    for number, messages in enumerate(runs, start=1):
        deliver(Path(shop.landing).parent, f"{number}", messages)
        reports = run_all(shop)
        assert reports["compact"].problems == reports["check"].problems == ()
        assert _told(reports["compact"].remarks, "emptied") == {}
        for table in kind.writers:
            assert _told(reports["compact"].remarks, table) == _EXPECTED[number], table
        for table, name in late.items():
            new = [unit.step for unit in mixtures[table][1][number - 1]]
            allowed = _allowed(kind, mixtures[table][0], came[table], new)
            for contradiction, keys in _told(reports["compact"].remarks, name).items():
                assert keys <= allowed, (table, contradiction)
    assert_ledger_closes(lake, shop.source)


def _allowed(kind: Kind, history: list[Step], came: list[Step], new: list[Step]) -> set[int]:
    """Return the keys that may be reported: an earlier event has not come, before this one or at all."""
    if not kind.by_dump:
        came += new
        return histories.lacking(history, came, new)
    found: set[int] = set()
    for step in new:
        came.append(step)
        found |= histories.lacking(history, came, [step])
    return found
