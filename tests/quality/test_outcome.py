"""What verdicts make of a cut: only what a person may overrule lets it await approval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.quality.outcome import asks_for_approval, state_of, with_words, word_of
from tidemark.quality.verdicts import CheckResult, Verdict
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source

PASSES, WARNS, DOUBTED, FAILS = "passes", "warns", "doubted", "fails"
_SEVERITY = {WARNS: Severity.WARN}


def _verdict(*results: str, table: str = "shop.orders") -> Verdict:
    found = tuple(
        CheckResult(
            name=each,
            columns=(),
            severity=_SEVERITY.get(each, Severity.BLOCK),
            success=each == PASSES,
            observed="1",
            expected="0",
            approvable=each == DOUBTED,
        )
        for each in results
    )
    return Verdict(table=table, success=not any(each.blocks for each in found), results=found, docs=Path("x"))


def _row(target: str, **fields: int) -> TableRow:
    return TableRow(cut=3, object=target, target=target, state=TableState.CANDIDATE, batch=3, **fields)


@pytest.mark.parametrize(
    ("results", "state", "word"),
    [
        ([PASSES], CutState.CHECKED, VerdictWord.PASSED),
        ([PASSES, WARNS], CutState.CHECKED, VerdictWord.WARNED),
        ([WARNS, DOUBTED], CutState.AWAITING_APPROVAL, VerdictWord.HELD),
        ([DOUBTED, DOUBTED], CutState.AWAITING_APPROVAL, VerdictWord.HELD),
        ([DOUBTED, FAILS], CutState.FAILED, VerdictWord.FAILED),
        ([FAILS], CutState.FAILED, VerdictWord.FAILED),
    ],
)
def test_a_check_that_nobody_may_overrule_fails_the_cut(results: list[str], state: CutState, word: VerdictWord) -> None:
    """One that a person may overrule holds it, and one that only warns does neither."""
    assert (state_of([_verdict(*results)]), word_of(_verdict(*results))) == (state, word)


def test_one_table_decides_for_all() -> None:
    """A cut is published whole or not at all, and a cut without a table to judge has nothing against it."""
    assert state_of([_verdict(PASSES), _verdict(DOUBTED), _verdict(WARNS)]) == CutState.AWAITING_APPROVAL
    assert state_of([_verdict(DOUBTED), _verdict(FAILS)]) == CutState.FAILED
    assert state_of([]) == CutState.CHECKED


def test_a_table_without_a_verdict_keeps_its_row() -> None:
    """Such as one that was stopped; a verdict on the source is of no table."""
    rows = [_row("shop.orders"), _row("shop.rest")]
    found = with_words(rows, [_verdict(WARNS), _verdict(FAILS, table="shop")])
    assert [row.verdict for row in found] == [VerdictWord.WARNED, None]


@pytest.mark.parametrize(
    ("fields", "unread", "sentence"),
    [
        (
            {"rows_before": 100, "rows_after": 20, "deleted": 80},
            False,
            "would delete 80 of 100 rows of shop.orders (allowed: 10)* `max_deletes` sets the limit",
        ),
        (
            {"events": 100, "quarantined": 70},
            False,
            "would leave out 70 of 100 events of shop.orders (allowed: 20)* `max_quarantined` sets the limit",
        ),
        (
            {"rows_before": 100, "rows_after": 20, "deleted": 80, "events": 100, "quarantined": 70},
            False,
            (
                "would delete 80 of 100 rows of shop.orders (allowed: 10), leave out 70 of 100 events of shop.orders "
                "(allowed: 20)* `max_deletes` and `max_quarantined` set the limit"
            ),
        ),
        ({"events": 100}, True, "leaves out these messages* `max_quarantined` sets the limit"),
        ({"events": 100}, False, "is held*"),
    ],
)
def test_a_person_is_told_what_the_cut_would_do(
    source: Callable[..., Source],
    fields: dict[str, int],
    sentence: str,
    *,
    unread: bool,
) -> None:
    """The limit is named that it breaks; a doubt alone, which was reported already, is repeated by no figure."""
    shop = source("canal_json", max_deletes=0.1, max_quarantined=0.2)
    does, _, limit = sentence.partition("*")
    command = f"`tidemark publish {shop.source} --approve 3` publishes it"
    expected = f"cut 3 of {shop.source} {does}. If that is right, {command}{limit and ';' + limit}"
    assert asks_for_approval(shop, 3, [_row("shop.orders", **fields)], unread=unread) == expected
