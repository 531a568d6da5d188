"""``mask_at: landing``: no plain value anywhere under the home, and the rows of the same masks at the table."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.canary import files_with
from support.debezium_log import Log, record
from support.histories import deliver
from support.options import SECRET, SECRET_VARIABLE
from support.running import assert_ledgers_close, run_all
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.queries import sql
from tidemark.queries.explain import explain
from tidemark.sources.model import Source
from tidemark.stages import normalize, retry

pytestmark = pytest.mark.spark

KEY_VARIABLE = "TIDEMARK_TEST_RAW_KEY"
OLD_KEY, NEW_KEY, OTHER_KEY = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))
CANARY, NUMBER = "canary-5c1e07", 5551234098761
ONE, TWO, THREE = (f"{CANARY} {word}" for word in ("one", "two", "three"))
PEOPLE, KEYED, BAG, SOFT = map(Log, ("people", "keyed", "bag", "soft"))
TABLES = ("people", "people__history", "people__feed", "keyed", "bag", "soft")
MASKS = {"name": "hmac", "note": "last4", "phone": "hash", "mail": "hmac"}


def _source(name: str, landing: Path, **changed: Any) -> Source:
    tables: dict[str, dict[str, Any]] = {
        "people": {"key": ["id"], "mask": MASKS, "history": True, "feed": True, "columns": {"id": "long"}},
        "keyed": {"key": ["name"], "mask": {"name": "hmac", "n*": "redact"}},
        "bag": {"key": [], "mask": {"name": "hmac", "phone": "hash"}},
        "soft": {"key": ["id"], "mask": {"name": "null", "*": "hmac"}, "exclude": ["note"], "deletes": "soft"},
    }
    fields = {
        "source": name,
        "format": "debezium_json",
        "landing": str(landing / "*"),
        "mask_secret": f"${{{SECRET_VARIABLE}}}",
        "raw_key": f"${{{KEY_VARIABLE}}}",
        "max_deletes": 1,
        "max_quarantined": 1,
        "tables": {f"shop.{table}": entry for table, entry in tables.items()},
    }
    return Source.model_validate({**fields, **changed})


def _first() -> list[bytes]:
    """Inserts; a value that does not fit, a message that is cut short, and rows as a statement."""
    return [
        PEOPLE.put(10, id=1, name=ONE, phone=NUMBER, note=TWO),
        PEOPLE.put(11, id=2, name=TWO, phone=None, note=THREE),
        PEOPLE.put(12, id="no number", name=THREE, phone=NUMBER, note=ONE),
        PEOPLE.statement(13, f"REPLACE INTO {{}} VALUES (1, '{ONE}', {NUMBER})"),  # noqa: S608  text in a message
        KEYED.put(20, name=ONE, note=TWO), KEYED.put(21, name=TWO, note=TWO),
        BAG.put(30, name=ONE, phone=NUMBER), BAG.put(31, name=ONE, phone=NUMBER), BAG.put(32, name=TWO, phone=1.5),
        SOFT.put(40, id=1, name=ONE, note=TWO), SOFT.put(41, id=2, name=TWO, note=[{"deep": ONE}]),
    ]  # fmt: skip


def _second() -> list[bytes]:
    """Defaults, a column that is renamed, old images, keys that change, deletes, and a late event."""
    return [
        PEOPLE.ddl(50, f"ADD COLUMN mail VARCHAR(60) DEFAULT '{CANARY}@x', ADD COLUMN age INT DEFAULT 7"),
        PEOPLE.ddl(51, f"RENAME COLUMN note TO remark COMMENT '{ONE}'"),
        PEOPLE.ddl(52, "RENAME COLUMN note TO remark"),
        PEOPLE.put(53, {"id": 2, "name": TWO, "remark": THREE}, id=2, name=ONE, phone=NUMBER, remark=ONE, mail=TWO),
        PEOPLE.put(9, id=1, name=THREE, phone=1, note=THREE),
        PEOPLE.put(54, id=3, name=..., phone=NUMBER, remark="", mail=..., age=8),
        KEYED.put(60, {"name": ONE, "note": TWO}, name=THREE, note=THREE), KEYED.delete(61, name=TWO),
        BAG.delete(62, name=ONE, phone=NUMBER), SOFT.delete(63, id=2, name=TWO, note=TWO),
    ]  # fmt: skip


def _deliver(landing: Path, name: str, messages: list[bytes]) -> None:
    lines = [record(each, key={"name": THREE}) for each in messages]
    cut_short = json.loads(lines[0]) | {"offset": 1000 + len(lines), "value": f'{{"op": "c", "after": "{TWO}'}
    deliver(landing, name, [*lines, json.dumps(cut_short).encode()])


@pytest.fixture(scope="module")
def secrets() -> Iterator[pytest.MonkeyPatch]:
    """The secret and the key in the environment, and pages to look for values in."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_REPORT", "on")
        patched.setenv(SECRET_VARIABLE, SECRET)
        patched.setenv(KEY_VARIABLE, OLD_KEY)
        yield patched


class Seen(NamedTuple):
    """What was to be seen under the home when nothing but the source that masks at landing had run."""

    landing: Path
    with_plain: set[str]
    with_number: set[str]
    with_key: set[str]


@pytest.fixture(scope="module")
def seen(
    spark: SparkSession, secrets: pytest.MonkeyPatch, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """Two runs of a source that masks at landing; then the same of one that masks at the table."""
    landing = tmp_path_factory.mktemp("landed")
    for name, messages in {"1": _first(), "2": _second()}.items():
        _deliver(landing, name, messages)
        run_all(_source("landed", landing, mask_at="landing"))
    plain, number, key = (files_with(home, text) for text in (CANARY, str(NUMBER), OLD_KEY))
    tabled = tmp_path_factory.mktemp("tabled")
    for file in sorted(landing.iterdir()):
        (tabled / file.name).write_bytes(file.read_bytes())
        run_all(_source("tabled", tabled))
    return Seen(landing, plain, number, key)


def _rows(lake: Lake, source: str, table: str) -> list[dict[str, Any]]:
    return sorted(lake.load((source, table)).scan().to_arrow().to_pylist(), key=repr)


def test_no_plain_value_is_under_the_home(seen: Seen, home: Path) -> None:
    """Every file is searched: raw, change log, quarantine, ledger, tables, pages, catalog, manifests."""
    assert (seen.with_plain, seen.with_number, seen.with_key) == (set(), set(), set())
    # The source that masks at its tables is the proof that the search finds what is there.
    found = files_with(home, CANARY)
    assert {part for part in ("raw", "changelog", "quarantine", "ledger") if any(part in path for path in found)} == {
        "raw", "changelog", "quarantine", "ledger",
    }  # fmt: skip


def test_rows_are_those_of_masks_at_the_table(seen: Seen, lake: Lake) -> None:
    """Late and partial images, changed keys, deletes, defaults and renames: the same rows, versions and counts."""
    for table in TABLES:
        ours, theirs = (_rows(lake, source, table) for source in ("landed", "tabled"))
        assert ours == theirs, table
        assert ours, table
    assert_ledgers_close(lake, "landed", "tabled")
    counted = ("object", "cut", "state", "events", "applied", "superseded", "duplicate", "held", "quarantined")
    ours, theirs = (
        sorted(tuple(row[name] for name in counted) for row in Ledger(lake, source).read("tables"))
        for source in ("landed", "tabled")
    )
    assert ours == theirs
    reasons = [sorted(row["reason"] for row in _rows(lake, "quarantine", source)) for source in ("landed", "tabled")]
    assert reasons[0] == reasons[1]
    assert len(reasons[0]) == 4


def test_explain_and_changes_are_those_of_masks_at_the_table(seen: Seen, lake: Lake) -> None:
    """A row is asked for by its plain key, and its life has the same chapters."""
    for table, key in (("people", "id=1"), ("people", "id=2"), ("keyed", f"name={THREE}"), ("soft", "id=2")):
        ours, theirs = (explain(lake, f"{source}.{table}", [key]) for source in ("landed", "tabled"))
        assert ours.rows.to_pylist() == theirs.rows.to_pylist()
        assert len(ours.rows) == 1
        told = [
            [(each.outcome, each.step.moved_from, {name: cell.new for name, cell in each.cells.items()})
             for each in life.chapters] for life in (ours, theirs)
        ]  # fmt: skip
        assert told[0] == told[1]
        assert CANARY not in repr(ours.chapters)
    query = "SELECT operation, position, before, after FROM {}.{}__changes ORDER BY position, operation"
    for table in ("people", "keyed", "bag", "soft"):
        ours, theirs = (sql.query(lake, query.format(source, table)).to_pylist() for source in ("landed", "tabled"))
        assert ours == theirs
        assert CANARY not in repr(ours)


def test_a_missing_or_wrong_key_is_told_and_changes_nothing(
    seen: Seen, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is quarantined, or decoded again, needs the key that it was encrypted with."""
    source = _source("landed", seen.landing, mask_at="landing")
    before = lake.load(("changelog", "landed")).current_snapshot()
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ConfigurationError, match=f"{KEY_VARIABLE}, which is not set"):
        retry.run(source)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ConfigurationError, match="no Base64 of 32 bytes"):
        normalize.run(source, reprocess=True)
    monkeypatch.setenv(KEY_VARIABLE, OTHER_KEY)
    for again in (lambda: retry.run(source), lambda: normalize.run(source, reprocess=True)):
        with pytest.raises(ConfigurationError, match=rf"encrypted with the key \w+, and .* {KEY_VARIABLE} holds"):
            again()
    assert lake.load(("changelog", "landed")).current_snapshot() == before
