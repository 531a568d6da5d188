"""A ledger whose equation is not true: each term is counted by itself, so a row that is lost on the way is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.histories import Table, deliver, message
from support.rounds import PROVING
from support.running import assert_ledger_closes, run_all
from tidemark.compaction import merging, row_writing
from tidemark.errors import LedgerError
from tidemark.folding import keyed
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

ITEMS, PARTS = (Table(name, columns=("id", "name", "note")) for name in ("items", "parts"))
BAG = Table("bag", columns=("id", "name"))


def _without_the_first(write: Callable[..., Any], column: str) -> Callable[..., Any]:
    """Return a function that leaves out the rows whose ``column`` is 1."""

    def leaky(rows: DataFrame, *args: Any, **named: Any) -> Any:
        return write(rows.where(F.col(column) != 1) if column in rows.columns else rows, *args, **named)

    return leaky


FAULTS: list[tuple[str, Any, str, str, str]] = [
    ("a keyed table", merging, "upsert", "k0", r"shop\.items: the ledger does not close\. 2 events applied \+ 0 sup"),
    ("an exchanged table", merging, "append", "k0", r"shop\.items: the ledger does not close\. 2 events applied"),
    ("rows in parts", merging, "upsert", "k0", r"shop\.parts: the ledger does not close\. 2 events applied \+ 1 super"),
    ("a bag", merging, "append", "c0", r"shop\.bag: the ledger does not close\. 2 events put a row in and 0 take"),
    ("a fold", keyed, "fold", "k0", r"shop\.items: 3 events in the change log, but 2 folded"),
]
FAULTS = [fault for fault in FAULTS if PROVING or fault[0] != "rows in parts"]


@pytest.mark.more
def test_what_is_lost_on_the_way_is_not_published(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever loses a row, the run ends with status 1, names the table and the terms, and publishes nothing."""
    assert LedgerError.exit_status == 1
    events = {
        "items": [ITEMS.insert(number, number, "a", "b") for number in (1, 2, 3)],
        "parts": [*(PARTS.insert(number, number, "a", "b") for number in (1, 2, 3)), PARTS.update(9, 3, "c", ...)],
        "bag": [BAG.insert(number, number, "a") for number in (1, 2)],
    }
    if not PROVING:
        del events["parts"]
    keys: dict[str, list[str]] = {"items": ["id"], "parts": ["id"], "bag": []}
    sources = {
        name: source(
            "debezium_json",
            landing=str(Path(source("debezium_json").landing).parent / name / "*"),
            tables={f"shop.{name}": {"key": keys[name]}},
        )
        for name in events
    }
    for name, changes in events.items():
        deliver(Path(sources[name].landing).parent, "1", map(message, changes))
        for stage in ("land", "normalize"):
            run_stage(stage, sources[name], None, None)
    for what, module, function, column, pattern in FAULTS:
        broken = sources[pattern.partition(r"\.")[2].partition(":")[0]]
        with monkeypatch.context() as patched:
            patched.setattr(module, function, _without_the_first(getattr(module, function), column))
            if what == "an exchanged table":
                patched.setattr(row_writing, "_is_above", lambda *_: True)
            with pytest.raises(LedgerError, match=pattern):
                run_stage("compact", broken, None, None)
        assert not Ledger(lake, broken.source).read("tables"), what
    for sound in sources.values():
        run_all(sound)
        assert_ledger_closes(lake, sound.source)
