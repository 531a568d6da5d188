"""Cuts that leave out more than they may: held for approval, and never judged as if nothing was missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from support.histories import Table, canal, deliver, message
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.sources.invariants import Invariants
from tidemark.sources.model import Source
from tidemark.stages.publish import run as publish

Make = Callable[..., Source]
_COLUMNS = ("id", "amount")
ITEMS, OTHERS = Table("items", columns=_COLUMNS), Table("others", columns=_COLUMNS)
_STAGES = ("land", "normalize", "compact")


@pytest.mark.parametrize(
    ("of_source", "of_table", "count", "of_messages", "of_events"),
    [
        (None, None, 5, 9, 9),
        (None, None, 180, 9, 9),
        (None, None, 1000, 50, 50),
        (0.5, None, 4, 2, 2),
        (0, 0.29, 100, 0, 29),
        (1, 0, 100, 100, 0),
    ],
)
def test_how_much_a_cut_may_leave_out(
    source: Make, of_source: float | None, of_table: float | None, count: int, of_messages: int, of_events: int
) -> None:
    """The table's share comes before the source's, and counts for its events; without either, 5 % and fewer than 10."""
    shop = source("canal_json", max_quarantined=of_source, tables={"shop.*": {"max_quarantined": of_table}})
    assert shop.quarantinable(count) == of_messages
    assert shop.quarantinable(count, "shop.items") == of_events


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "5%"])
def test_the_share_is_a_number_from_0_to_1(source: Make, share: object) -> None:
    """Anything else is refused."""
    with pytest.raises(ValidationError, match="max_quarantined"):
        source("canal_json", max_quarantined=share)


@pytest.mark.parametrize(("rebuilt", "allowed"), [(False, 4), (True, 2)])
def test_a_small_table_may_lose_all_rows_but_not_by_a_rebuild(source: Make, *, rebuilt: bool, allowed: int) -> None:
    """A day's work may delete most of a few rows; folding the same events again must not."""
    assert source("canal_json").deletable("shop.items", 4, rebuilt=rebuilt) == allowed


def _run(source: Source, name: str, lines: Sequence[bytes], first: Sequence[str] = _STAGES) -> tuple[str, str]:
    """Run the stages up to check over new messages; the state of the cut, and what check says."""
    if lines:
        deliver(Path(source.landing).parent, name, lines)
    for stage in first:
        run_stage(stage, source, None, None)
    report = run_stage("check", source, None, None)
    cut = Ledger(Lake.open(), source.source).last_cut()
    assert cut is not None
    return cut.state, "\n".join(report.problems)


def _judged(source: Source, asked: str) -> tuple[str, str]:
    """Check again by another consequence: the state of the cut, and the remarks; problems only where it is held."""
    chosen = source.model_copy(update={"invariants": Invariants.model_validate({"quarantined_share": asked})})
    report = run_stage("check", chosen, None, None)
    cut = Ledger(Lake.open(), source.source).last_cut()
    assert cut is not None
    assert bool(report.problems) == (cut.state != CutState.CHECKED)
    return cut.state, "\n".join(report.remarks)


def _verdicts(lake: Lake, source: Source, cut: int) -> dict[str, str]:
    rows = Ledger(lake, source.source).read("tables")
    return {row["object"].removeprefix("shop."): row["verdict"] for row in rows if row["cut"] == cut}


@pytest.mark.spark
def test_a_run_that_could_read_next_to_nothing_is_held(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Messages, events of a table, rows that a rebuild loses: each is held with its reason, until it is approved."""
    fields: dict[str, Any] = {"shop.*": {"key": ["id"], "columns": {"amount": "decimal(12, 2)"}}}
    shop = source("debezium_json", tables=fields)
    sound = [message(OTHERS.insert(number, number, "1.50")) for number in (1, 2)]
    foreign = canal("items", "INSERT", {"id": "bigint"}, ("1",), key=("id",))
    state, problems = _run(shop, "a", [*sound, *(foreign for _ in range(10))])
    assert state == CutState.AWAITING_APPROVAL
    assert " looks like canal_json and not like debezium_json: correct `format`" in problems
    assert f"10 of 12 messages of {shop.source} cannot be read (allowed: 9)" in problems
    assert f"`tidemark publish {shop.source} --approve 1`" in problems
    state, remarks = _judged(shop, "warn")
    assert state == CutState.CHECKED
    assert (
        f"{shop.source}: messages quarantined beyond the limit (table) warns: 10 of 12; expected at most 9" in remarks
    )
    assert "(allowed: 9). One is message " in remarks
    assert _judged(shop, "off") == (CutState.CHECKED, "")
    assert _judged(shop, "block")[0] == CutState.AWAITING_APPROVAL
    with pytest.raises(ExpectationError, match="--approve 1"):
        publish(shop)
    assert publish(shop, approve=1).problems == ()

    wrong = [message(ITEMS.insert(number, number, "much")) for number in range(10, 22)]
    state, problems = _run(shop, "b", [*wrong, message(OTHERS.insert(30, 3, "more"))])
    assert state == CutState.AWAITING_APPROVAL
    assert f"leave out 12 of 12 events of {shop.source}.items (allowed: 9)" in problems
    assert "others" not in problems
    state, remarks = _judged(shop, "warn")
    assert state == CutState.CHECKED
    assert f"{shop.source}.items: events quarantined beyond the limit (table) warns: 3; expected 0" in remarks
    assert f"{shop.source}.items: 12 of 12 events are set aside. One is message " in remarks
    state, remarks = _judged(shop, "off")
    assert (state, "beyond the limit" in remarks, f"{shop.source}.items: 12 of 12 events" in remarks) == (
        CutState.CHECKED,
        False,
        True,
    )
    _judged(shop, "block")
    publish(shop, approve=2)
    # A table whose events were all set aside does not pass, even if there was only one.
    assert _verdicts(lake, shop, 2) == {"items": "approved", "others": "warned"}

    dates = Source.model_validate(
        {**shop.model_dump(by_alias=True), "tables": {"shop.*": {"key": ["id"], "columns": {"amount": "date"}}}}
    )
    run_stage("rebuild", dates, None, None, table="others")
    state, problems = _run(dates, "c", [], first=("compact",))
    assert state == CutState.AWAITING_APPROVAL
    assert f"delete 2 of 2 rows of {shop.source}.others (allowed: 1)" in problems
    assert lake.load((shop.source, "others")).scan().count() == 2
