"""Which files a run would land, how many it may, and what is remarked of the others."""

from __future__ import annotations

import gzip
import itertools
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import AlwaysTrue

from tidemark.errors import LandingError
from tidemark.lake.lake import Lake
from tidemark.ledger.landing_rows import IntervalRow, together
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries import new_contents
from tidemark.queries.pending_files import Pending, pending
from tidemark.queries.source_plan import plan_of
from tidemark.sources.model import Source

MakeSource = Callable[..., Source]

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 1
"""Newest batch of ``raw``."""


def day(number: int) -> datetime:
    """A moment of January 2026."""
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.fixture
def daily(source: MakeSource, tmp_path: Path) -> Source:
    """A source with a folder for each day."""
    return source("canal_json", landing=f"{tmp_path}/%Y-%m-%d/*.json")


def deliver(source: Source, *names: str) -> None:
    """Write small files, each with content of its own."""
    for name in names:
        path = Path(source.landing).parents[1] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"name": "{name}"}}\n')


def names(files: Pending) -> list[str]:
    """Folder and name of the files that would land."""
    return ["/".join(Path(file.path).parts[-2:]) for file in files.fresh]


def test_the_limit_counts_the_files_that_the_run_would_land(
    daily: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run for one day of a folder with many days goes on; a run for more new files than the limit is refused."""
    monkeypatch.setattr(new_contents, "FILES_LIMIT", 2)
    ledger = Ledger(lake, daily.source)
    deliver(daily, *(f"2026-01-0{number}/{name}.json" for number in (1, 2, 3) for name in "ab"))
    for start, end in ((day(2), day(4)), (None, None)):
        with pytest.raises(LandingError, match="at least 4 new files for one run, the limit is 2; take shorter"):
            run_stage("land", daily, start, end)
    assert names(pending(daily, ledger, BATCH, day(2), day(3))) == ["2026-01-02/a.json", "2026-01-02/b.json"]
    assert run_stage("land", daily, day(2), day(3)).summary["files"] == 2


def test_refused_files_count_and_those_that_grew_do_not(
    daily: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was refused is read again in each run; what grew was counted when it came."""
    monkeypatch.setattr(new_contents, "FILES_LIMIT", 2)
    for number in (2, 3):
        deliver(daily, *(f"2026-01-0{number}/{name}.json" for name in "ab"))
        run_stage("land", daily, day(number), day(number + 1))
    folder = Path(daily.landing).parents[1]
    for file in sorted(folder.glob("*/*.json")):
        file.write_text(file.read_text() + '{"name": "more"}\n')
    assert run_stage("land", daily).summary == {"files": 4, "messages": 4, "refused": 0, "batch": 3}
    for name in "cde":
        (folder / "2026-01-02" / f"{name}.json").write_text(f'{{"{name}": ')
    with pytest.raises(LandingError, match="at least 3 new files for one run, the limit is 2"):
        run_stage("land", daily)


def test_known_bytes_are_read_once_and_do_not_count(daily: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under other paths, or with another time of change, they land nothing, and later runs do not look into them."""
    folder = Path(daily.landing).parents[1]
    deliver(daily, *(f"2026-01-0{number}/{name}.json" for number in (1, 2, 3) for name in "ab"))
    for number in (1, 2, 3):
        run_stage("land", daily, day(number), day(number + 1))
    moved = daily.model_copy(update={"landing": daily.landing.replace(str(folder), f"{folder}/moved")})
    shutil.copytree(folder, folder / "moved")
    deliver(moved, "2026-01-04/new.json", "2026-01-04/copy.json")
    shutil.copy(folder / "moved" / "2026-01-04" / "new.json", folder / "moved" / "2026-01-04" / "copy.json")
    monkeypatch.setattr(new_contents, "FILES_LIMIT", 2)
    assert run_stage("land", moved, day(4), day(5)).summary == {"files": 1, "messages": 1, "refused": 0, "batch": 4}
    ledger = Ledger(lake, daily.source)
    known = [Path(row.path).name for row in ledger.known_files()]
    assert sorted(known) == ["a.json"] * 3 + ["b.json"] * 3 + ["new.json"]
    (folder / "moved" / "2026-01-04" / "copy.json").touch()
    assert names(pending(moved, ledger, 4, None, None)) == ["2026-01-04/copy.json"]
    assert run_stage("land", moved).summary["files"] == 0
    assert names(pending(moved, ledger, 4, None, None)) == []
    assert plan_of(moved).nothing_new.startswith("no new files: of 8 that match, those that are due have landed")
    for name in ("copy", "new"):
        (folder / "moved" / "2026-01-04" / f"{name}.json").write_text('{"name": "other"}\n')
    report = run_stage("land", moved)
    assert report.summary == {"files": 1, "messages": 1, "refused": 1, "batch": 5}
    assert "copy.json changed since it was landed (batch 4" in report.problems[0]


def test_files_that_no_interval_has_are_remarked_until_they_land(daily: Source, lake: Lake) -> None:
    """Files between the first interval and the run that are in none; not older ones, and not those that landed."""
    deliver(daily, *(f"2026-01-{number:02d}/a.json" for number in range(1, 9)))
    run_stage("land", daily, day(4), day(5))
    run_stage("land", daily, day(2), day(3))
    plan = plan_of(daily, day(7), day(8))
    (remark,) = plan.remarks
    folder = Path(daily.landing).parents[1]
    command = f"tidemark run {daily.source} --start 2026-01-03T00:00:00+00:00 --end 2026-01-07T00:00:00+00:00"
    assert remark == (
        f"passed over, as no run had an interval with them: 3 files (first: {folder}/2026-01-03/a.json); "
        f"`{command}` lands them"
    )
    assert plan_of(daily).remarks == ()
    assert run_stage("land", daily, day(7), day(8)).remarks == plan.remarks
    assert run_stage("land", daily, day(3), day(7)).summary["files"] == 3
    assert plan_of(daily, day(8), day(9)).remarks == ()


def test_what_comes_late_after_a_run_without_bounds_lands(daily: Source, lake: Lake) -> None:
    """Its days were run: a file of them that grew or came later lands with the next run, whatever its interval."""
    deliver(daily, *(f"2026-01-{number:02d}/a.json" for number in (2, 3)))
    cut = Path(daily.landing).parents[1] / "2026-01-03" / "b.json"
    cut.write_bytes(gzip.compress(b'{"name": "b"}\n' * 99)[:-9])
    assert run_stage("land", daily).summary["refused"] == 1
    deliver(daily, "2026-01-03/late.json", "2026-01-01/older.json", "2026-01-04/next.json")
    with (Path(daily.landing).parents[1] / "2026-01-03" / "a.json").open("a") as file:
        file.write('{"name": "more"}\n')
    landed = run_stage("land", daily, day(4), day(5))
    assert landed.summary == {"files": 3, "messages": 3, "refused": 1, "batch": 2}
    ledger = Ledger(lake, daily.source)
    assert {(row.start, row.end) for row in ledger.intervals()} == {
        (day(2), day(3) + timedelta(microseconds=1)),
        (day(4), day(5)),
    }
    assert run_stage("land", daily).summary["files"] == 1
    # The last run covers from the first day to the first microsecond of the fourth, which touches what was run of it.
    assert {(row.start, row.end) for row in ledger.intervals()} == {(day(1), day(5))}


@pytest.mark.parametrize("from_before", [False, True], ids=["run", "of an earlier version"])
def test_a_run_without_an_end_is_for_the_files_that_were_there(
    daily: Source,
    lake: Lake,
    from_before: bool,  # noqa: FBT001 - a column of the cases
) -> None:
    """Files of later days wait for the runs of these days, and late files of its own days land with any run."""
    deliver(daily, *(f"2026-01-0{number}/a.json" for number in (2, 3, 5)))
    assert run_stage("land", daily, day(3), None).summary["files"] == 2
    ledger = Ledger(lake, daily.source)
    (interval,) = ledger.intervals()
    assert (interval.start, interval.end) == (day(3), day(5) + timedelta(microseconds=1))
    if from_before:
        ledger.replace(IntervalRow, [IntervalRow(start=day(3), end=None)], AlwaysTrue())
    deliver(daily, *(f"2026-01-0{number}/b.json" for number in (4, 6, 7, 8)))
    assert names(pending(daily, ledger, BATCH, day(6), day(7))) == ["2026-01-04/b.json", "2026-01-06/b.json"]
    run_stage("land", daily, day(6), day(7))
    assert day(5) + timedelta(microseconds=1) in {row.end for row in ledger.intervals()}
    assert names(pending(daily, ledger, 2, day(7), None)) == ["2026-01-07/b.json", "2026-01-08/b.json"]


def test_a_run_without_a_start_is_for_the_files_that_were_there(daily: Source, lake: Lake) -> None:
    """What is delivered of days before is history that nobody asked for; a run that finds no file is for no time."""
    ledger = Ledger(lake, daily.source)
    run_stage("land", daily, day(9), None)
    run_stage("land", daily, None, day(1))
    assert ledger.intervals() == []
    deliver(daily, "2026-01-03/a.json", "2026-01-08/a.json")
    run_stage("land", daily, None, day(5))
    run_stage("land", daily, day(9), None)
    assert {(row.start, row.end) for row in ledger.intervals()} == {(day(3), day(5))}
    deliver(daily, "2026-01-02/a.json", "2026-01-04/a.json")
    assert names(pending(daily, ledger, BATCH, day(6), day(7))) == ["2026-01-04/a.json"]


def test_intervals_without_a_gap_are_kept_as_one(daily: Source, lake: Lake) -> None:
    """Years of runs are one row, in whatever order they came; late files of each of them land, and no others do."""
    for number in (2, 4, 3, 8):
        run_stage("land", daily, day(number), day(number + 1))
    ledger = Ledger(lake, daily.source)
    assert {(row.start, row.end) for row in ledger.intervals()} == {(day(2), day(5)), (day(8), day(9))}
    deliver(daily, *(f"2026-01-0{number}/late.json" for number in range(1, 10)))
    found = pending(daily, ledger, BATCH, day(9), day(10))
    assert names(found) == [f"2026-01-0{number}/late.json" for number in (2, 3, 4, 8, 9)]
    assert [Path(file.path).parent.name[-1] for file in found.passed_over] == ["5", "6", "7"]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=8), st.integers(0, 20))
def test_intervals_together_have_the_same_moments(intervals: list[tuple[int, int]], moment: int) -> None:
    """A moment is in one of some intervals if, and only if, it is in one of what they are together, which have gaps."""
    before = [(FIRST + timedelta(start), FIRST + timedelta(start + length)) for start, length in intervals]
    found = together(before)
    at = FIRST + timedelta(moment)
    assert any(start <= at < end for start, end in before) == any(start <= at < end for start, end in found)  # type: ignore[operator]
    assert all(last < first for (_, last), (first, _) in itertools.pairwise(found))  # type: ignore[operator]


def test_an_interval_without_a_bound_takes_in_the_others() -> None:
    """None is before all times as a start, and after all as an end."""
    assert together([(day(3), None), (day(1), day(2)), (day(5), day(6))]) == [(day(1), day(2)), (day(3), None)]
    assert together([(day(3), day(4)), (None, day(3))]) == [(None, day(4))]
    assert together([(day(3), day(4)), (None, None)]) == [(None, None)]


def test_a_path_that_names_no_time_is_remarked(daily: Source, lake: Lake) -> None:
    """Hour 24 is not guessed to be the next day's first: land and plan say how many files no run takes, and why."""
    hourly = daily.model_copy(update={"landing": daily.landing.replace("%d/", "%dT%H/")})
    deliver(hourly, "2026-01-01T23/a.json", "2026-01-01T24/b.json", "2026-02-30T00/c.json")
    for remarks in (plan_of(hourly).remarks, run_stage("land", hourly).remarks):
        (remark,) = remarks
        assert remark.startswith("not taken, as the path names a time that does not exist: 2 files (first: ")
        assert "2026-01-01T24/b.json" in remark
    assert Ledger(lake, hourly.source).files()[0].path.endswith("2026-01-01T23/a.json")


def test_a_path_whose_numbers_run_together_without_zeros_is_remarked(daily: Source, lake: Lake) -> None:
    """Land and plan say how many files no run takes, as it is not certain which time they name, and what to do."""
    joined = daily.model_copy(update={"landing": daily.landing.replace("%Y-%m-%d/", "%Y%m%d/")})
    deliver(joined, "20260101/a.json", "2026111/b.json")
    for remarks in (plan_of(joined).remarks, run_stage("land", joined).remarks):
        (remark,) = remarks
        assert remark.startswith("not taken, as it is not certain which time the path names without its leading zeros")
        assert "1 file (first: " in remark
        assert "2026111/b.json" in remark
    (row,) = Ledger(lake, joined.source).files()
    assert row.path.endswith("20260101/a.json")
