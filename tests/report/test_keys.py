"""Keys of contradicted rows in the report: where the source file allows them, and while their events are there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.histories import Table, deliver, message
from support.html_pages import Page
from support.reference import Change
from support.running import run_all
from tidemark.cli.app import app
from tidemark.lake.lake import Lake
from tidemark.pipeline import REPORT_VARIABLE, run_stage
from tidemark.report import site
from tidemark.report.words import table_page
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark]

NAME = "keyed"
LOST = 90210
TABLES = {name: Table(name, columns=("id", "name")) for name in ("open", "masked", "bag", "erased")}
PARTS, NARROW = Table("parts"), Table("parts", columns=("id", "name"))
MISSING, INCOMPLETE = "missing_rows", "incomplete_rows"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Source:
    """A source whose second dump has updates of rows that were never there, and whose file says nothing of keys."""
    landing = tmp_path_factory.mktemp("landing")
    tables: dict[str, Any] = {
        "shop.open": {"key": ["id"]},
        "shop.masked": {"key": ["id"], "mask": {"id": "hmac"}},
        "shop.bag": {"key": []},
        "shop.parts": {"key": ["id"]},
        "shop.erased": {"key": ["id"]},
    }
    fields = {"source": NAME, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    shop = Source.model_validate({**fields, "mask_secret": "${KEYED_SECRET}"})
    loads = [_at(table.loaded(number, number, "a")) for table in (*TABLES.values(), NARROW) for number in (1, 2)]
    lost = [_at(table.delete(30, LOST, "b")) for table in TABLES.values()]
    lost.append(_at(PARTS.update(30, LOST, "b", ...)))  # two kinds of contradiction by one event
    for name, messages in (("1", loads), ("2", lost)):
        deliver(landing, name, messages)
        run_all(shop)
    return shop


@pytest.fixture(scope="module", autouse=True)
def _secrets() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KEYED_SECRET", "a secret of the tests, long enough")
        patched.setenv("TIDEMARK_ERASE_SECRET", "another secret of the tests, long enough")
        yield


def _at(change: Change) -> bytes:
    """Write a change, committed a second later for each place of the log."""
    envelope = json.loads(message(change))
    envelope["source"]["ts_ms"] = (1_767_225_600 + int(change.position[2])) * 1000
    return json.dumps(envelope).encode()


def _page(name: str) -> str:
    return Page(site.folder() / NAME / table_page(f"{NAME}.{name}")).text


def _allowing(source: Source) -> Source:
    return source.model_copy(update={"report_keys": True})


def _of_contradictions(figures: list[dict[str, Any]]) -> dict[tuple[str, str], str | None]:
    """The keys by table and kind, but for the table from which one test erases a row."""
    keys = {(each["table"].removeprefix("shop."), each["kind"]): each["key"] for each in figures[0]["contradictions"]}
    return {(name, kind): key for (name, kind), key in keys.items() if name != "erased"}


def _told(key: str | None) -> dict[tuple[str, str], str | None]:
    """What the figures have if keys are shown as this."""
    shown = {("open", MISSING): key, ("parts", MISSING): key, ("parts", INCOMPLETE): key}
    return {**shown, ("masked", MISSING): None, ("bag", MISSING): None}


def test_the_report_has_a_key_only_where_the_source_file_allows_it(source: Source, lake: Lake) -> None:
    """By default no page has a key; else it stands beside the place. Of a masked key and a bag, nothing is shown."""
    assert _of_contradictions(site.write(lake, [NAME])) == _told(None)
    assert "key of the first" not in _page("open")
    assert _of_contradictions(site.write(lake, [NAME], with_keys=[NAME])) == _told(f"id={LOST}")
    assert f"id={LOST}" in _page("open")
    for name in ("masked", "bag"):
        assert re.search(r"\w at [123], position \S", _page(name))
        assert str(LOST) not in _page(name)


def test_the_command_asks_the_source_file(
    source: Source, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``tidemark report --json`` has the key if ``report_keys`` is on in the file, and not otherwise."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    for allowed in (False, True):
        text = source.model_dump(mode="json", by_alias=True, include={"source", "format", "landing"})
        (tmp_path / "keyed.yaml").write_text(json.dumps({**text, "report_keys": allowed}), encoding="utf-8")
        done = CliRunner().invoke(app, ["report", NAME, "--json"])
        assert done.exit_code == 0, done.output
        assert _of_contradictions([json.loads(done.stdout)]) == _told(f"id={LOST}" if allowed else None)


def test_an_erased_key_leaves_the_report(source: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure writes the pages again without the key; where no stage writes pages, it drops those that are there."""
    site.write(lake, [NAME], with_keys=[NAME])
    page = site.folder() / NAME / table_page(f"{NAME}.erased")
    assert f"id={LOST}" in page.read_text(encoding="utf-8")
    run_stage("erase", _allowing(source), table=f"{NAME}.erased", key=("id=1",))
    assert not page.exists()
    site.write(lake, [NAME], with_keys=[NAME])
    monkeypatch.delenv(REPORT_VARIABLE)
    run_stage("erase", _allowing(source), table=f"{NAME}.erased", key=(f"id={LOST}",))
    assert f"id={LOST}" in _page("open")  # another table's row is not erased
    assert str(LOST) not in page.read_text(encoding="utf-8")
    assert "updates or deletes of rows that were not there" in _page("erased")
