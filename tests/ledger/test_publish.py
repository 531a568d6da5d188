"""Publishing moves what was checked, or nothing: a candidate that is gone is no reason to tag whatever ``main`` is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, Table, deliver, message
from support.rounds import how_many
from support.running import run_all
from tidemark.errors import ExpectationError, PublishConflictError
from tidemark.lake import branches
from tidemark.lake.branches import drop_branch, head
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.more]
T, OTHER = Table("items"), Table("others")


def test_a_cut_without_its_candidate_is_not_published(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch of a table, or of its state, was dropped by hand: no ``main`` moves, and compact builds the cut again.

    Of a table it is dropped in ``make prove``, and without Spark in ``test_cuts.py``. A history that the source file
    does not want any more has no candidate either, and that is right. If another writer is faster when one table has
    moved, the next run publishes by itself: the rows of that table are counted.
    """
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": COLUMNS, "history": True}})
    landing = Path(shop.landing).parent
    deliver(landing, "a", map(message, [T.insert(1, 1, "a", "b"), OTHER.insert(2, 1, "a", "b")]))
    run_all(shop)
    tables = {"shop.*": {"key": ["id"], "columns": COLUMNS}}
    plain = Source.model_validate({**shop.model_dump(by_alias=True), "tables": tables})
    changes = [T.update(11, 1, "c", "b"), T.insert(13, 2, "c", "b"), OTHER.update(12, 1, "c", "b")]
    deliver(landing, "b", map(message, changes))
    for stage in ("land", "normalize", "compact", "check"):
        run_stage(stage, plain, None, None)
    items, others = (shop.source, "items"), (shop.source, "others")
    before = {name: head(lake.load(name)) for name in (items, others)}
    dropped = (others, ("state", f"{shop.source}__items"))
    for number, lost in enumerate(how_many(usually=dropped[1:], proving=dropped)):
        branch = f"candidate_{2 + number}"
        drop_branch(lake.load(lost), branch)
        with pytest.raises(PublishConflictError, match=f"{lost[1]}: the branch {branch} is gone: run compact again"):
            run_stage("publish", plain, None, None)
        assert {name: head(lake.load(name)) for name in before} == before
        assert not any("cut_2" in lake.load(name).refs() for name in (*before, lost))
        with pytest.raises(ExpectationError, match="not built yet"):
            run_stage("publish", plain, None, None)
        for stage in ("compact", "check"):
            run_stage(stage, plain, None, None)
    lose_the_race(monkeypatch, plain)
    assert [head(lake.load(name)) == before[name] for name in (items, others)] == [False, True]
    reports = run_all(plain)
    assert not any(report.problems for report in reports.values())
    assert [lake.load(name).scan().to_arrow().column("name").to_pylist() for name in before] == [["c", "c"], ["c"]]
    ledger = Ledger(lake, shop.source)
    cut = ledger.last_cut()
    assert cut is not None
    assert (cut.cut, cut.state) == (how_many(usually=4, proving=5), CutState.PUBLISHED)
    made = {row.object: (row.rows_before, row.rows_after, row.verdict) for row in cuts.tables_of(ledger, cut.cut)}
    assert made == {"shop.items": (2, 2, "passed"), "shop.others": (1, 1, "passed")}


def lose_the_race(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    """Publish, and let another writer be faster at the second table, when the first one and its state have moved."""
    moves = iter(range(2))

    def slow(*arguments: Any) -> None:
        if next(moves, None) is None:
            raise PublishConflictError("main moved")
        branches.fast_forward(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(cuts, "fast_forward", slow)
        with pytest.raises(PublishConflictError, match="main moved"):
            run_stage("publish", source, None, None)
