"""What the lab recorded of real databases and tools is published as the database had it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.comparing import Truth, compare
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "lab"


def test_rows_of_a_connector_that_was_killed_are_those_of_its_database(
    source: Callable[..., Source], lake: Lake, tmp_path: Path
) -> None:
    """MySQL by Debezium with transactions: a part of the stream came twice, and every table is what SELECT showed."""
    folder = RECORDINGS / "mysql-killed"
    recording: dict[str, Any] = json.loads((folder / "recording.json").read_text(encoding="utf-8"))
    made = source(recording["format"], options=recording["options"], tables=recording["tables"], max_deletes=1.0)
    shutil.copy(folder / "dump.jsonl.gz", tmp_path / "landing")
    assert not [problem for report in run_all(made).values() for problem in report.problems]
    truths = [Truth(**each) for each in recording["truths"]]
    found = {each.name: compare(each, _rows(lake, made, each.name)) for each in truths}
    assert {name: str(difference) for name, difference in found.items() if difference} == {}
    assert all(each.rows for each in truths)
    assert_ledger_closes(lake, made.source)


def _rows(lake: Lake, source: Source, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.load((source.source, table)).scan().to_arrow().to_pylist()
    return rows
