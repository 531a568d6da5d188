"""Tables that are read alike are folded in one plan: the same rows and the same numbers as of a plan for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.histories import Table, deliver, message
from support.published import without_delivery
from support.reference import Change
from support.running import run_all
from tidemark.compaction import shared_folds
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.tables.plan import Plan

pytestmark = pytest.mark.spark

TENANTS = [Table(f"tenant_{number}") for number in range(4)]
OTHER = Table("other", columns=("id", "name"))
KEPT = ("object", "events", "applied", "superseded", "duplicate", "held", "quarantined", "deleted", "rows_after")


def _bad(table: Table, at: int, key: int) -> Change:
    """An update with a value that no column of its type holds."""
    change = table.update(at, key, "b", "c")
    return change._replace(after={**(change.after or {}), "id": "no number"})


def _runs() -> Iterator[list[Change]]:
    """Run by run: each tenant has its own share of what can become of an event."""
    one, two, three, four = TENANTS
    yield [table.insert(n, n, "a", "b") for table in [*TENANTS, OTHER] for n in range(1, 7)]
    yield [
        one.update(20, 1, "c", "d"), one.update(20, 1, "c", "d"), one.delete(21, 2, "a", "b"),
        two.update(20, 9, "moved", "d", was=(1,)), two.insert(22, 2, "e", "f"), _bad(two, 23, 3),
        three.update(15, 1, "c", "d"), three.truncate(16), three.insert(17, 8, "h", "i"),
        four.delete(21, 99, "never", "there"), four.update(22, 4, "x", "y"),
        OTHER.update(20, 1, "c"),
    ]  # fmt: skip
    yield [
        one.insert(19, 2, "late", "dead"), one.update(18, 1, "late", "old"), one.update(30, 3, "new", ...),
        two.delete(30, 4, "a", "b"), two.update(31, 5, "part", ...),
        three.insert(12, 5, "below", "truncate"), three.insert(31, 6, "g", "h"),
        four.insert(30, 5, "once", "more"),
    ]  # fmt: skip
    yield [change for table in TENANTS for change in (table.update(40, 5, "last", "word"), table.delete(41, 6, "", ""))]
    yield [_bad(one, 50, 1), two.insert(50, 7, "g", "h")]  # nothing of the first can be read
    yield [_bad(one, 60, 1), _bad(two, 60, 2)]


def _outcome(source: Source, lake: Lake, plans: list[list[str]]) -> list[Any]:
    """By run: the rows of each table, what the ledger tells of it, and what was folded together."""
    told = []
    for number, changes in enumerate(_runs()):
        plans.clear()
        deliver(Path(source.landing).parent, f"{number}", map(message, changes))
        run_all(source)
        tables = [table.name for table in [*TENANTS, OTHER]]
        found = [lake.load((source.source, name)).scan().to_arrow().sort_by("id").to_pylist() for name in tables]
        rows = [[without_delivery(row) for row in table] for table in found]
        ledger = Ledger(lake, source.source).read("tables")
        newest = max(row["cut"] for row in ledger)
        counts = sorted(tuple(row[name] for name in KEPT) for row in ledger if row["cut"] == newest)
        told.append((rows, counts, sorted(map(sorted, plans))))
    return told


def test_folded_together_as_apart(source: Callable[..., Source], lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late, dead, repeated, partial and bad events, changed keys and truncates: no table sees that others are by."""
    plans: list[list[str]] = []
    folded = shared_folds._folded

    def watched(changelog: Any, those: Sequence[Plan], *rest: Any) -> Any:
        plans.append([plan.found.name for plan in those])
        return folded(changelog, those, *rest)

    monkeypatch.setattr(shared_folds, "_folded", watched)
    types = {"id": "long", "name": "string", "note": "string"}
    fields = {"tables": {"shop.tenant_*": {"key": ["id"], "columns": types}, "shop.other": {"key": ["id"]}}}
    at_once = _outcome(source("debezium_json", **fields), lake, plans)
    assert [groups for _, _, groups in at_once] == [
        [[table.name for table in TENANTS]],
        [["tenant_0", "tenant_1", "tenant_3"]],  # one has a TRUNCATE
        [["tenant_0", "tenant_1"]],  # two have partial images, and of the others one was emptied
        [["tenant_0", "tenant_1", "tenant_3"]],
        [["tenant_0", "tenant_1"]],
        [["tenant_0", "tenant_1"]],
    ]
    monkeypatch.setattr(shared_folds, "_MOST", 1)
    landing = str(Path(source("debezium_json").landing).parent / "other" / "*")
    apart = _outcome(source("debezium_json", **fields, landing=landing), lake, plans)
    assert not any(groups for _, _, groups in apart)
    assert [(rows, counts) for rows, counts, _ in at_once] == [(rows, counts) for rows, counts, _ in apart]
    counted = {row[0]: dict(zip(KEPT, row, strict=True)) for row in at_once[1][1]}
    assert counted["shop.tenant_0"]["duplicate"] == counted["shop.tenant_1"]["quarantined"] == 1


@pytest.mark.parametrize("limit", ["_MOST", "_PASSED_OVER"])
def test_as_many_together_as_are_worth_it(
    source: Callable[..., Source], lake: Lake, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Many tables are folded in several plans, and one that is left over by itself."""
    sizes: list[int] = []
    folded = shared_folds._folded

    def watched(changelog: Any, those: Sequence[Plan], *rest: Any) -> Any:
        sizes.append(len(those))
        return folded(changelog, those, *rest)

    monkeypatch.setattr(shared_folds, "_folded", watched)
    monkeypatch.setattr(shared_folds, limit, {"_MOST": 2, "_PASSED_OVER": 8}[limit])  # two tables of two events
    made = source("debezium_json", tables={"shop.*": {"key": ["id"]}})
    tables = [Table(f"shard_{number}") for number in range(5)]
    changes = [table.insert(n, n, table.name, "b") for table in tables for n in (1, 2)]
    deliver(Path(made.landing).parent, "0", map(message, changes))
    run_all(made)
    assert sizes == [2, 2]
    for table in tables:
        rows = lake.load((made.source, table.name)).scan().to_arrow().to_pylist()
        assert {(row["id"], row["name"]) for row in rows} == {(1, table.name), (2, table.name)}
