"""Positions of events that only their file orders: numbers in the names of files count as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.histories import canal
from tidemark.errors import ConfigurationError
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG
from tidemark.lake.properties import (
    BY_NUMBERS,
    BY_NUMBERS_WITH_LENGTHS,
    CHANGE_LOG_PROPERTIES,
    FILE_ORDER_PROPERTY,
)
from tidemark.normalization import file_order
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

MakeSource = Callable[..., Source]

TYPES = {"id": "bigint", "note": "varchar(9)"}


def derive(source: Source, *numbers: int | str, reprocess: bool = False) -> StageReport:
    """Deliver a file for each number, land, and normalize."""
    for number in numbers:
        dump = Path(source.landing).parent / f"changes-{number}.jsonl"
        dump.write_bytes(canal("orders", "UPDATE", TYPES, ("1", str(number)), ("2", str(number))) + b"\n")
    run_stage("land", source)
    return run_stage("normalize", source, reprocess=reprocess)


def in_order(lake: Lake, source: Source) -> list[str]:
    """Numbers of the files in the order of the positions of their events."""
    fields = ("position", "file")
    rows = lake.load(names.change_log(source.source)).scan(selected_fields=fields).to_arrow().to_pylist()
    files = [
        row["file"].rpartition("changes-")[2].partition(".")[0] for row in sorted(rows, key=lambda row: row["position"])
    ]
    return list(dict.fromkeys(files))


def order_of(lake: Lake, source: Source) -> str:
    """The order of files that the change log says it has."""
    return lake.load(names.change_log(source.source)).properties[FILE_ORDER_PROPERTY]


def of_an_earlier_version(lake: Lake, source: Source, order: str | None = None) -> None:
    """Make the change log as it was made before numbers counted as numbers, or before all of them did."""
    properties = {name: value for name, value in CHANGE_LOG_PROPERTIES.items() if name != FILE_ORDER_PROPERTY}
    properties |= {FILE_ORDER_PROPERTY: order} if order else {}
    by = ["batch", "kind", "object"]
    lake.ensure(names.change_log(source.source), CHANGE_LOG, properties, partition_by=by)


@contextmanager
def kept_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs of the version that made the change log: they know no later order."""
    with monkeypatch.context() as patched:
        patched.setattr(file_order, "adopted", lambda changelog, *_, **__: changelog)
        yield


def test_numbers_are_in_order_over_runs(source: MakeSource, lake: Lake) -> None:
    """Whichever run has which of them, also in a lake of an earlier version that has names of one length."""
    for earlier in (False, True):
        shop = source("canal_json")
        if earlier:
            of_an_earlier_version(lake, shop)
        assert [derive(shop, *some).remarks for some in ([8, 9], [100], [7, 10, 11])] == [(), (), ()]
        assert in_order(lake, shop) == ["7", "8", "9", "10", "11", "100"]


def test_a_lake_that_was_ordered_as_text(source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on as it is, every run says so, and reprocessing orders it; a part of it does not."""
    shop = source("canal_json")
    of_an_earlier_version(lake, shop)
    with kept_order(monkeypatch):
        derive(shop, 8, 9, 10)
    (remark,) = derive(shop, 11).remarks
    assert f"`tidemark run {shop.source} --reprocess`" in remark
    assert in_order(lake, shop) == ["10", "11", "8", "9"]
    assert derive(shop, 12, reprocess=True).remarks == ()
    assert in_order(lake, shop) == ["8", "9", "10", "11", "12"]


def test_a_lake_whose_order_had_lengths_before_numbers(
    source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where lengths decide, every run says so, and reprocessing orders the files. What is stored stays till then."""
    shop = source("canal_json")
    of_an_earlier_version(lake, shop, BY_NUMBERS_WITH_LENGTHS)
    with kept_order(monkeypatch):
        assert [derive(shop, name).remarks for name in ("2026-10-2", "2026-9-1")] == [(), ()]
    assert derive(shop, "2026-9-5").remarks == ()
    (remark,) = derive(shop, "2026-09-3").remarks
    assert "(2 and 02)" in remark
    assert f"`tidemark run {shop.source} --reprocess`" in remark
    assert in_order(lake, shop) == ["2026-9-1", "2026-9-5", "2026-09-3", "2026-10-2"]
    assert derive(shop, "2026-9-4", reprocess=True).remarks == ()
    assert in_order(lake, shop) == ["2026-9-1", "2026-09-3", "2026-9-4", "2026-9-5", "2026-10-2"]


def test_an_order_of_a_newer_version_is_refused(source: MakeSource, lake: Lake) -> None:
    """Positions of two orders do not compare."""
    shop = source("canal_json")
    of_an_earlier_version(lake, shop, "by-moons")
    with pytest.raises(ConfigurationError, match="the order 'by-moons', which this Tidemark does not know"):
        derive(shop, 1)
    assert in_order(lake, shop) == []


def test_a_lake_in_which_lengths_decide_nothing(
    source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the order of now with its next run, and the positions that it has stay."""
    shop = source("canal_json")
    of_an_earlier_version(lake, shop, BY_NUMBERS_WITH_LENGTHS)
    with kept_order(monkeypatch):
        assert derive(shop, "10-08", "10-9").remarks == ()
    assert order_of(lake, shop) == BY_NUMBERS_WITH_LENGTHS
    assert derive(shop, "010-09", "9-09").remarks == ()
    assert order_of(lake, shop) == BY_NUMBERS
    assert in_order(lake, shop) == ["9-09", "10-08", "010-09", "10-9"]


def test_a_long_message_of_a_file_that_grew(source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read again from the beginning of the file, as that was when it landed."""
    shop = source("canal_json", max_message_mib=1)
    dump = Path(shop.landing).parent / "a.jsonl"
    long = canal("orders", "INSERT", TYPES, ("1", "x" * (2 << 20)))
    dump.write_bytes(long + b"\n")
    run_stage("land", shop)
    assert run_stage("normalize", shop).summary["quarantined"] == 1
    dump.write_bytes(long + b"\n" + canal("orders", "INSERT", TYPES, ("2", "y")) + b"\n")
    run_stage("land", shop)
    assert run_stage("normalize", shop).summary["decoded"] == 1
    raised = shop.model_copy(update={"max_message_mib": 4})
    assert run_stage("retry", raised).summary["decoded"] == 1
