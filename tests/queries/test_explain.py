"""The life of a row: its last setters are the published row, and every event that lost says why."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support import shareplex
from support.histories import COLUMNS, canal, deliver, generated, message, mixed
from support.reference import Change
from support.running import run_all
from tidemark.cli.app import app
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.positions import identity
from tidemark.queries.explain import Life, explain
from tidemark.queries.row_life import Chapter, Outcome, Step, WrittenCell, tell, tell_bag
from tidemark.queries.row_life_text import as_text
from tidemark.sources.model import Source
from tidemark.tables.schemas import COMMITTED_AT, POSITION

RUNNER = CliRunner()
_RUNS, _HISTORIES = 3, 12


def _step(operation: str, at: int, *, deletes: bool = False, batch: int = 1, **fields: Any) -> Step:
    return Step(
        operation=operation,
        position=f"01{at:03d}.011",
        committed_at=None,
        transaction=None,
        file="a",
        place=at,
        row=0,
        batch=batch,
        deletes=deletes,
        **fields,
    )


A = {"name": "a", "note": "x"}
INSERT, PARTIAL = _step("INSERT", 1, cells=A), _step("UPDATE", 2, cells={"name": "b"})
DELETE, TRUNCATE = _step("DELETE", 3, deletes=True), _step("TRUNCATE", 4, deletes=True)
LATER = _step("INSERT", 9, cells={"name": "c", "note": "y"})


class Case(NamedTuple):
    """Steps of one row, and how each ends."""

    name: str
    steps: list[Step]
    outcomes: list[tuple[str, str]]
    """Outcome, and what the detail begins with; in the order of position."""


@pytest.mark.parametrize(
    "case",
    [
        Case("one", [INSERT], [("stands", "all that it wrote")]),
        Case("partial", [PARTIAL, INSERT], [("stands", "still standing: note"), ("stands", "all that it wrote")]),
        Case(
            "written_again",
            [INSERT, LATER],
            [("superseded", "older than what stands: written again by event 2"), ("stands", "all")],
        ),
        Case(
            "deleted",
            [INSERT, PARTIAL, DELETE],
            [("superseded", "below the DELETE, event 3")] * 2 + [("stands", "the row is gone")],
        ),
        Case("deleted_only", [DELETE], [("stands", "there was no row to delete")]),
        Case(
            "deleted_and_again",
            [DELETE, LATER],
            [("superseded", "older than what stands: written again by event 2"), ("stands", "all")],
        ),
        Case(
            "truncated",
            [INSERT, DELETE, TRUNCATE],
            [
                ("superseded", "below the DELETE, event 2"),
                ("superseded", "below the TRUNCATE, event 3"),
                ("stands", "there was no row to delete"),
            ],
        ),
        Case(
            "copies",
            [INSERT, _step("INSERT", 1, cells=A, batch=2), _step("INSERT", 1, cells=A, batch=3)],
            [("stands", "all"), ("duplicate", "a copy of event 1"), ("duplicate", "a copy")],
        ),
        Case(
            "key_changed",
            [INSERT, _step("UPDATE", 5, deletes=True, moved_to={"id": "2"})],
            [("superseded", "below the change of the key, event 2"), ("stands", "the row went to the other key")],
        ),
        Case(
            "waiting",
            [INSERT, _step("DELETE", 5, deletes=True, aside=(Outcome.WAITING, "later"))],
            [("stands", "all"), ("waiting", "later")],
        ),
    ],
    ids=lambda case: case.name,
)
def test_what_became_of_events(case: Case) -> None:
    """Whatever order the steps come in."""
    for seed in range(5):
        steps = random.Random(seed).sample(case.steps, len(case.steps))  # noqa: S311
        chapters = tell(steps)
        assert len(chapters) == len(case.outcomes)
        for chapter, (outcome, detail) in zip(chapters, case.outcomes, strict=True):
            assert chapter.outcome == outcome, chapter
            assert chapter.detail.startswith(detail), chapter


def test_an_update_in_two_halves_is_no_delete() -> None:
    """The old half does nothing where the new half has the same key; it deletes its own key else."""
    old = _step("UPDATE", 5, deletes=True, half=True)
    old = Step(**{name: getattr(old, name) for name in old.__dataclass_fields__} | {"position": "01005.010"})
    new = _step("UPDATE", 5, cells={"name": "b"})
    chapters = tell([INSERT, old, new])
    assert [chapter.outcome for chapter in chapters] == ["stands", "superseded", "stands"]
    assert chapters[1].detail == "the old half of the update, event 3"
    assert tell([INSERT, old])[1].detail == "the row is gone"


def test_a_soft_delete_shows_what_it_saw_until_the_row_comes_again() -> None:
    """A deleted row shows what its delete saw, else what it held last; that is no part of a row that comes again."""
    delete = _step("DELETE", 3, deletes=True, leaves={"name": "seen", "note": None})
    inserted, deleted = tell([INSERT, delete], soft=True)
    assert {name: cell.stands for name, cell in inserted.cells.items()} == {"name": False, "note": True}
    assert (inserted.outcome, deleted.detail) == ("stands", "the row is deleted, and stays marked")
    cell = deleted.cells["name"]
    assert (cell.old, cell.new, cell.stands) == ("a", "seen", True)
    _, deleted, partial = tell([INSERT, delete, _step("UPDATE", 9, cells={"note": "z"})], soft=True)
    assert (deleted.cells, list(partial.cells)) == ({}, ["note"])


def test_equal_rows_of_a_table_without_a_key() -> None:
    """The published positions show which copies stand."""
    rows = [_step("INSERT", at, cells={"a": "1"}) for at in (1, 5, 6)]
    gone = _step("DELETE", 7, deletes=True)
    copy = _step("INSERT", 6, cells={"a": "1"}, batch=2)
    chapters = tell_bag([*rows, gone, copy, TRUNCATE], {"01006.011"})
    assert [chapter.outcome for chapter in chapters] == [
        "superseded",
        "stands",
        "superseded",
        "stands",
        "duplicate",
        "stands",
    ]
    assert chapters[0].detail == "below the TRUNCATE, event 2"


@pytest.fixture(scope="module")
def histories(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Change]]:
    """Generated histories as tables of a source; the second table has updates in halves; mixed, in three runs."""
    dice = random.Random(7)  # noqa: S311
    changes_by_table: dict[str, list[Change]] = {}
    writers = {"lives": ("debezium_json", generated, message)}
    writers["half_lives"] = ("shareplex_json", shareplex.generated, shareplex.message)
    for name, (kind, make, write) in writers.items():
        landing = tmp_path_factory.mktemp(name)
        made = {f"h{seed}": make(f"h{seed}", seed) for seed in range(_HISTORIES)}
        tables = {f"shop.{table}": {"key": changes[0].key, "columns": COLUMNS} for table, changes in made.items()}
        fields = {"source": name, "format": kind, "landing": str(landing / "*"), "tables": tables}
        source = Source.model_validate({**fields, "max_deletes": 1})
        deliveries = [mixed(dice, changes, _RUNS) for changes in made.values()]
        for run in range(_RUNS):
            deliver(landing, f"run-{run}", [write(change) for runs in deliveries for change in runs[run]])
            run_all(source)
        changes_by_table |= {f"{name}.{table}": changes for table, changes in made.items()}
    return changes_by_table


def _text(value: object, column: str) -> object:
    return value if value is None or COLUMNS[column] == "string" else Decimal(str(value))


def _as_told(chapters: Sequence[Chapter]) -> dict[str, object] | None:
    """The row that the cells still standing make, with the position of the newest event; None where it is gone."""
    standing = [chapter for chapter in chapters if chapter.outcome == Outcome.STANDS]
    if not standing or standing[-1].step.deletes:
        return None
    setters: dict[str, object] = {}
    for chapter in standing:
        for name, cell in chapter.cells.items():
            if cell.stands:
                assert name not in setters, "two setters of one cell"
                setters[name] = _text(cell.new, name)
    return {**setters, POSITION: standing[-1].step.position}


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.parametrize("source", ["lives", "half_lives"])
@pytest.mark.parametrize("seed", range(_HISTORIES))
def test_the_last_setters_are_the_published_row(
    source: str, seed: int, histories: dict[str, list[Change]], lake: Lake
) -> None:
    """For every key that a history speaks of, its own events and no others."""
    changes = histories[f"{source}.h{seed}"]
    key = changes[0].key
    table = lake.load((source, f"h{seed}"))
    published = {tuple(row[name] for name in key): row for row in table.scan().to_arrow().to_pylist()}
    images = [image for change in changes for image in (change.before, change.after) if image]
    keys = {tuple(int(image[name]) for name in key) for image in images} | {(99,) * len(key)}
    assert published.keys() <= keys
    for wanted in keys:
        life = explain(lake, f"{source}.h{seed}", [f"{name}={value}" for name, value in zip(key, wanted, strict=True)])
        row = published.get(wanted)
        cells = _as_told(life.chapters)
        assert life.rows.num_rows == (row is not None)
        if row is None:
            assert cells is None, (wanted, life.chapters)
            continue
        assert cells is not None, (wanted, life.chapters)
        for name in set(row) - {*key, COMMITTED_AT, POSITION}:
            assert cells.get(name) == _text(row[name], name), (wanted, name, life.chapters)
        assert cells[POSITION] == row[POSITION]
        mine = [change for change in changes if _concerns(change, wanted)]
        shown = {identity(chapter.step.position) for chapter in life.chapters if chapter.step.operation != "TRUNCATE"}
        assert len(shown) == len({change.position for change in mine})


def _concerns(change: Change, wanted: tuple[Any, ...]) -> bool:
    images = [image for image in (change.before, change.after) if image]
    return any(tuple(int(image[name]) for name in change.key) == wanted for image in images)


KEYS = {
    "text": ("varchar(9)", "a=b ä", "name", "a=b ä"),
    "number": ("decimal(10,2)", "1.10", "2.00", "1.1"),
    "day": ("date", "2026-01-31", "0001-01-01", "2026-01-31"),
    "bytes": ("varbinary(9)", "\u0000ÿ", "", "AP8="),
    "flag": ("tinyint(1)", "1", "0", "true"),
    "time": ("datetime(6)", "2026-01-31 10:00:00.000001", "2026-01-31 10:00:00", "2026-01-31T10:00:00.000001"),
    "instant": ("timestamp", "2026-01-31 10:00:00", "2026-01-31 10:00:01", "2026-01-31T10:00:00Z"),
}
"""Type, the wire value of the row that is looked up, of another, and how it is looked up."""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Keys of every type, values that do not fit, a table that stops, and events behind the published cut."""
    landing = tmp_path_factory.mktemp("asked")
    wide, day = {"id": "int", "n": "int"}, {"id": "int", "n": "date"}
    tables = {"shop.key_flag": {"columns": {"id": "boolean"}}, "shop.key_instant": {"columns": {"id": "timestamptz"}}}
    source = Source.model_validate(
        {"source": "asked", "format": "canal_json", "landing": str(landing / "*"), "tables": tables}
    )
    keyed = [
        canal(f"key_{name}", "INSERT", {"id": key[0], "n": "int"}, (value, "1"))
        for name, key in KEYS.items()
        for value in key[1:3]
    ]
    moved = canal("items", "UPDATE", wide, ("2", "5"), old={"id": "1"})
    price = {"id": "int", "p": "decimal(8,2)"}
    misfits = [canal("prices", "INSERT", price, ("1", "5.10")), canal("prices", "UPDATE", price, ("1", "5.123"))]
    stops = [canal("stops", "INSERT", wide, ("1", "5"))]
    deliver(landing, "a", [*keyed, canal("items", "INSERT", wide, ("1", "5")), moved, *misfits, *stops])
    run_all(source)
    deliver(landing, "b", [canal("stops", "INSERT", day, ("1", "2026-01-31"))])
    run_all(source)
    deliver(landing, "c", [canal("items", "DELETE", wide, ("2", "5"))])
    for stage in ("land", "normalize"):
        run_stage(stage, source, None, None)
    return source


@pytest.mark.spark
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type(name: str, shop: Source, lake: Lake) -> None:
    """A value is read with its column's type, and finds its row and no other."""
    life = explain(lake, f"asked.key_{name}", [f"id={KEYS[name][3]}"])
    assert [chapter.outcome for chapter in life.chapters] == [Outcome.STANDS]
    assert life.rows.num_rows == 1


@pytest.mark.spark
def test_a_changed_key_is_told_on_both_sides(shop: Source, lake: Lake) -> None:
    """The row left one key and came to the other; what lies behind the published cut waits."""
    (inserted, left) = explain(lake, "asked.items", ["id=1"]).chapters
    assert (inserted.outcome, inserted.detail) == (
        Outcome.SUPERSEDED,
        "below the change of the key, event 2",
    )
    assert (left.outcome, left.step.moved_to, left.cells) == (Outcome.STANDS, {"id": "2"}, {})
    came, deleted = explain(lake, "asked.items", ["id=2"]).chapters
    assert (came.step.moved_from, came.cells["n"].stands) == ({"id": "1"}, True)
    assert (deleted.outcome, deleted.detail) == (Outcome.WAITING, "the next compact takes it")


@pytest.mark.spark
def test_quarantined_and_held_events_say_why(shop: Source, lake: Lake) -> None:
    """A value that does not fit; a table that is stopped."""
    _, misfit = explain(lake, "asked.prices", ["id=1"]).chapters
    assert misfit.outcome == Outcome.QUARANTINED
    assert misfit.detail.startswith("unreadable_value: column 'p'")
    _, held = explain(lake, "asked.stops", ["id=1"]).chapters
    assert held.outcome == Outcome.HELD
    assert "changed from int to date" in held.detail


@pytest.mark.spark
def test_the_command(shop: Source, tmp_path: Path) -> None:
    """Text for people, one object an event for programs; a key that never was is no error."""
    text = RUNNER.invoke(app, ["explain", "asked.items", "id=1"])
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith('asked.items id="1"\n\n1 INSERT superseded: ')
    assert '  the key changed, to id="2"\n' in text.stdout
    assert text.stdout.endswith("published rows: 0\n")
    assert "\n  committed 2026-" in text.stdout or "\n  committed at an unknown time" in text.stdout
    lines = RUNNER.invoke(app, ["explain", "asked.items", "id=2", "--json"]).stdout.splitlines()
    first, second = map(json.loads, lines)
    assert first["cells"] == {"n": {"old": None, "new": "5", "stands": True}}
    assert (first["moved_from"], first["existed"], first["outcome"]) == ({"id": "1"}, False, "stands")
    assert (second["outcome"], second["deletes"]) == ("waiting", True)
    never = RUNNER.invoke(app, ["explain", "asked.items", "id=77", "--json"])
    assert (never.exit_code, never.stdout) == (0, "")
    assert "No event of asked.items has id=77" in never.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table", "given", "wanted"),
    [
        ("asked.item", ["id=1"], "asked.items"),
        ("ledger.cuts", ["id=1"], "no table of a source"),
        ("asked.items", ["n=1"], "'id' is missing"),
        ("asked.items", ["id=1", "n=1"], "'n' is not in the key"),
        ("asked.items", ["ids=1"], "Did you mean 'id'"),
        ("asked.items", ["1"], "COLUMN=VALUE"),
        ("asked.items", ["id=one"], "no int"),
        ("asked.items", [f"id={2**40}"], "beyond 32 bits"),
        ("asked.key_bytes", ["id=%%"], "not Base64"),
    ],
)
def test_wrong_questions_are_told(table: str, given: list[str], wanted: str, shop: Source, lake: Lake) -> None:
    """Exit status 2, with the names that there are."""
    with pytest.raises(ConfigurationError, match=wanted) as refused:
        explain(lake, table, given)
    assert refused.value.exit_status == 2


def test_text_for_people_has_keys_whole_and_a_row_one_below_the_other() -> None:
    """A long value is cut in an event, and the text says by how much; of equal rows each is a block."""
    key, long = "k" * 200, "v" * 100
    step = replace(_step("UPDATE", 1, moved_from={"id": key}), transaction={"id": key})
    chapter = Chapter(
        number=1, step=step, outcome=Outcome.STANDS, cells={"n": WrittenCell(old="", new=long, stands=True)}
    )
    row = {"id": [key], "n": [long]}
    lines = [*as_text(Life(table="erp.items", key={"id": key}, chapters=[chapter], rows=pa.table(row)))]
    assert lines[0] == f'erp.items id="{key}"'
    assert f'  committed at an unknown time, transaction "{key}"' in lines
    assert f'  the key changed, from id="{key}"' in lines
    assert any(line.endswith("... (and 22 more characters; --json shows them)  (stands)") for line in lines)
    assert lines[-3:] == ["published rows: 1", f'  id: "{key}"', f'  n: "{long}"']
    both = [*as_text(Life(table="erp.items", key={}, chapters=[], rows=pa.table({"id": [1, 1]})))]
    assert both[-5:] == ["published rows: 2", "-- 1 --", "  id: 1", "-- 2 --", "  id: 1"]
