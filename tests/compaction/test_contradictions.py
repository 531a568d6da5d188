"""Events that contradict the rows: an UPDATE or DELETE of a row that was not there, an INSERT of one that was."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from support import shareplex
from support.histories import Table, deliver, message
from support.reference import Change
from support.rounds import PROVING
from support.running import assert_ledger_closes, run_all
from tidemark.compaction import contradictions
from tidemark.compaction.accounting import Merged
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Contradiction
from tidemark.folding.keyed import Totals
from tidemark.lake.lake import Lake
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.positions import encode_position
from tidemark.sources.choices import Consequence
from tidemark.sources.model import Source

Make = Callable[..., Source]
_START = 1767225600
_STAGES = ("land", "normalize", "compact")


class Case(NamedTuple):
    """A table, its events by run, and what contradicts its rows: cut, kind, count, and the place of the first."""

    runs: tuple[tuple[Change, ...], ...]
    found: tuple[tuple[int, str, int, int], ...] = ()
    keys: str = ""
    """What compact says of them."""


def _case(name: str, columns: tuple[str, ...] = ("id", "name")) -> Table:
    return Table(name, columns=columns)


def _loaded(table: Table) -> tuple[Change, ...]:
    return tuple(table.loaded(number, number, "a") for number in (1, 2, 3))


def _cases() -> dict[str, Case]:
    """Return the cases by the name of the table; every table but ``unloaded`` begins with the rows 1 to 3."""
    t = {name: _case(name) for name in (
        "sound", "missing", "twice", "stands", "again", "late", "copies", "unloaded", "emptied", "moved", "both",
        "inside", "bag", "bag_sound", "bag_resent", "parts", "resent",
    )}  # fmt: skip
    wide = {name: Table(name) for name in ("parts", "part_unloaded", "part_again")}
    u, first = "missing_rows", {name: _loaded(table) for name, table in t.items()}
    return {
        "sound": Case((
            first["sound"],
            (t["sound"].update(10, 1, "b"), t["sound"].delete(11, 2, "a"), t["sound"].insert(12, 4, "c"),
             t["sound"].insert(13, 2, "d"), t["sound"].update(14, 5, "a", was=(3,)), t["sound"].insert(15, 3, "e"),
             t["sound"].insert(16, 6, "f"), t["sound"].delete(17, 6, "f")),
            (t["sound"].delete(20, 2, "d"), t["sound"].insert(21, 6, "g")),
        )),
        "missing": Case(
            (first["missing"], (t["missing"].update(10, 9, "b"), t["missing"].delete(12, 8, "a"),
                                t["missing"].update(14, 1, "b"))),
            ((2, u, 2, 10),), "2 updates or deletes of rows that were not there (id=9; id=8)",
        ),
        "twice": Case(
            (first["twice"], (t["twice"].insert(10, 4, "b"), t["twice"].insert(12, 4, "c"))),
            ((2, "existing_rows", 1, 12),), "1 inserts of rows that were there (id=4)",
        ),
        "stands": Case(
            (first["stands"], (t["stands"].insert(10, 4, "b"),), (t["stands"].insert(20, 4, "c"),)),
            ((3, "existing_rows", 1, 20),),
        ),
        "again": Case(
            (first["again"], (t["again"].delete(10, 1, "a"),), (t["again"].update(20, 1, "b"),)),
            ((3, u, 1, 20),),
        ),
        "late": Case((
            first["late"],
            (t["late"].update(50, 1, "b"), t["late"].delete(51, 2, "a"), t["late"].insert(52, 4, "a")),
            (t["late"].insert(20, 1, "x"), t["late"].update(21, 2, "y"), t["late"].delete(22, 4, "z")),
        )),
        "copies": Case((
            first["copies"],
            (t["copies"].insert(10, 4, "b"), t["copies"].delete(11, 1, "a")),
            (t["copies"].insert(10, 4, "b"), t["copies"].delete(11, 1, "a"), t["copies"].insert(30, 9, "a")),
        )),
        "unloaded": Case(((), (t["unloaded"].update(10, 9, "b"), t["unloaded"].delete(11, 8, "a")))),
        "emptied": Case(
            (first["emptied"], (t["emptied"].truncate(10), t["emptied"].update(12, 1, "b"))), ((2, u, 1, 12),)
        ),
        "moved": Case(
            (first["moved"], (t["moved"].insert(5, 4, "a"),),
             (_told(t["moved"].update(20, 4, "b", was=(1,)), "a"), t["moved"].update(22, 7, "b", was=(9,)))),
            ((3, "existing_rows", 1, 20), (3, u, 1, 22)),
        ),
        "both": Case(
            (first["both"], (t["both"].insert(10, 4, "a"), t["both"].update(12, 4, "b"), t["both"].delete(13, 4, "b"),
                             t["both"].delete(14, 4, "b"), t["both"].insert(15, 4, "c"))),
            ((2, u, 1, 14),),
        ),
        "inside": Case(
            (first["inside"], (t["inside"].delete(10, 1, "a"), t["inside"].update(12, 1, "b"))), ((2, u, 1, 12),)
        ),
        "bag": Case(
            (first["bag"], (t["bag"].delete(10, 1, "a"), t["bag"].delete(12, 1, "a"), t["bag"].insert(13, 1, "a"))),
            ((2, u, 1, 12),), "1 updates or deletes of rows that were not there. The first is",
        ),
        "bag_sound": Case((
            first["bag_sound"],
            (t["bag_sound"].delete(10, 1, "a"), t["bag_sound"].insert(11, 1, "a"), t["bag_sound"].insert(12, 1, "a"),
             t["bag_sound"].delete(13, 1, "a"), t["bag_sound"].delete(14, 1, "a")),
        )),
        # Their positions are times and places in the dump: a copy in another file ranks as a new event.
        "resent": Case(
            (first["resent"],
             (t["resent"].insert(10, 4, "b"), t["resent"].delete(11, 1, "a"), t["resent"].insert(12, 5, "b")),
             (t["resent"].insert(10, 4, "b"), t["resent"].delete(11, 1, "a"), t["resent"].insert(30, 5, "c"))),
            ((3, "existing_rows", 1, 0),), "1 inserts of rows that were there (id=5)",
        ),
        "bag_resent": Case(
            (first["bag_resent"], (t["bag_resent"].delete(11, 1, "a"),), (t["bag_resent"].delete(11, 1, "a"),))
        ),
        "parts": Case(
            (first["parts"],
             (wide["parts"].update(10, 9, "b", ...), _without_old(wide["parts"].update(12, 8, "b", ...)),
              _without_old(wide["parts"].update(14, 1, "b", ...)))),
            ((2, "incomplete_rows", 2, 10), (2, u, 2, 10)),
            "2 rows of which events carry a part, and none the rest, which is null (id=9; id=8)",
        ),
        # Its rows from before the first dump are not known, so an UPDATE of one is no contradiction.
        "part_unloaded": Case((
            (wide["part_unloaded"].insert(5, 1, "a", "n"), wide["part_unloaded"].insert(6, 2, "a", "n")),
            (_without_old(wide["part_unloaded"].update(10, 9, "b", ...)),
             _without_old(wide["part_unloaded"].update(12, 1, "b", ...)), wide["part_unloaded"].update(13, 2, ..., "m"),
             wide["part_unloaded"].update(14, 7, "b", "m"),
             _without_old(wide["part_unloaded"].update(15, 7, "c", ...))),
            (wide["part_unloaded"].insert(7, 9, "a", "n"), _without_old(wide["part_unloaded"].update(20, 9, "c", ...))),
        ), ((2, "incomplete_rows", 1, 10),)),
        "part_again": Case((
            (wide["part_again"].insert(5, 1, "a", "n"),),
            (wide["part_again"].delete(10, 1, "a", "n"), _without_old(wide["part_again"].update(12, 1, "b", ...))),
            (wide["part_again"].delete(20, 1, "b", None),),
        ), ((2, "incomplete_rows", 1, 12), (2, u, 1, 12))),
    }  # fmt: skip


_PROVED = {
    *("stands", "copies", "again", "unloaded", "emptied", "both", "inside", "bag_sound", "bag_resent", "resent"),
    *("part_unloaded", "part_again"),
}
"""Cases of ``make prove``. Each is a table: ``make test`` has one of each kind of contradiction, and some of none.
Copies are in the history of another test."""


def _without_old(change: Change) -> Change:
    """Return an update without a before image."""
    return change._replace(before=None)


def _told(change: Change, name: str) -> Change:
    """Return a change whose before image has another name than its after image."""
    return change._replace(before={**(change.before or {}), "name": name})


def _timed(change: Change) -> bytes:
    """Write a change, committed a second later for each place of the log."""
    envelope = json.loads(message(change))
    envelope["source"]["ts_ms"] = (_START + int(change.position[2])) * 1000
    if change.table.endswith("resent"):  # of a database for which Debezium gives no place in the log
        envelope["source"] = {**envelope["source"], "connector": "other", "file": None, "pos": None}
    return json.dumps(envelope).encode()


def _deliver(source: Source, file: str, changes: Iterable[Change]) -> None:
    deliver(Path(source.landing).parent, file, map(_timed, changes))


class Whole(NamedTuple):
    """Three runs of all cases and of a sound history, and what compact remarked."""

    source: Source
    cases: dict[str, Case]
    remarks: list[str]
    sought: list[tuple[str, int]]
    """The tables that were looked at, and the runs in which they were."""


_HISTORY = "items"
"""The table with the sound history."""


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The sound history is split into runs, and a part of it is sent again."""
    landing = tmp_path_factory.mktemp("whole")
    cases = {name: case for name, case in _cases().items() if PROVING or name not in _PROVED} | _lost()
    tables = {f"shop.{name}": {"key": [] if name.startswith("bag") else ["id"]} for name in (_HISTORY, *cases)}
    fields = {"source": "whole", "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    found = Whole(Source.model_validate(fields), cases, [], [])
    history = _sound(7, 90)
    seek = contradictions.found
    with pytest.MonkeyPatch.context() as patched:
        for number, part in enumerate((history[:30], history[30:60], history[20:50])):

            def noted(prepared: Prepared, *args: Any, run: int = number) -> list[Contradiction]:
                found.sought.append((prepared.plan.found.object, run))
                return seek(prepared, *args)

            patched.setattr(contradictions, "found", noted)
            more = [each for case in cases.values() for each in (*case.runs, (), ())[number]]
            _deliver(found.source, f"{number}", [*part, *more])
            reports = run_all(found.source)
            assert reports["compact"].problems == reports["check"].problems == ()
            found.remarks.extend(reports["compact"].remarks)
    return found


@pytest.mark.more
def test_contradictions_are_told(whole: Whole, lake: Lake) -> None:
    """Each kind is found, with its count, its first place and its keys; what may be legitimate raises none."""
    name, cases = whole.source.source, whole.cases
    assert_ledger_closes(lake, name)
    rows = sorted(Ledger(lake, name).contradictions(), key=lambda row: (row.object, row.cut, row.position or ""))
    recorded = {name: tuple(row for row in rows if row.object == f"shop.{name}") for name in cases}
    found = {name: tuple(map(_short, recorded[name])) for name in cases}
    assert found == {name: case.found for name, case in cases.items()}
    for table, case in cases.items():
        assert not case.keys or any(text.startswith(f"shop.{table}: {case.keys}") for text in whole.remarks), table
    first = recorded["missing"][0]
    assert (first.file or "").endswith("1.json")
    assert first.position == encode_position(cases["missing"].runs[1][0].position) or (first.position or "").startswith(
        encode_position(cases["missing"].runs[1][0].position[:3])
    )
    verdicts = {(row["object"], row["cut"]): row["verdict"] for row in Ledger(lake, name).read("tables")}
    assert verdicts["shop.missing", 2] == verdicts["shop.bag", 2] == "warned"
    assert verdicts["shop.sound", 2] == verdicts["shop.late", 3] == "passed"


def _short(row: ContradictionRow) -> tuple[int, str, int, int]:
    """Return cut, kind, count, and the place of the first event in the log."""
    return row.cut, row.kind, row.events, int((row.position or "").split(".")[2][2:])


def _lost() -> dict[str, Case]:
    """Return cases of lost updates, by the name of the table; before images show the row as it was."""
    t = {name: _case(name) for name in ("lost", "chain")}
    return {
        "lost": Case(
            (_loaded(t["lost"]),
             (_told(t["lost"].update(10, 1, "b"), "a"), _told(t["lost"].update(11, 2, "b"), "a")),
             # The update to "c" between them is lost.
             (_told(t["lost"].update(20, 1, "d"), "c"), _told(t["lost"].update(21, 2, "e"), "b"))),
            ((3, "before_images", 1, 20),), "1 before images that are not the row before (id=1)",
        ),
        "chain": Case(
            (_loaded(t["chain"]),
             (_told(t["chain"].update(10, 1, "b"), "a"), _told(t["chain"].update(12, 1, "d"), "c"),
              _told(t["chain"].update(13, 9, "d", was=(1,)), "d"), t["chain"].delete(14, 9, "e"),
              t["chain"].delete(15, 2, None))),
            ((2, "before_images", 2, 12),), "2 before images that are not the row before (id=1; id=9)",
        ),
    }  # fmt: skip


def _sound(seed: int, count: int) -> list[Change]:
    """A history in which each event finds the row that it needs."""
    dice, table = random.Random(seed), _case("items")  # noqa: S311  a test's own mixing
    alive: dict[int, str] = {}
    changes = []
    for place in range(1, count + 1):
        key, free = dice.choice([*alive, 0]), next(key for key in range(1, 99) if key not in alive)
        name = dice.choice("abc")
        if not key:
            changes.append(table.insert(place, free, name))
            alive[free] = name
        elif dice.random() < 0.3:
            changes.append(table.delete(place, key, alive.pop(key)))
        elif dice.random() < 0.3:
            changes.append(_told(table.update(place, free, name, was=(key,)), alive[key]))
            del alive[key]
            alive[free] = name
        else:
            changes.append(_told(table.update(place, key, name), alive[key]))
            alive[key] = name
    return changes


@pytest.mark.more
def test_a_lost_event_holds_a_cut_where_the_source_file_says_so(whole: Whole, lake: Lake) -> None:
    """A sound history raises nothing, however it is split and sent again, and costs no look; a gap in it does."""
    name, table = whole.source.source, _case(_HISTORY)
    history, fields = f"shop.{_HISTORY}", whole.source.model_dump(by_alias=True)
    assert {run for sought, run in whole.sought if sought == history} <= {2}, "only what is sent again needs a look"
    assert [row for row in Ledger(lake, name).contradictions() if row.object == history] == []
    shop = Source.model_validate({**fields, "invariants": {"missing_rows": "block"}})
    _deliver(shop, "3", [*_sound(7, 90)[60:], table.insert(100, 70, "a"), table.delete(101, 70, "a")])
    _deliver(shop, "4", [table.update(103, 70, "b")])  # the event between them is lost
    for stage in _STAGES:
        run_stage(stage, shop, None, None)
    problems = run_stage("check", shop, None, None).problems
    cut = Ledger(lake, name).last_cut()
    assert cut is not None
    assert cut.state == CutState.AWAITING_APPROVAL
    assert any("1 updates or deletes of rows that were not there: message 1 of " in text for text in problems), problems
    for consequence in ("warn", "off"):
        asked = Source.model_validate({**fields, "invariants": {"missing_rows": consequence}})
        report = run_stage("check", asked, None, None)
        assert (report.problems, len(report.remarks)) == ((), 1 if consequence == "warn" else 0)


def test_copies_that_say_something_else_are_told(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Where a position is the identity of an event, its copies are equal; with a key, without, and in parts."""
    tables = [shareplex.Table(name) for name in ("items", "bag", "parts", "equal")]
    items, bag, parts, equal = tables
    changes = [
        *(table.insert(10, id=1, name="a") for table in tables),
        items.insert(10, id=1, name="b"), bag.insert(10, id=1, name="b"), parts.insert(10, id=1, name="b"),
        equal.insert(10, id=1, name="a"), parts.update(12, id=1),
    ]  # fmt: skip
    keys = {f"shop.{table.name}": {"key": [] if table is bag else ["id"]} for table in tables}
    shop = source("shareplex_json", tables=keys)
    deliver(Path(shop.landing).parent, "1", map(shareplex.message, changes))
    assert not run_all(shop)["check"].problems
    rows = Ledger(lake, shop.source).contradictions()
    assert {(row.object, row.kind, row.events, row.place) for row in rows} == {
        (f"shop.{name}", "different_copies", 1, _first_of(name, changes)) for name in ("items", "bag", "parts")
    }


def _first_of(table: str, changes: Sequence[Change]) -> int:
    """Return the place of the first message of a table in a dump."""
    return next(place for place, change in enumerate(changes, 1) if change.table == table)


@pytest.mark.parametrize(
    ("totals", "merged", "expected"),
    [
        ({"fresh": 2, "gone": 1}, Merged(inserted=2, updated=5, deleted=1), False),
        ({"fresh": 2, "gone": 1}, Merged(inserted=3, updated=4, deleted=1), True),
        ({"fresh": 2, "gone": 1}, Merged(inserted=1, updated=6, deleted=1), True),
        ({"fresh": 2, "gone": 1}, Merged(inserted=2, updated=6, deleted=0), True),
        ({"fresh": 2, "maybe_fresh": 2}, Merged(inserted=4), False),
        ({"fresh": 2, "maybe_fresh": 2}, Merged(inserted=5), True),
        ({"gone": 0, "maybe_gone": 1}, Merged(deleted=1), False),
        ({"breaks": 1}, Merged(), True),
        ({"fresh": None, "breaks": None}, Merged(), False),
    ],
)
def test_a_merge_that_finds_what_events_need_shows_it(
    totals: dict[str, Any], merged: Merged, *, expected: bool
) -> None:
    """Rows inserted and deleted are as many as the fold says; keys of loads may be new or not."""
    assert contradictions.are_there(Totals.of(totals), merged) is expected


def test_off_needs_no_quotes(source: Make) -> None:
    """YAML reads ``off`` as false; true says nothing."""
    assert source("canal_json", invariants={"volume": False}).invariants.volume is Consequence.OFF
    with pytest.raises(ValidationError, match="invariants"):
        source("canal_json", invariants={"volume": True})


@pytest.mark.parametrize("given", [{"missing_rows": "stop"}, {"mising_rows": "warn"}, "off"])
def test_unknown_consequences_are_refused(source: Make, given: object) -> None:
    """A kind or a consequence that there is not is an error."""
    with pytest.raises(ValidationError, match="invariants"):
        source("canal_json", invariants=given)
