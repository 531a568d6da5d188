"""A source file that changed since the change log was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from support.histories import Table, deliver, message
from tidemark.normalization.source_changes import Need, declared_by, since
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

Make = Callable[..., Source]
T = Table("items")


@pytest.mark.spark
def test_a_run_tells_what_changed_in_the_source_file(source: Make, spark: SparkSession) -> None:
    """Each part that decides how messages are read is logged once, with its command; other parts are not."""
    first = source("debezium_json")

    def run(lines: list[bytes], **fields: Any) -> list[tuple[str, str]]:
        if lines:
            deliver(Path(first.landing).parent, f"{len(lines)}", lines)
        now = Source.model_validate({**first.model_dump(by_alias=True, mode="json"), **fields})
        run_stage("land", now, None, None)
        with capture_logs() as logs:
            run_stage("normalize", now, None, None)
        return [(each["part"], each["command"]) for each in logs if each["event"] == "source_file_changed"]

    columns: dict[str, Any] = {"tables": {"shop.items": {"columns": {"id": "int"}}}}
    every: dict[str, Any] = {
        "format": "canal_json",
        "options": {},
        "tables": {"shop.items": {"columns": {"at": "date"}, "encodings": {"at": "epoch_days"}}},
    }
    assert run([message(T.insert(1, 1, "a", "b"))]) == []
    assert run([], max_deletes=0.1, options={}) == []
    again = run([], **columns)
    assert [part for part, _ in again] == ["columns"]
    assert f"tidemark rebuild {first.source} TABLE" in again[0][1]
    assert run([message(T.insert(n, n, "a", "b")) for n in (2, 3)], **columns) == again
    assert run([], **columns) == []
    commands = dict(run([], **every))
    assert list(commands) == ["format", "encodings", "columns"]
    assert f"tidemark run {first.source} --reprocess" in commands["format"]
    assert [part for part, _ in run([], options={"table": "shop.t"}, **columns)] == ["options"]


@pytest.mark.parametrize(("mask_at", "need"), [("table", Need.RUN), ("landing", Need.REPROCESS)])
def test_a_mask_at_landing_needs_the_messages(mask_at: str, need: Need) -> None:
    """The change log has no plain values then, from which a run could make other masks."""
    fields = {"source": "s", "format": "canal_json", "landing": "s/*", "mask_at": mask_at, "raw_key": "${KEY}"}
    before, after = (
        Source.model_validate({**fields, "tables": {"shop.t": {"mask": {"a": mask}}}}) for mask in ("hash", "last4")
    )
    assert [change.need for change in since(declared_by(before), after)] == [need]
