"""An erasure where messages with the row stand in quarantine that can be decoded now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.running import die_at, run_all
from tidemark.errors import RetriableLakeError
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

pytestmark = [pytest.mark.spark, pytest.mark.more]

NAME = "late_guests"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "a secret of the tests, long enough")


def _message(*numbers: int, **fields: Any) -> bytes:
    envelope = {"type": "INSERT", "database": "shop", "table": "guests", "isDdl": False, "pkNames": ["id"], "old": None}
    data = [{"id": str(number), "name": f"guest {number}"} for number in numbers]
    kinds = {"id": "int", "name": "varchar(90)"}
    return json.dumps({**envelope, "mysqlType": kinds, "data": data, "es": 1_767_225_600_000, **fields}).encode()


def _source(landing: Path, **options: Any) -> Source:
    given = {"source": NAME, "format": "canal_json", "landing": str(landing / "*"), "options": options}
    return Source.model_validate({**given, "max_quarantined": 1})


def _erase(source: Source, **options: Any) -> StageReport:
    return run_stage("erase", source, table=f"{NAME}.guests", key=["id=1"], **options)


def _ids(lake: Lake) -> list[int]:
    return sorted(row["id"] for row in lake.load((NAME, "guests")).scan().to_arrow().to_pylist())


def _quarantined(lake: Lake) -> int:
    return int(lake.load(("quarantine", NAME)).scan().to_arrow().num_rows)


def test_no_row_of_others_goes_with_a_message_that_nobody_retried(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that begins asks for the retry first; one that was begun leaves the message, and says so."""
    (tmp_path / "a.json").write_bytes(b"\n".join([_message(1, 2), _message(1, 3, table=None)]))
    broken, mended = _source(tmp_path), _source(tmp_path, table="shop.guests")
    run_all(broken)
    assert (_ids(lake), _quarantined(lake)) == ([1, 2], 1)
    for options in ({"dry_run": True}, {}, {"unread": True}):
        with pytest.raises(RetriableLakeError, match=rf"`tidemark quarantine retry {NAME}`.*Nothing was erased"):
            _erase(mended, **options)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.erasure.logs.recount", 1)
        with pytest.raises(SystemExit):
            _erase(broken)
    left = _erase(mended, unread=True)
    assert left.summary["nothing_found"] == 0
    assert any(f"`tidemark quarantine retry {NAME}`" in problem for problem in left.problems)
    assert (_ids(lake), _quarantined(lake)) == ([2], 1)
    run_stage("retry", mended)
    for stage in ("compact", "check", "publish"):
        run_stage(stage, mended)
    assert (_ids(lake), _quarantined(lake)) == ([2, 3], 0)
    assert _erase(mended, verify=True).summary["nothing_found"] == 1
