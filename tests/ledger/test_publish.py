"""Publishing moves what was checked, or nothing: a candidate that is gone is no reason to tag whatever ``main`` is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, Table, deliver, message
from support.rounds import how_many
from support.running import run_all
from tidemark.errors import ExpectationError, PublishConflictError
from tidemark.lake.branches import drop_branch, head
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.more]
T, OTHER = Table("items"), Table("others")


def test_a_cut_without_its_candidate_is_not_published(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """The branch of a table, or of its state, was dropped by hand: no ``main`` moves, and compact builds the cut again.

    Of a table it is dropped in ``make prove``, and without Spark in ``test_cuts.py``. A history that the source file
    does not want any more has no candidate either, and that is right.
    """
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": COLUMNS, "history": True}})
    landing = Path(shop.landing).parent
    deliver(landing, "a", map(message, [T.insert(1, 1, "a", "b"), OTHER.insert(2, 1, "a", "b")]))
    run_all(shop)
    tables = {"shop.*": {"key": ["id"], "columns": COLUMNS}}
    plain = Source.model_validate({**shop.model_dump(by_alias=True), "tables": tables})
    deliver(landing, "b", map(message, [T.update(11, 1, "c", "b"), OTHER.update(12, 1, "c", "b")]))
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
    run_stage("publish", plain, None, None)
    assert [lake.load(name).scan().to_arrow().column("name").to_pylist() for name in before] == [["c"], ["c"]]
    cut = Ledger(lake, shop.source).last_cut()
    assert cut is not None
    assert (cut.cut, cut.state) == (how_many(usually=3, proving=4), cuts.PUBLISHED)
