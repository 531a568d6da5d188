"""A landing path with a typo is an error that names the part; an interval without files is distinguished from it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from tidemark.dumps import unmatched as looked_for
from tidemark.dumps.unmatched import unmatched
from tidemark.errors import ConfigurationError
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

MakeSource = Callable[..., Source]


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Two days of one source, whose dumps lie in a folder of each day."""
    for day in (1, 2):
        (tmp_path / f"landing/erp/2026-01-0{day}/shop").mkdir(parents=True)
        (tmp_path / f"landing/erp/2026-01-0{day}/shop/a.json").write_text(f'{{"day": {day}}}\n')
    return tmp_path / "landing"


@pytest.mark.parametrize(
    ("pattern", "missing", "certain"),
    [
        ("erpp/%Y-%m-%d/*/*.json", "erpp", True),
        ("erpp/deeper/*.json", "erpp", True),
        ("erpp", "erpp", True),
        ("erp/%Y-%m-%d/shpo/*.json", "erp/2026-01-0?/shpo", True),
        ("erp/2026-01-01/shpo/%Y/*.json", "erp/2026-01-01/shpo", True),
        ("erp/%Y%m%d/shop/*.json", "erp/%Y%m%d", False),
        ("erp/*/shop/x*/*.json", "erp/2026-01-0?/shop/x*", False),
        ("erp/%Y-%m-%d/shop/*.jsonl", "erp/%Y-%m-%d/shop/*.jsonl", False),
        ("erp/**/*.jsonl", "erp/**/*.jsonl", False),
    ],
)
def test_the_first_part_that_matches_nothing(landing: Path, pattern: str, missing: str, *, certain: bool) -> None:
    """A fixed name that does not exist is certain; a wildcard or a field of time may match later."""
    found = unmatched(f"{landing}/{pattern}", landed=False)
    assert Path(found.path).match(missing) or found.path == f"{landing}/{missing}"
    assert found.certain is certain


def test_what_was_landed_may_be_gone(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But a local root that is gone is a mount that is gone. Folders of an object store are there with their files."""
    assert unmatched(f"{landing}/erpp/*.json", landed=True).certain
    assert not unmatched(f"{landing}/erp/%Y-%m-%d/shpo/*.json", landed=True).certain
    store = pafs.SubTreeFileSystem(str(landing), pafs.LocalFileSystem())
    monkeypatch.setattr(looked_for, "locate", lambda root: (store, root.removeprefix("s3://")))
    for landed in (False, True):
        assert unmatched("s3://erp/2026-01-09/deeper/*.json", landed=landed) == ("s3://erp/2026-01-09", not landed)


def test_a_run_tells_a_typo_from_an_empty_interval(landing: Path, source: MakeSource) -> None:
    """The typo is an error; an empty interval and a path that nothing has matched so far are two remarks."""
    with pytest.raises(ConfigurationError, match=f"there is no {landing}/erpp, so no file can match"):
        run_stage("land", source("canal_json", landing=f"{landing}/erpp/%Y-%m-%d/*.json"))
    later = source("canal_json", landing=f"{landing}/erp/%Y-%m-%d/shop/*.jsonl")
    (remark,) = run_stage("land", later).remarks
    assert remark.startswith("no new files: no file has ever matched")
    shop = source("canal_json", landing=f"{landing}/erp/%Y-%m-%d/shop/*.json")
    bounds = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    report = run_stage("land", shop, *bounds)
    assert report.summary["files"] == 0
    (remark,) = report.remarks
    assert remark.startswith(
        "no new files in [2026-01-05T00:00:00+00:00, 2026-01-06T00:00:00+00:00): of 2 that match, those"
    )
    assert run_stage("land", shop).remarks == ()


def test_the_hour_that_comes_twice_lands_once(tmp_path: Path, source: MakeSource) -> None:
    """Each of the two runs lands what is there by then, whichever comes first."""
    hours = [
        (datetime(2026, 10, 25, hour, tzinfo=UTC), datetime(2026, 10, 25, hour + 1, tzinfo=UTC)) for hour in (0, 1)
    ]
    for name, order in (("first", hours), ("second", hours[::-1])):
        shop = source("canal_json", landing=f"{tmp_path}/{name}/%Y-%m-%dT%H/*.json", timezone="Europe/Berlin")
        folder = tmp_path / name / "2026-10-25T02"
        folder.mkdir(parents=True)
        for number, bounds in enumerate(order):
            (folder / f"{number}.json").write_text(f'{{"number": {number}}}\n')
            assert run_stage("land", shop, *bounds).summary["messages"] == 1
        assert run_stage("land", shop).summary["messages"] == 0
