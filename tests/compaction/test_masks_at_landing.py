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
from support.options import SECRET, SECRET_VARIABLE, masked_text
from support.rounds import PROVING, how_many
from support.running import assert_ledgers_close, run_all
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.queries import sql
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Chapter
from tidemark.sources.model import Source
from tidemark.stages import STAGES, normalize, retry

pytestmark = [pytest.mark.spark, pytest.mark.more]

KEY_VARIABLE = "TIDEMARK_TEST_RAW_KEY"
OLD_KEY, NEW_KEY, OTHER_KEY = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))
CANARY, NUMBER = "canary-5c1e07", 5551234098761
ONE, TWO, THREE = (f"{CANARY} {word}" for word in ("one", "two", "three"))
PEOPLE, KEYED, BAG, SOFT = map(Log, ("people", "keyed", "bag", "soft"))
SECRET_VARIABLE_OF_ERASURES = "TIDEMARK_ERASE_SECRET"  # noqa: S105  its name
TABLES = how_many(
    usually=("people", "people__history", "keyed", "bag"), proving=("people", "people__history", "keyed", "bag", "soft")
)
MASKS = {"name": "hmac", "note": "last4", "phone": "hash", "mail": "hmac"}


def _source(name: str, landing: Path, **changed: Any) -> Source:
    tables: dict[str, dict[str, Any]] = {
        "people": {"key": ["id"], "mask": MASKS, "history": True, "columns": {"id": "long"}},
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
        "tables": {f"shop.{table}": entry for table, entry in tables.items() if table in TABLES},
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
        *(_softly() if PROVING else []),
    ]  # fmt: skip


def _softly() -> list[bytes]:
    return [SOFT.put(40, id=1, name=ONE, note=TWO), SOFT.put(41, id=2, name=TWO, note=[{"deep": ONE}])]


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
        BAG.delete(62, name=ONE, phone=NUMBER),
        *([SOFT.delete(63, id=2, name=TWO, note=TWO)] if PROVING else []),
    ]  # fmt: skip


def _deliver(landing: Path, name: str, messages: list[bytes]) -> None:
    lines = [record(each, key={"name": THREE}) for each in messages]
    cut_short = json.loads(lines[0]) | {"offset": 1000 + len(lines), "value": f'{{"op": "c", "after": "{TWO}'}
    deliver(landing, name, [*lines, json.dumps(cut_short).encode()])


@pytest.fixture(scope="module")
def secrets() -> Iterator[pytest.MonkeyPatch]:
    """The secret and the key in the environment."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(SECRET_VARIABLE, SECRET)
        patched.setenv(KEY_VARIABLE, OLD_KEY)
        yield patched


class Told(NamedTuple):
    """What one of the two sources shows."""

    tables: dict[str, list[dict[str, Any]]]
    reasons: list[str]
    lives: list[Any]
    changes: list[list[dict[str, Any]]]


class Seen(NamedTuple):
    """What was to be seen: tests run in any order, and one of them goes on from there."""

    landing: Path
    with_plain: set[str]
    with_number: set[str]
    with_key: set[str]
    found_later: set[str]
    landed: Told
    tabled: Told


@pytest.fixture(scope="module")
def seen(spark: SparkSession, secrets: pytest.MonkeyPatch, home: Path, lake: Lake, tmp_path_factory: Any) -> Seen:
    """Two runs of a source that masks at landing; then one of a source that masks the same at its tables.

    In ``make test`` the first run only lands and decodes: the second one publishes both batches.
    """
    landing = tmp_path_factory.mktemp("landed")
    earlier = files_with(home, CANARY)  # another test may have masked at the table; no file is written twice
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_REPORT", "on")  # values are looked for in the pages too
        for name, messages in {"1": _first(), "2": _second()}.items():
            _deliver(landing, name, messages)
            for stage in STAGES if PROVING or name == "2" else STAGES[:2]:
                run_stage(stage, _source("landed", landing, mask_at="landing"))
    plain, number, key = (files_with(home, text) - earlier for text in (CANARY, str(NUMBER), OLD_KEY))
    run_all(_source("tabled", landing))
    assert_ledgers_close(lake, "landed", "tabled")
    later = files_with(home, CANARY) - earlier
    return Seen(landing, plain, number, key, later, _told(lake, "landed"), _told(lake, "tabled"))


def _rows(lake: Lake, source: str, table: str) -> list[dict[str, Any]]:
    return sorted(lake.load((source, table)).scan().to_arrow().to_pylist(), key=repr)


def _told(lake: Lake, source: str) -> Told:
    lives = [
        explain(lake, f"{source}.{table}", [key])
        for table, key in (("people", "id=1"), ("people", "id=2"), ("keyed", f"name={THREE}"), ("soft", "id=2"))
        if table in TABLES
    ]
    query = "SELECT operation, position, before, after FROM {}.{}__changes ORDER BY position, operation"
    return Told(
        tables={table: _rows(lake, source, table) for table in TABLES},
        reasons=sorted(row["reason"] for row in _rows(lake, "quarantine", source)),
        lives=[(life.rows.to_pylist(), [_chapter(each) for each in life.chapters]) for life in lives],
        changes=[sql.query(lake, query.format(source, table)).to_pylist() for table in ("people", "keyed", "bag")],
    )


def _chapter(chapter: Chapter) -> tuple[Any, ...]:
    cells = {name: cell.new for name, cell in chapter.cells.items()}
    return (chapter.outcome, chapter.detail, chapter.step.moved_from, chapter.step.moved_to, cells)


def test_no_plain_value_is_under_the_home(seen: Seen, home: Path) -> None:
    """Every file is searched: raw, change log, quarantine, ledger, tables, pages, catalog, manifests."""
    assert (seen.with_plain, seen.with_number, seen.with_key) == (set(), set(), set())
    # The source that masks at its tables is the proof that the search finds what is there.
    for part in ("warehouse/raw", "warehouse/changelog", "warehouse/quarantine", "warehouse/ledger"):
        assert any(path.startswith(part) for path in seen.found_later), part
    # And no table of it has one, nor its state.
    for part in ("tabled", "state"):
        assert (home / "warehouse" / part).is_dir()
        assert not [path for path in seen.found_later if path.startswith(f"warehouse/{part}")]


def test_rows_are_those_of_masks_at_the_table(seen: Seen) -> None:
    """Late and partial images, changed keys, deletes, defaults and renames: the same rows, versions and reasons."""
    assert seen.landed.tables == seen.tabled.tables
    assert all(seen.landed.tables.values())
    masked = {row["mail"] for row in seen.landed.tables["people"]}
    assert masked == {masked_text("hmac", f"{CANARY}@x"), masked_text("hmac", TWO)}
    assert seen.landed.reasons == seen.tabled.reasons
    assert {"incomplete_message", "malformed", "unreadable_value"} <= set(seen.landed.reasons)


def test_explain_and_changes_are_those_of_masks_at_the_table(seen: Seen) -> None:
    """A row is looked up by its plain key, and its life has the same chapters."""
    assert seen.landed.lives == seen.tabled.lives
    assert all(rows for rows, _ in seen.landed.lives)
    assert seen.landed.changes == seen.tabled.changes
    assert CANARY not in repr(seen.landed)


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


def _one(landing: Path, **changed: Any) -> Source:
    return _source("one", landing, **{"mask_at": "landing", "tables": {"shop.people": {"key": ["id"]}}, **changed})


def test_a_source_changes_its_masks_and_its_key(
    secrets: pytest.MonkeyPatch, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From plain to masked, from one mask to another, from one key to the next; retry and erasure read what is kept."""
    landing = tmp_path / "one"
    masks = ({"name": "last4"}, {"name": "hash"})
    last4, hashed = ({"shop.people": {"key": ["id"], "mask": mask}} for mask in masks)
    _deliver(landing, "1", [PEOPLE.put(10, id=1, name=ONE), PEOPLE.put(11, id=2, name=TWO)])
    run_all(_source("one", landing, tables={"shop.people": {"key": ["id"]}}))
    _deliver(landing, "2", [PEOPLE.put(20, {"id": 2, "name": TWO}, id=2, name=THREE), PEOPLE.put(21, id=3, name=ONE)])
    [remark] = [each for each in run_all(_one(landing, tables=last4))["normalize"].remarks if "change log of" in each]
    assert "shop.people has values of name" in remark
    assert [row["name"] for row in _rows(lake, "one", "people")] == ["**** one", "****hree", "**** one"]
    assert CANARY not in repr(_events(lake, 2))
    assert CANARY in repr(_events(lake, 1))

    monkeypatch.setenv(KEY_VARIABLE, f"{NEW_KEY},{OLD_KEY}")
    _deliver(landing, "3", [PEOPLE.put(30, id=4, name=TWO)])
    for stage in STAGES[:2]:
        run_stage(stage, _one(landing, tables=hashed))
    [problem] = run_stage("compact", _one(landing, tables=hashed)).problems
    assert "the mask was last4, and is to be hash now. `tidemark run one --reprocess`" in problem
    run_stage("normalize", _one(landing, tables=hashed), reprocess=True)
    reports = run_all(_one(landing, tables=hashed))
    assert [each for each in reports["normalize"].remarks if "change log of" in each] == []
    expected = {1: ONE, 2: THREE, 3: ONE, 4: TWO}
    rows = {row["id"]: row["name"] for row in _rows(lake, "one", "people")}
    assert rows == {number: masked_text("hash", name) for number, name in expected.items()}
    assert CANARY not in repr(_events(lake, 1, 2, 3))
    sealed = [row["sealed"] for row in _rows(lake, "raw", "one")]
    assert (sealed.count(None), len(set(sealed))) == (3, 3)

    assert retry.run(_one(landing, tables=hashed)).summary["quarantined"] == 3
    monkeypatch.setenv(SECRET_VARIABLE_OF_ERASURES, SECRET)
    erased = run_stage("erase", _one(landing, tables=hashed), table="one.people", key=("id=3",))
    assert len(erased.problems) == 3  # messages that are cut short, which do not show whose they are
    assert all("whether the row is there is not known" in problem for problem in erased.problems)
    assert [row["id"] for row in _rows(lake, "one", "people")] == [1, 2, 4]


def _events(lake: Lake, *batches: int) -> list[dict[str, Any]]:
    rows = [row for row in _rows(lake, "changelog", "one") if row["batch"] in batches]
    assert rows
    return rows
