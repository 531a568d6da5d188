"""A run says so where the names of files and the times of their events disagree on the order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.histories import canal
from tidemark.lake.lake import Lake
from tidemark.normalization.file_times import FileTimes, disorders
from tidemark.pipeline import run_stage
from tidemark.queries.status import status_of
from tidemark.sources.model import Source

MakeSource = Callable[..., Source]


def times(*files: tuple[str, int, int, int], table: str = "t") -> list[FileTimes]:
    """Name, first and last time, and number of events of each file."""
    return [FileTimes(table, *each) for each in files]


@pytest.mark.parametrize(
    ("noted", "events"),
    [
        (times(("a", 1, 5, 9), ("b", 5, 9, 9), ("c", 9, 12, 9)), 0),
        (times(("a", 1, 5, 9), ("b", 3, 9, 9), ("c", 2, 12, 9)), 0),
        (times(("a", 5, 9, 3), ("b", 1, 4, 3)), 3),
        (times(("a", 50, 90, 500), ("b", 1, 4, 3)), 0),
        (times(("a", 50, 90, 500), ("b", 1, 4, 10)), 10),
        (times(("a", 50, 90, 50), ("b", 1, 4, 9), ("c", 5, 9, 9)), 18),
        (times(("a", 50, 90, 9), table="t") + times(("b", 1, 4, 9), table="u"), 0),
        (times(("b", 1, 2, 1), ("a", 8, 9, 1), ("b", 3, 4, 1)), 2),
    ],
)
def test_files_that_are_wholly_older_than_one_before(noted: list[FileTimes], events: int) -> None:
    """Many of their events are a disorder; files that overlap, a few late events and other tables are none."""
    found = disorders(reversed(noted), lambda file: (0, file))
    assert sum(each.events for each in found) == events


def test_a_run_and_status_say_so(source: MakeSource, lake: Lake) -> None:
    """With table, number and files, until the batch is derived again in a better order."""
    shop = source("canal_json")
    for name, hour in (("new", 9), ("old", 5)):
        message = json.loads(canal("orders", "UPDATE", {"id": "bigint", "note": "varchar(9)"}, ("1", name)))
        dump = Path(shop.landing).parent / f"{name}.jsonl"
        dump.write_text(json.dumps({**message, "es": hour * 3_600_000}) + "\n")
    run_stage("land", shop)
    report = run_stage("normalize", shop)
    (remark,) = report.remarks
    assert remark.startswith("shop.orders: names of files and times of events disagree: 1 of 2 events")
    assert "old.jsonl behind" in remark
    assert report.problems == ()
    assert status_of(lake, shop.source)["disorders"] == {"shop.orders": remark}
    assert run_stage("normalize", shop).remarks == ()
    assert status_of(lake, shop.source)["disorders"] == {"shop.orders": remark}
    assert run_stage("normalize", shop, reprocess=True).remarks == (remark,)


def test_kafka_offsets_are_an_order_of_their_own(source: MakeSource, lake: Lake) -> None:
    """There the names of files say nothing."""
    shop = source("canal_json")
    for name, hour in (("new", 9), ("old", 5)):
        message = json.loads(canal("orders", "UPDATE", {"id": "bigint", "note": "varchar(9)"}, ("1", name)))
        record = {"topic": "t", "partition": 0, "offset": hour, "value": json.dumps({**message, "es": hour})}
        (Path(shop.landing).parent / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    run_stage("land", shop)
    assert run_stage("normalize", shop).remarks == ()
