"""What OpenLineage's provider gets to know of tasks: files, tables with columns and rows, and what checks found."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from support.histories import canal, deliver
from support.ledgers import Written
from tidemark.lake.lake import Lake
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.ledger import Ledger
from tidemark.orchestration.stage_operator import StageOperator
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytest.importorskip("airflow.providers.openlineage")

_TYPES = {"id": "int", "name": "varchar(9)"}


def _event(stage: str, source: str, place: Path) -> dict[str, Any]:
    """Return the event of a task that is over, as the provider gets it and its client writes it to a file."""
    from airflow.providers.openlineage.extractors.base import DefaultExtractor
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.transport.file import FileConfig, FileTransport

    lineage = DefaultExtractor(StageOperator(stage=stage, source=source)).extract_on_complete(None)
    assert lineage is not None, "the method of the operator failed"
    client = OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(place), append=True)))
    run, job = Run(runId="01890000-0000-7000-8000-000000000000"), Job(namespace="default", name=f"cdc.{stage}")
    at = datetime.now(UTC).isoformat()
    client.emit(
        RunEvent(
            eventType=RunState.COMPLETE, eventTime=at, run=run, job=job, inputs=lineage.inputs, outputs=lineage.outputs
        )
    )
    found: dict[str, Any] = json.loads(place.read_text("utf-8").splitlines()[-1])
    return found


def test_each_stage_tells_what_it_read_and_wrote(source: Callable[..., Source], lake: Lake, tmp_path: Path) -> None:
    """Files become raw, raw the change log, and the tables of a cut have rows and the results of their checks."""
    shop = source("canal_json", tables={"shop.orders": {"key": ["id"]}})
    deliver(Path(shop.landing).parent, "1", [canal("orders", "INSERT", _TYPES, ("1", "a"))])
    name = shop.source
    for stage in ("land", "normalize"):
        run_stage(stage, shop, None, None)
    written = Written(lake, name)
    written.cut(1, {"orders": {"events": 1, "applied": 1, "rows_after": 1}})
    written.write()
    fields = (NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    lake.ensure((name, "orders"), Schema(*fields), {})
    check = {"cut": 1, "stage": "check", "target": f"{name}.orders", "place": 0, "columns": ("id",)}
    found = {**check, "severity": "block", "success": False, "observed": "2", "expected": "0"}
    Ledger(lake, name).replace(CheckRow, [CheckRow(name="keys that are null", **found)])
    log = tmp_path / "events"

    landed = _event("land", name, log)
    assert [(each["namespace"], Path(each["name"]).name) for each in landed["inputs"]] == [("file", "1.json")]
    normalized = _event("normalize", name, log)
    assert normalized["inputs"] == landed["outputs"]
    compacted = _event("compact", name, log)
    assert compacted["inputs"] == normalized["outputs"]
    (orders,) = compacted["outputs"]
    assert [each["name"] for each in orders["facets"]["symlinks"]["identifiers"]] == [f"{name}.orders"]
    assert [(each["name"], each["type"]) for each in orders["facets"]["schema"]["fields"]] == [
        ("id", "long"), ("name", "string"),
    ]  # fmt: skip
    assert orders["outputFacets"]["outputStatistics"]["rowCount"] == 1
    (checked,) = _event("check", name, log)["inputs"]
    (assertion,) = checked["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["success"], assertion["column"]) == ("keys that are null", False, "id")
    assert (assertion["severity"], assertion["actual"], assertion["expected"]) == ("error", "2", "0")
    assert _event("publish", name, log)["outputs"] == compacted["outputs"]
    assert _event("maintain", name, log).get("outputs", []) == []
