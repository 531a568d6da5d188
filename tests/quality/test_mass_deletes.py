"""Cuts that delete more than they may: held for approval, approved by number, never published by anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from support.histories import COLUMNS, Table, deliver, message
from support.reference import Change
from support.rounds import PROVING
from support.running import die_at, run_all
from tidemark.compaction.pending import is_awaiting_approval
from tidemark.errors import ConfigurationError, ExpectationError
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport, compact
from tidemark.stages.publish import run as publish

Make = Callable[..., Source]
T = Table("items")
OTHER = Table("others")


@pytest.mark.parametrize(
    ("of_source", "of_table", "rows", "allowed"),
    [
        (None, None, 1000, 1000),
        (None, None, 1001, 500),
        (0.25, None, 100, 25),
        (0.25, 1, 100, 100),
        (1, 0, 100, 0),
        (0.29, None, 100, 29),
        (0.5, None, 0, 0),
    ],
)
def test_how_many_rows_a_cut_may_delete(
    source: Make, of_source: float | None, of_table: float | None, rows: int, allowed: int
) -> None:
    """The table's share comes before the source's; without either half of a table that is not small."""
    shop = source("canal_json", max_deletes=of_source, tables={"shop.*": {"max_deletes": of_table}})
    assert shop.deletable("shop.items", rows) == allowed


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "0.5", float("nan")])
def test_a_share_is_a_number_from_0_to_1(source: Make, share: object) -> None:
    """Anything else is refused."""
    with pytest.raises(ValidationError, match="max_deletes"):
        source("canal_json", max_deletes=share)


def _source(make: Make, **fields: Any) -> Source:
    tables = {"shop.*": {"key": ["id"], "columns": COLUMNS}}
    return make("debezium_json", tables=tables, **fields)


def _run(source: Source, name: str, changes: Iterable[Change]) -> dict[str, Any]:
    """Run land to check over new changes; the cut's number and state, and what check says."""
    if lines := [message(change) for change in changes]:
        deliver(Path(source.landing).parent, name, lines)
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, source, None, None)
    report = run_stage("check", source, None, None)
    cut = Ledger(Lake.open(), source.source).last_cut()
    assert cut is not None
    return {"cut": cut.cut, "state": cut.state, "problems": "\n".join(report.problems)}


def _ids(lake: Lake, source: Source, table: str = "items") -> list[int]:
    return sorted(lake.load((source.source, table)).scan().to_arrow().column("id").to_pylist())


def _loaded(table: Table, rows: int) -> list[Change]:
    return [table.insert(10 + number, number, "a", "b") for number in range(1, rows + 1)]


@pytest.mark.spark
@pytest.mark.more
def test_a_cut_that_deletes_too_much_waits_for_its_approval(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Held with all tables of its cut; a later run holds it again, with what is new; only its own number approves."""
    shop = _source(source, max_deletes=0.5)
    assert _run(shop, "a", [*_loaded(T, 4), *_loaded(OTHER, 2)])["state"] == CutState.CHECKED
    publish(shop)

    held = _run(shop, "b", [*(T.delete(20 + number, number) for number in (1, 2, 3)), OTHER.insert(30, 9, "n", "n")])
    assert (held["cut"], held["state"]) == (2, CutState.AWAITING_APPROVAL)
    assert "rows deleted beyond the limit" in held["problems"]
    assert f"3 of 4 rows of {shop.source}.items (allowed: 2)" in held["problems"]
    assert f"tidemark publish {shop.source} --approve 2" in held["problems"]
    assert _ids(lake, shop) == [1, 2, 3, 4]
    assert _ids(lake, shop, "others") == [1, 2]
    with pytest.raises(ExpectationError, match="--approve 2"):
        publish(shop)
    with pytest.raises(ConfigurationError, match="the newest is 2, held"):
        publish(shop, approve=1)

    kept = _run(shop, "b", [])  # nothing new: what is being looked at stays as it is
    assert (kept["cut"], kept["state"]) == (2, CutState.AWAITING_APPROVAL)

    if PROVING:  # of what is asked for, `test_a_held_cut_stays_until_it_lacks_something` says the same
        Ledger(lake, shop.source).request_rebuild(["shop.others"])
    grown = _run(shop, "c", [T.insert(40, 7, "new", "new")])
    assert (grown["cut"], grown["state"]) == (3, CutState.AWAITING_APPROVAL)
    assert "3 of 4 rows" in grown["problems"]
    kept = _run(shop, "c", [])  # its own request is pending until it is published
    assert (kept["cut"], kept["state"]) == (3, CutState.AWAITING_APPROVAL)
    with pytest.raises(ConfigurationError, match="the newest is 3, held"):
        publish(shop, approve=2)
    assert _ids(lake, shop) == [1, 2, 3, 4]

    publish(shop, approve=3)
    publish(shop, approve=3)  # again is nothing
    assert _ids(lake, shop) == [4, 7]
    assert _ids(lake, shop, "others") == [1, 2, 9]
    rows = Ledger(lake, shop.source).read("tables")
    recorded = {(row["cut"], row["object"]): (row["verdict"], row["deleted"], row["state"]) for row in rows}
    assert recorded == {
        (1, "shop.items"): ("passed", 0, "published"),
        (1, "shop.others"): ("passed", 0, "published"),
        (3, "shop.items"): ("approved", 3, "published"),
        (3, "shop.others"): ("passed", 0, "published"),
    }
    assert run_all(shop)["publish"].problems == ()


def test_a_held_cut_stays_until_it_lacks_something(lake: Lake) -> None:
    """It has what was asked for before it: built, or stopped. A later request, event or table needs another cut."""
    ledger = Ledger(lake, "awaiting")
    ledger.request_rebuild(["shop.built", "shop.stopped"], by_hand=True)
    first = ledger.rebuild_requests()
    built = TableRow(cut=1, object="shop.built", state=TableState.CANDIDATE, batch=3, rebuilt=first["shop.built"])
    rows = [built, TableRow(cut=1, object="shop.stopped", state=TableState.STOPPED, batch=2)]
    ledger.replace(TableRow, rows, equals("cut", 1))
    for state, awaits in ((CutState.CHECKED, False), (CutState.AWAITING_APPROVAL, True)):
        ledger.replace(CutRow, [CutRow(cut=1, state=state, batch=3)], equals("cut", 1))
        assert is_awaiting_approval(ledger, 3, first, {"shop.stopped": 2}) is awaits
    assert not is_awaiting_approval(ledger, 4, first, {})
    assert not is_awaiting_approval(ledger, 3, first, {"shop.folded": 0})
    for name in ("shop.built", "shop.stopped", "shop.other"):
        ledger.request_rebuild([name])
        assert not is_awaiting_approval(ledger, 3, {**first, name: ledger.rebuild_requests()[name]}, {})


class Story(NamedTuple):
    """What became of the cuts of a source that may delete nothing."""

    moved: dict[str, Any]
    ids: list[int]
    """Of the items, after ``moved`` was published."""
    emptied: dict[str, Any]
    refused: list[str]
    """What publish said after a crash, with and without an approval."""
    judged: StageReport
    """Of check, after the crash."""
    again: dict[str, Any]
    allowed: StageReport
    others: list[int]
    failed: dict[str, Any]
    of_approval: str
    """What publish said to an approval of ``failed``."""
    rows: list[int]


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Changes that delete no row, a TRUNCATE, a crash while its cut is replaced, another limit, a failed check."""
    checks = [{"type": "expect_column_values_to_not_be_null", "column": "name"}]
    tables = {"shop.*": {"key": ["id"], "columns": COLUMNS, "checks": checks}}
    fields = {"source": "deleting", "format": "debezium_json", "tables": tables, "max_deletes": 0}
    shop = Source.model_validate({**fields, "landing": str(tmp_path_factory.mktemp("deleting") / "*")})
    _run(shop, "a", [*_loaded(T, 3), *_loaded(OTHER, 3)])
    publish(shop)
    moved = _run(shop, "b", [T.update(20, 11, "a", "b", was=(1,)), T.delete(21, 2), T.insert(22, 2, "again", "b")])
    publish(shop)
    ids = _ids(lake, shop)
    emptied = _run(shop, "c", [OTHER.truncate(30), OTHER.insert(31, 1, "a", "b")])

    deliver(Path(shop.landing).parent, "d", [message(T.insert(40, 4, "n", "n"))])
    for stage in ("land", "normalize"):
        run_stage(stage, shop, None, None)
    with pytest.MonkeyPatch.context() as patched:
        die_at(patched, "tidemark.compaction.finding.find_tables", 1)
        with pytest.raises(SystemExit):
            compact.run(shop)
    refused = [_refusal(shop, approve) for approve in (emptied["cut"], None)]
    judged = run_stage("check", shop, None, None)
    again = _run(shop, "d", [])

    lenient = Source.model_validate({**shop.model_dump(by_alias=True), "max_deletes": 1})
    allowed = run_stage("check", lenient, None, None)
    publish(lenient)
    others = _ids(lake, shop, "others")
    failed = _run(shop, "e", [T.delete(50, 2), T.insert(51, 5, None, "b")])
    of_approval = _refusal(shop, failed["cut"])
    return Story(moved, ids, emptied, refused, judged, again, allowed, others, failed, of_approval, _ids(lake, shop))


def _refusal(source: Source, approve: int | None) -> str:
    with pytest.raises(ExpectationError) as refused:
        publish(source, approve=approve)
    return str(refused.value)


@pytest.mark.spark
def test_what_counts_as_deleted(story: Story) -> None:
    """TRUNCATE deletes all rows; a changed key, and a row deleted and inserted again, delete none."""
    assert (story.moved["state"], story.ids) == (CutState.CHECKED, [2, 3, 11])
    assert story.emptied["state"] == CutState.AWAITING_APPROVAL
    assert "3 of 3 rows of deleting.others (allowed: 0)" in story.emptied["problems"]
    assert story.allowed.problems == ()  # the limit is the one in the file as it is now
    assert story.others == [1]


@pytest.mark.spark
def test_a_crash_while_a_held_cut_is_replaced_leaves_nothing_to_approve(story: Story) -> None:
    """Between dropping the held candidates and building new ones there is no cut to publish, and its number is gone."""
    assert all("not built yet" in text for text in story.refused)
    assert story.judged.summary == {"tables": 0}
    assert (story.again["cut"], story.again["state"]) == (story.emptied["cut"] + 1, CutState.AWAITING_APPROVAL)


@pytest.mark.spark
def test_approval_does_not_help_a_cut_that_failed_another_check(story: Story) -> None:
    """Only the limit of deletes can be approved away."""
    assert story.failed["state"] == CutState.FAILED
    assert "failed a blocking check" in story.of_approval
    assert story.rows == [2, 3, 4, 11]
