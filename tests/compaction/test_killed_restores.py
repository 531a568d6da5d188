"""Restores that are killed between the parts of a table: the next run leads on to the rows of a clean run."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.cut_by_cut import CutByCut, Shown
from support.debezium_log import Log
from support.rounds import crash_windows
from support.running import die_at
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark
NAME = "put_back"
ENTRIES: dict[str, dict[str, Any]] = {"a_rows": {}, "b_part": {"where": "id < 100"}}
WINDOWS = {"rows_without_state": 2, "shown_without_state": 4, "state_without_whole_rows": 5}
"""The call of ``put_back`` that the process does not live to make."""


class Story(NamedTuple):
    """A source with two cuts."""

    source: Source
    seen: CutByCut
    expected: dict[str, Shown]
    events: int
    """Events of the second cut."""


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The second cut deletes rows, changes a key, and changes and adds rows of a table that shows a part of its own."""
    seen = CutByCut(lake, NAME, tmp_path_factory.mktemp("landing"))
    source = seen.source(ENTRIES, max_deletes=1)
    rows, part = Log("a_rows"), Log("b_part")
    seen.deliver("one", [log.put(number, id=number, a="x") for log in (rows, part) for number in (1, 2, 3)])
    seen.run("one", source)
    changes = [
        rows.delete(10, id=2, a="x"), rows.put(11, {"id": 3, "a": "x"}, id=4, a="y"),
        part.put(10, {"id": 1, "a": "x"}, id=1, a="y"), part.delete(11, id=2, a="x"), part.put(12, id=5, a="z"),
    ]  # fmt: skip
    seen.deliver("two", changes)
    seen.run("two", source)
    expected = seen.tables["two"]
    assert expected == {
        "a_rows": ("id a", [(1, "x"), (4, "y")]),
        "b_part": ("id a", [(1, "y"), (3, "x"), (5, "z")]),
    }
    return Story(source, seen, expected, len(changes))


@pytest.mark.parametrize("window", crash_windows(WINDOWS, usually={"rows_without_state", "state_without_whole_rows"}))
def test_a_run_after_a_killed_restore_leads_on_to_the_right_rows(
    story: Story, lake: Lake, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """A deleted row stays deleted, a row leaves its old key, a change is shown; only the later events are folded."""
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.restoring.put_back", WINDOWS[window])
        with pytest.raises(SystemExit):
            run_stage("restore", story.source, None, None, cut=1)
    story.seen.run(window, story.source)
    assert story.seen.tables[window] == story.expected
    assert story.seen.reports[window]["publish"].problems == ()
    assert story.seen.reports[window]["compact"].summary["events"] == story.events
    assert Ledger(lake, NAME).restored_cut() is None
