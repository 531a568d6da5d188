"""Which files a landing pattern finds, and for which interval."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow.fs as pafs
import pytest

from tidemark.dumps import listing
from tidemark.errors import ConfigurationError

DAY_MICROS = 86_400_000_000
JAN_1 = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z, epoch µs."""


def touch(root: Path, *names: str) -> None:
    """Make small files."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def found(pattern: str, start: datetime | None = None, end: datetime | None = None) -> list[str]:
    """Names of the folder and file found, in order."""
    return ["/".join(Path(file.path).parts[-2:]) for file in listing.find(pattern, start=start, end=end).files]


def day(number: int, hour: int = 0) -> datetime:
    """A moment of January 2026."""
    return datetime(2026, 1, number, hour, tzinfo=UTC)


def test_files_of_one_day_belong_to_the_interval_of_that_day(tmp_path: Path) -> None:
    """An interval takes the files whose day begins in it: the start is in, the end is not."""
    touch(tmp_path, "2026-01-01/a.json", "2026-01-02/b.json", "2026-01-02/a.json", "2026-01-03/a.json")
    pattern = f"{tmp_path}/%Y-%m-%d/*.json"
    assert found(pattern, day(2), day(3)) == ["2026-01-02/a.json", "2026-01-02/b.json"]
    assert found(pattern, day(1), day(4)) == [
        "2026-01-01/a.json",
        "2026-01-02/a.json",
        "2026-01-02/b.json",
        "2026-01-03/a.json",
    ]
    assert found(pattern, day(3)) == ["2026-01-03/a.json"]
    assert len(found(pattern)) == 4


def test_interval_finer_than_the_path_takes_the_files_whose_day_starts_in_it(tmp_path: Path) -> None:
    """Of the hours of a day only the first takes the files of the day, so none is landed twice."""
    touch(tmp_path, "2026-01-02/a.json")
    pattern = f"{tmp_path}/%Y-%m-%d/*.json"
    hours = [found(pattern, day(2, hour), day(2, hour + 1)) for hour in range(23)]
    assert hours == [["2026-01-02/a.json"], *[[]] * 22]


def test_interval_size_and_order_are_told(tmp_path: Path) -> None:
    """A file has the start of its period in epoch µs, its size and its time; the order is interval, path."""
    touch(tmp_path, "b/2026010101.json", "a/2026010200.json", "a/2026010101.json")
    os.utime(tmp_path / "b/2026010101.json", ns=(1, 1234567890123456789))
    files = listing.find(f"{tmp_path}/*/%Y%m%d%H.json", start=None, end=None).files
    assert [file.interval for file in files] == [JAN_1 + 3_600_000_000, JAN_1 + 3_600_000_000, JAN_1 + DAY_MICROS]
    assert files[1].path == f"{tmp_path}/b/2026010101.json"
    assert (files[1].size, files[1].modified) == (3, 1234567890123456789)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("erp", ["erp/a.json", "erp/b.json.gz", "erp/x%y.json"]),
        ("erp/", ["erp/a.json", "erp/b.json.gz", "erp/x%y.json"]),
        ("erp/*", ["erp/a.json", "erp/b.json.gz", "erp/x%y.json"]),
        ("erp/*.json", ["erp/a.json", "erp/x%y.json"]),
        ("erp/?.json", ["erp/a.json"]),
        ("erp/a.json", ["erp/a.json"]),
        ("erp/x%%y.json", ["erp/x%y.json"]),
        ("erp/**/*.json", ["erp/a.json", "deep/c.json", "deeper/d.json", "erp/x%y.json"]),
        ("erp/**", ["erp/a.json", "erp/b.json.gz", "deep/c.json", "deeper/d.json", "erp/x%y.json"]),
        ("erp/*/*.json", ["deep/c.json"]),
        ("erp/[ab].json", []),
        ("nowhere/%Y/*.json", []),
    ],
)
def test_wildcards(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    """Wildcards stay within a name, two stars go through folders, every other character is itself."""
    touch(tmp_path / "erp", "a.json", "b.json.gz", "deep/c.json", "deep/deeper/d.json", "x%y.json")
    assert found(f"{tmp_path}/{pattern}") == expected


def test_hidden_and_unfinished_files_are_not_taken(tmp_path: Path) -> None:
    """What a writer still works on, or keeps for itself, is no dump; a name spelled out in the pattern is."""
    touch(
        tmp_path / "d", ".a.json", "_SUCCESS", "b.json.tmp", "c.json.part", "_temporary/d.json", ".x/e.json", "f.json"
    )
    assert found(f"{tmp_path}/d/**/*") == ["d/f.json"]
    assert found(f"{tmp_path}/d") == ["d/f.json"]
    assert found(f"{tmp_path}/d/_temporary/*.json") == ["_temporary/d.json"]


def test_links_pipes_and_folders_are_not_taken(tmp_path: Path) -> None:
    """A link is not followed, whether it is a file or a folder, and only regular files are dumps."""
    touch(tmp_path, "outside/secret.json", "d/a.json")
    (tmp_path / "d/link.json").symlink_to(tmp_path / "outside/secret.json")
    (tmp_path / "d/folder").symlink_to(tmp_path / "outside")
    os.mkfifo(tmp_path / "d/pipe.json")
    (tmp_path / "d/named.json").mkdir()
    assert found(f"{tmp_path}/d/**/*.json") == ["d/a.json"]


def test_names_that_are_no_utf_8_are_told(tmp_path: Path) -> None:
    """Their paths have escapes, whatever the name matches, and say why the file cannot land; others say nothing."""
    for name in (b"2026-01-01/caf\xe9.json", b"2026-02-30/caf\xe9.json", b"2026-01-01/caf\xc3\xa9.json"):
        touch(tmp_path, os.fsdecode(name))
    (tmp_path / os.fsdecode(b"2026-01-01/\xe9.json")).symlink_to(tmp_path)
    found = listing.find(f"{tmp_path}/%Y-%m-%d/*.json", start=day(1), end=day(2))
    odd, sound = found.files
    assert (odd.path, sound.path) == (f"{tmp_path}/2026-01-01/caf\\xe9.json", f"{tmp_path}/2026-01-01/café.json")
    assert odd.problem == f"{odd.path}: its name, or that of a folder above it, is not UTF-8; rename it"
    assert sound.problem is None
    assert found.untimed == [f"{tmp_path}/2026-02-30/caf\\xe9.json"]


def test_times_that_do_not_exist_are_no_times(tmp_path: Path) -> None:
    """The 31st of February and day 366 are listed apart; a second date that differs from the first is no match."""
    touch(tmp_path, "2026-02-31.json", "2026-01-01.json", "2026-01-32.json")
    listed = listing.find(f"{tmp_path}/%Y-%m-%d.json", start=None, end=None)
    assert [Path(file.path).name for file in listed.files] == ["2026-01-01.json"]
    assert [Path(path).name for path in listed.untimed] == ["2026-01-32.json", "2026-02-31.json"]
    touch(tmp_path, "2026/2026-001.log", "2026/2025-001.log", "2026/2026-366.log")
    listed = listing.find(f"{tmp_path}/%Y/%Y-%j.log", start=None, end=None)
    assert [(Path(file.path).name, file.interval) for file in listed.files] == [("2026-001.log", JAN_1)]
    assert [Path(path).name for path in listed.untimed] == ["2026-366.log"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("dt=%Y-%m-%d/hour=%H/*.json", ["dt=2026-01-01/hour=9/a.json", "dt=2026-01-01/hour=10/a.json"]),
        ("%Y-%m-%d/*.json", ["2026-1-2/a.json", "2026-1-10/a.json", "2026-10-02/a.json"]),
        ("%Y/%m/%d.json", ["2026/1/1.json", "2026/1/02.json", "2026/12/1.json"]),
        ("*_%Y-%m-%d*.json", ["b_2026-1-2.json", "a_2026-1-3_7.json"]),
        ("%Y/%j.json", ["2026/7.json", "2026/10.json", "2026/100.json"]),
        ("%Y/month=%m/%Y-%m-%d.json", ["2026/month=1/2026-01-02.json", "2026/month=2/2026-2-1.json"]),
        ("%Y-%m-%d", ["2026-1-2", "2026-1-10/a.json"]),
    ],
)
def test_a_number_of_a_time_may_lack_its_leading_zeros(tmp_path: Path, pattern: str, names: list[str]) -> None:
    """Where no digit stands beside it, a shorter number says its time, and times order files."""
    touch(tmp_path, *names)
    listed = listing.find(f"{tmp_path}/{pattern}", start=None, end=None)
    assert [file.path for file in listed.files] == [f"{tmp_path}/{name}" for name in names]
    assert listed.untimed == listed.unpadded == []
    intervals = [file.interval for file in listed.files]
    assert intervals == sorted(set(intervals))
    assert found(f"{tmp_path}/{pattern}") == found(f"{tmp_path}/{pattern}", day(1), datetime(2027, 1, 1, tzinfo=UTC))


def test_an_hour_without_its_zero_belongs_to_that_hour(tmp_path: Path) -> None:
    """The folder ``hour=9`` lands with the run of that hour, as ``hour=09`` does."""
    touch(tmp_path, "dt=2026-1-2/hour=9/a.json", "dt=2026-01-02/hour=09/b.json", "dt=2026-01-02/hour=10/c.json")
    pattern = f"{tmp_path}/dt=%Y-%m-%d/hour=%H/*.json"
    assert sorted(found(pattern, day(2, 9), day(2, 10))) == ["hour=09/b.json", "hour=9/a.json"]


def test_a_path_with_all_digits_names_the_time_that_it_always_named(tmp_path: Path) -> None:
    """Single digits that wildcards take are no times where the numbers with all digits are there."""
    touch(tmp_path, "2026-01-02-5-6.json")
    (file,) = listing.find(f"{tmp_path}/%Y*%m*%d*.json", start=None, end=None).files
    assert file.interval == JAN_1 + DAY_MICROS


def test_numbers_that_run_together_without_their_zeros_are_told(tmp_path: Path) -> None:
    """``2026111`` may be two days, so no run takes the file, and it is listed apart; a year has its four digits."""
    touch(tmp_path, "2026111.json", "20260111.json", "202611.json", "2026.json", "26-1-1.json", "20260111.txt")
    listed = listing.find(f"{tmp_path}/%Y%m%d.json", start=None, end=None)
    assert [Path(file.path).name for file in listed.files] == ["20260111.json"]
    assert [Path(path).name for path in listed.unpadded] == ["202611.json", "2026111.json"]
    assert listing.find(f"{tmp_path}/%Y-%m-%d.json", start=None, end=None).unpadded == []


BERLIN, SHANGHAI = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Shanghai")


def hours_of(names: list[str], folder: Path, first: datetime, hours: int, zone: ZoneInfo) -> dict[str, list[int]]:
    """By name of a file ``<day>T<hour>.json``, which hours from ``first`` on find it, counted from 0."""
    touch(folder, *(f"{name}.json" for name in names))
    found: dict[str, list[int]] = {name: [] for name in names}
    for hour in range(hours):
        start = first + timedelta(hours=hour)
        end = start + timedelta(hours=1)
        for file in listing.find(f"{folder}/%Y-%m-%dT%H.json", start=start, end=end, zone=zone).files:
            found[Path(file.path).stem].append(hour)
    return found


def test_hours_of_a_zone(tmp_path: Path) -> None:
    """Each folder has the hours that the clock of the zone shows: on any day, and where clocks are put back or forward.

    An hour that comes twice belongs to both runs, and its files come in the order of the first. An hour that is left
    out, which a clock without summer time may write all the same, belongs to the run of the hour that follows.
    """
    plain = ["2026-01-02T00", "2026-01-02T01"]
    start = datetime(2026, 1, 1, 16, tzinfo=UTC)
    assert hours_of(plain, tmp_path / "a", start, 3, SHANGHAI) == {plain[0]: [0], plain[1]: [1]}
    back = [f"2026-10-25T{hour:02d}" for hour in range(5)]
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert list(hours_of(back, tmp_path / "b", start, 6, BERLIN).values()) == [[0], [1], [2, 3], [4], [5]]
    forward = [f"2026-03-29T{hour:02d}" for hour in range(5)]
    start = datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert list(hours_of(forward, tmp_path / "c", start, 5, BERLIN).values()) == [[0], [1], [2], [2], [3]]
    listed = listing.find(f"{tmp_path}/*/%Y-%m-%dT%H.json", start=None, end=None, zone=BERLIN)
    assert [Path(file.path).stem for file in listed.files if "2026-01" not in file.path] == [*forward, *back]


def test_days_of_a_zone_have_23_to_25_hours(tmp_path: Path) -> None:
    """A day's folder belongs to the run that begins at its midnight, whatever the length of the day."""
    names = [f"2026-{month}-{number:02d}" for month, number in (("03", 29), ("03", 30), ("10", 25), ("10", 26))]
    touch(tmp_path, *(f"{name}.json" for name in names))
    files = listing.find(f"{tmp_path}/%Y-%m-%d.json", start=None, end=None, zone=BERLIN).files
    starts = [datetime.fromtimestamp(start / 1e6, UTC).isoformat()[5:13] for file in files for start in file.starts]
    assert starts == ["03-28T23", "03-29T22", "10-24T22", "10-25T23"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("/d/%y/*.json", "unknown field of time '%y'; allowed are %Y %m %d %j %H %M %S"),
        ("/d/%Y/100%", "unknown field of time '%'"),
        ("/d/%m-%d/*.json", "%m says no time without %Y"),
        ("/d/%Y/%H.json", "%H says no time without %d or %j"),
        ("nosuch://d/*.json", "cannot be listed"),
    ],
)
def test_wrong_patterns_are_configuration_errors(pattern: str, reason: str) -> None:
    """A pattern that names no time, or no store, says what is wrong with it."""
    with pytest.raises(ConfigurationError, match=re.escape(reason)) as caught:
        listing.find(pattern, start=None, end=None)
    assert pattern in str(caught.value)


def test_uri_of_a_local_folder_is_that_folder(tmp_path: Path) -> None:
    """``file://`` reads as the plain path does."""
    touch(tmp_path, "2026-01-01/a.json")
    assert found(f"file://{tmp_path}/%Y-%m-%d/*.json") == ["2026-01-01/a.json"]


def test_object_store_is_listed_by_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in an object store is named by a URI that opens it: its name quoted, the options of the store kept."""
    touch(tmp_path, "bucket/erp/2026-01-02/a b.json", "bucket/erp/2026-01-03/_c.json", "bucket/other/2026-01-02/a.json")
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(listing, "locate", lambda root: (store, root.removeprefix("s3://")))
    files = listing.find("s3://bucket/erp/%Y-%m-%d/*.json?region=eu", start=day(1), end=day(9)).files
    assert [(file.path, file.interval, file.size) for file in files] == [
        ("s3://bucket/erp/2026-01-02/a%20b.json?region=eu", JAN_1 + DAY_MICROS, 3)
    ]
    assert listing.find("s3://bucket/nowhere/*.json", start=None, end=None).files == []
