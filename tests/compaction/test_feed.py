"""Feeds: replaying the changes from nothing gives the published table after every cut, whatever made the cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message
from support.feeds import changes, published, replayed
from support.histories import deliver
from support.options import SECRET_VARIABLE, the_secret
from support.running import assert_ledgers_close, die_at, run_all
from tidemark.lake.branches import ancestry
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed
from tidemark.pipeline import run_stage
from tidemark.queries.sql import query
from tidemark.sources.model import Source
from tidemark.stages import REBUILD
from tidemark.tables.feeds import CHANGE_ORDINAL, CHANGE_TYPE, CUT

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """A table, what the source file says of it, and what is delivered run by run."""

    name: str
    promised: Mapping[str, Any]
    runs: Sequence[Callable[[Log], list[Message]]]


KEYED: Mapping[str, Any] = {"key": ["id"]}
CASES = [
    Case("keyed", KEYED, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y"), t.put(3, id=3, a="z")],
        lambda t: [t.put(10, {"id": 1, "a": "x"}, id=1, a="w"), t.delete(11, id=2, a="y"), t.put(12, id=4, a="v"),
                   t.put(13, id=5, a="q"), t.delete(14, id=5, a="q"), t.put(3, id=3, a="z")],
        lambda t: [t.put(5, {"id": 1, "a": "x"}, id=1, a="late"), t.put(20, {"id": 3, "a": "z"}, id=6, a="z")],
    ]),
    Case("bag", {"key": []}, [
        lambda t: [t.put(1, a="x"), t.put(2, a="x"), t.put(3, a=None)],
        lambda t: [t.delete(10, a="x"), t.put(11, {"a": None}, a="y"), t.put(12, a="z")],
        lambda t: [t.put(4, a="z"), t.delete(5, a="z")],
    ]),
    Case("soft", {**KEYED, "deletes": "soft", "history": True}, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.delete(10, id=1, a="x"), t.put(11, {"id": 2, "a": "y"}, id=2, a="w")],
        lambda t: [t.truncate(20), t.put(21, id=3, a="z")],
    ]),
    Case("renamed", KEYED, [
        lambda t: [t.put(1, id=1, a="x", b=1), t.put(2, id=2, a="y", b=2)],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO c, DROP COLUMN b, ADD COLUMN n int DEFAULT 5"),
                   t.put(11, {"id": 1, "c": "x", "n": 5}, id=1, c="z", n=6)],
        lambda t: [t.put(12, id=3, c="q", n=None)],
    ]),
    Case("truncated", KEYED, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.truncate(10), t.put(11, id=2, a="z")],
        lambda t: [t.truncate(20)],
    ]),
    Case("partial", KEYED, [
        lambda t: [t.put(1, id=1, a="x", b=1.5), t.put(2, id=2, a="y", b=-0.0)],
        lambda t: [t.put(10, {"id": 1}, id=1, a=..., b=2.5)],
        lambda t: [t.put(9, {"id": 1}, id=1, a="late", b=...)],
    ]),
    Case("masked", {**KEYED, "mask": {"a": "hmac"}, "exclude": ["b"], "rename": {"c": "called"}}, [
        lambda t: [t.put(1, id=1, a="x", b=1, c=1), t.put(2, id=2, a="y", b=2, c=2)],
        lambda t: [t.put(10, {"id": 1, "a": "x", "b": 1, "c": 1}, id=1, a="w", b=3, c=3)],
        lambda t: [t.delete(11, id=2, a="y", b=2, c=2)],
    ]),
    Case("odd", {"key": ["Id"]}, [
        lambda t: [t.put(1, **{"Id": 1, "id": 2, "a b": "x", "a.b": "y", "c0": 1, "side": 2})],
        lambda t: [t.put(2, {"Id": 1}, **{"Id": 1, "id": 3, "a b": "z", "a.b": "y", "c0": 1, "side": 3})],
        lambda t: [t.put(3, **{"Id": 2, "id": 3, "a b": "z", "a.b": "y", "c0": 1, "side": 3})],
    ]),
]  # fmt: skip
TABLES = [Identifier("fed", case.name) for case in CASES]


def _source(landing: Path, name: str = "fed", cases: Sequence[Case] = CASES, **changed: Any) -> Source:
    tables = {f"shop.{case.name}": {"feed": True, **case.promised, **changed.get(case.name, {})} for case in cases}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_deletes": 1, "mask_secret": f"${{{SECRET_VARIABLE}}}"})


def _deliver(landing: Path, run: int, cases: Sequence[Case] = CASES) -> None:
    deliver(landing, f"run-{run}", [message for case in cases for message in case.runs[run](Log(case.name))])


def _rebuild(source: Source) -> list[str]:
    return [problem for stage in REBUILD for problem in run_stage(stage, source).problems]


class Story(NamedTuple):
    """What happened, step by step: what readers of the feeds and of the tables saw then."""

    steps: dict[str, dict[Identifier, tuple[Any, Any]]]
    told: dict[str, dict[Identifier, list[dict[str, Any]]]]
    problems: list[str]


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Three cuts, a rebuild with another type, a feed that is off for a cut, and a cut that is restored."""
    with pytest.MonkeyPatch.context() as patched:
        the_secret(patched)
        landing = tmp_path_factory.mktemp("fed")
        source, found = _source(landing), Story({}, {}, [])

        def note(step: str) -> None:
            found.steps[step] = {table: (replayed(lake, table), published(lake, table)) for table in TABLES}
            found.told[step] = {table: changes(lake, table) for table in TABLES}

        for run in range(3):
            _deliver(landing, run)
            off = {"keyed": {"feed": False}, "bag": {"feed": False}} if run == 1 else {}
            for report in run_all(_source(landing, **off)).values():
                found.problems.extend(report.problems)
            if run != 1:
                note(f"run {run}")
        found.problems.extend(_rebuild(source))
        note("rebuilt")
        other = {"renamed": {"columns": {"c": "string", "n": "string"}}, "keyed": {"key": ["id", "a"]}}
        found.problems.extend(_rebuild(_source(landing, **other, masked={"mask": {"a": "redact"}})))
        note("rebuilt otherwise")
        run_stage("restore", _source(landing, **other), None, None, cut=4)
        note("restored")
        found.problems.extend(_rebuild(_source(landing, **other)))
        note("after the restore")
        yield found


STEPS = ("run 0", "run 2", "rebuilt", "rebuilt otherwise", "restored", "after the restore")


@pytest.mark.parametrize("step", STEPS)
def test_replaying_a_feed_gives_the_published_table(step: str, story: Story) -> None:
    """Row by row, after each of: cuts, a cut without a feed, rebuilds, a restore."""
    assert story.problems == []
    for table, (told, rows) in story.steps[step].items():
        assert told == rows, (step, table)


def test_x(story: Story) -> None:
    """x."""
    for table, rows in story.told["after the restore"].items():
        print(table)
        for row in rows:
            print("   ", row)
