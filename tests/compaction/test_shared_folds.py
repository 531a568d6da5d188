"""Tables that are read alike are folded in one plan: the same rows and the same numbers as of a plan for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support import plans
from support.histories import Table, deliver, message, with_position
from support.published import without_delivery
from support.reference import Change, Row, fold
from support.running import run_all
from tidemark.compaction import shared_folds
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.state import State
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.tables.plan import Plan
from tidemark.tables.planner import plan

TENANTS = [Table(f"tenant_{number}") for number in range(4)]
OTHER = Table("other", columns=("id", "name"))
KEPT = ("object", "events", "applied", "superseded", "duplicate", "held", "quarantined", "deleted", "rows_after")


def _bad(table: Table, at: int, key: int) -> Change:
    """An update with a value that no column of its type holds."""
    change = table.update(at, key, "b", "c")
    return change._replace(after={**(change.after or {}), "id": "no number"})


def _runs() -> list[list[Change]]:
    """Run by run: each tenant has its own share of what can become of an event."""
    one, two, three, four = TENANTS
    runs = [
        [table.insert(n, n, "a", "b") for table in [*TENANTS, OTHER] for n in range(1, 7)],
        [
            one.update(20, 1, "c", "d"), one.update(20, 1, "c", "d"), one.delete(21, 2, "a", "b"),
            two.update(20, 9, "moved", "d", was=(1,)), two.insert(22, 2, "e", "f"), _bad(two, 23, 3),
            three.update(15, 1, "c", "d"), three.truncate(16), three.insert(17, 8, "h", "i"),
            four.delete(21, 99, "never", "there"), four.update(22, 4, "x", "y"),
            OTHER.update(20, 1, "c"),
        ],
        [
            one.insert(19, 2, "late", "dead"), one.update(18, 1, "late", "old"), one.update(30, 3, "new", ...),
            two.delete(30, 4, "a", "b"), two.update(31, 5, "part", ...),
            three.insert(12, 5, "below", "truncate"), three.insert(31, 6, "g", "h"),
            four.insert(30, 5, "once", "more"),
        ],
    ]  # fmt: skip
    runs.append([_bad(one, 50, 1), two.insert(50, 7, "g", "h")])  # nothing of the first can be read
    last_words = [(t.update(60, 5, "last", "word"), t.delete(61, 6, "", "")) for t in TENANTS]
    return [*runs, [change for pair in last_words for change in pair], [_bad(one, 70, 1), _bad(two, 70, 2)]]


TOGETHER = [
    [[table.name for table in TENANTS]],
    [["tenant_0", "tenant_1", "tenant_3"]],  # one has a TRUNCATE
    [["tenant_0", "tenant_1"]],  # two have partial images, and of the others one was emptied
    [["tenant_0", "tenant_1"]],
    [["tenant_0", "tenant_1", "tenant_3"]],
    [["tenant_0", "tenant_1"]],
]
"""What is folded in one plan, by run."""
COUNTS: list[list[tuple[Any, ...]]] = [
    [(f"shop.{name}", 6, 6, 0, 0, 0, 0, 0, 6) for name in ("other", "tenant_0", "tenant_1", "tenant_2", "tenant_3")],
    [
        ("shop.other", 1, 1, 0, 0, 0, 0, 0, 6),
        ("shop.tenant_0", 3, 2, 0, 1, 0, 0, 1, 5),
        ("shop.tenant_1", 3, 2, 0, 0, 0, 1, 0, 6),
        ("shop.tenant_2", 3, 2, 1, 0, 0, 0, 6, 1),
        ("shop.tenant_3", 2, 1, 1, 0, 0, 0, 0, 6),
    ],
    [
        ("shop.tenant_0", 3, 1, 2, 0, 0, 0, 0, 5),
        ("shop.tenant_1", 2, 2, 0, 0, 0, 0, 1, 5),
        ("shop.tenant_2", 2, 1, 1, 0, 0, 0, 0, 2),
        ("shop.tenant_3", 1, 1, 0, 0, 0, 0, 0, 6),
    ],
    [("shop.tenant_0", 1, 0, 0, 0, 0, 1, 0, 5), ("shop.tenant_1", 1, 1, 0, 0, 0, 0, 0, 6)],
]
"""By run, what the ledger keeps of tables with new events (``KEPT``): the same as with a plan for each table."""


class Outcome:
    """A source, and what came of it by run: rows, the ledger's counts, and what was folded together."""

    def __init__(self, source: Source, lake: Lake, plans: list[list[str]]) -> None:
        self.rows: list[dict[str, list[Row]]] = []
        self.counts: list[list[tuple[Any, ...]]] = []
        self.together: list[list[list[str]]] = []
        for number, changes in enumerate(_runs()):
            plans.clear()
            deliver(Path(source.landing).parent, f"{number}", map(message, changes))
            run_all(source)
            tables = [table.name for table in [*TENANTS, OTHER]]
            self.rows.append(
                {name: _in_order(lake.load((source.source, name)).scan().to_arrow().to_pylist()) for name in tables}
            )
            ledger = Ledger(lake, source.source).read("tables")
            newest = max(row["cut"] for row in ledger)
            self.counts.append(sorted(tuple(row[name] for name in KEPT) for row in ledger if row["cut"] == newest))
            self.together.append(sorted(map(sorted, plans)))


def _in_order(rows: Iterable[Row]) -> list[Row]:
    undated_rows = ({name: value for name, value in row.items() if name != "_cdc_committed_at"} for row in rows)
    return sorted(map(without_delivery, undated_rows), key=lambda row: int(row["id"]))


def _expected(runs: int) -> dict[str, list[Row]]:
    """The model's rows after so many runs."""
    delivered = [change for run in _runs()[:runs] for change in run]
    read = [change for change in delivered if (change.after or {}).get("id") != "no number"]
    return {name: _in_order(rows.values()) for name, rows in fold(with_position(read)).items()}


@pytest.mark.spark
@pytest.mark.prove
def test_folded_together_as_apart(source: Callable[..., Source], lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late, dead, repeated, partial and bad events, changed keys and truncates: no table sees that others are by.

    The rows are the model's, and the counts are the same as with a plan for each table. ``make test`` folds the tables
    of ``test_convergence.py`` together, whose rows are the model's.
    """
    together: list[list[str]] = []
    folded = shared_folds._folded

    def watched(changelog: Any, those: Sequence[Plan], *rest: Any) -> Any:
        together.append([plan.found.name for plan in those])
        return folded(changelog, those, *rest)

    monkeypatch.setattr(shared_folds, "_folded", watched)
    types = {"id": "long", "name": "string", "note": "string"}
    fields = {"tables": {"shop.tenant_*": {"key": ["id"], "columns": types}, "shop.other": {"key": ["id"]}}}
    at_once = Outcome(source("debezium_json", **fields), lake, together)
    assert at_once.together == TOGETHER
    assert at_once.rows == [_expected(runs) for runs in range(1, len(_runs()) + 1)]
    assert at_once.counts[: len(COUNTS)] == COUNTS
    monkeypatch.setattr(shared_folds, "_MOST", 1)
    landing = str(Path(source("debezium_json").landing).parent / "other" / "*")
    apart = Outcome(source("debezium_json", **fields, landing=landing), lake, together)
    assert not any(apart.together)
    assert (apart.rows, apart.counts) == (at_once.rows, at_once.counts)


@pytest.mark.parametrize("limit", ["_MOST", "_PASSED_OVER"])
def test_as_many_together_as_are_worth_it(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tables are folded in several plans, and one that is left over by itself."""
    monkeypatch.setattr(shared_folds, limit, {"_MOST": 2, "_PASSED_OVER": 8}[limit])  # two tables of two events
    run: Any = None  # a plan and the state of its table decide
    found = plans.found(plans.shape(id="long", name="string"))
    made = [plan(plans.source(), replace(found, name=f"shard_{number}", events=2), None) for number in range(5)]
    prepared = [
        Prepared(
            run=run, plan=each, table=run,
            state=State(run=run, plan=each, kinds=(), newest=None, truncates=()),
        )
        for each in made
    ]  # fmt: skip
    groups = [[each.found.name for each in group] for group in shared_folds._groups(prepared)]
    assert groups == [["shard_0", "shard_1"], ["shard_2", "shard_3"]]
