"""Columns that are masked or left out: no plain value anywhere but in the logs, and any change of the source file."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.canary import files_with
from support.histories import Table, deliver, message
from support.options import SECRET_VARIABLE, masked_text
from support.running import assert_ledgers_close, run_all
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.lake.properties import RULES_PROPERTY
from tidemark.queries import sql
from tidemark.queries.explain import Life, explain
from tidemark.sources.model import Source
from tidemark.tables.schemas import COMMITTED_AT, POSITION

pytestmark = [pytest.mark.spark, pytest.mark.prove]
"""``make test`` has masks at the table beside those at landing, in ``test_masks_at_landing.py``, and columns that are
left out or renamed in ``test_feed.py``."""

SECRET = "the secret of this module's masks"  # noqa: S105  a test's own
CANARY = "canary-7f3a91"
WORDS = (f"{CANARY} one", f"{CANARY} two", f"{CANARY} three")
PEOPLE = Table("people")
KEYED = Table("keyed", key=("name",))
BAG = Table("bag", key=())
SOFT = Table("soft")
OPEN = Table("open")
COLUMNS = {"id": "long"}
PLAIN_PARTS = ("warehouse/raw/", "warehouse/changelog/", "warehouse/quarantine/")
"""Folders under the home that keep what was delivered, as the docs say."""


def _source(landing: Path, **changed: Any) -> Source:
    check = {"type": "expect_column_values_to_be_unique", "column": "name", "severity": "warn"}
    tables: dict[str, dict[str, Any]] = {
        "people": {"mask": {"name": "hmac", "note": "last4"}, "history": True, "checks": [check]},
        "keyed": {"key": ["name"], "mask": {"name": "hmac"}, "exclude": ["note"], "rename": {"name": "person"}},
        "bag": {"key": [], "mask": {"name": "hmac", "note": "hash"}},
        "soft": {"deletes": "soft", "mask": {"name": "redact"}, "exclude": ["note"]},
        "open": {},
    }
    tables |= changed
    fields = {
        "source": "masked",
        "format": "debezium_json",
        "landing": str(landing / "*"),
        "mask_secret": f"${{{SECRET_VARIABLE}}}",
        "max_deletes": 1,
        "tables": {f"shop.{name}": {"key": ["id"], "columns": COLUMNS, **entry} for name, entry in tables.items()},
    }
    return Source.model_validate(fields)


def _hmac(text: str) -> str:
    return hmac.digest(SECRET.encode(), text.encode(), hashlib.sha256).hex()


@pytest.fixture(scope="module")
def secret() -> Iterator[None]:
    """The secret in the environment."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(SECRET_VARIABLE, SECRET)
        yield


@pytest.fixture(scope="module")
def landing(spark: SparkSession, secret: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: inserts, then partial updates, deletes, changed keys and late events."""
    landing = tmp_path_factory.mktemp("masked")
    one, two, three = WORDS
    first = [
        *(table.insert(10 + place, 1, one, two) for place, table in enumerate((PEOPLE, SOFT, OPEN))),
        *(table.insert(20 + place, 2, two, three) for place, table in enumerate((PEOPLE, SOFT, OPEN))),
        KEYED.insert(30, 1, one, two), KEYED.insert(31, 2, two, two),
        BAG.insert(40, 1, one, two), BAG.insert(41, 1, one, two), BAG.insert(42, 2, one, two),
        PEOPLE.insert(43, "no number", one, two),
    ]  # fmt: skip
    second = [
        PEOPLE.update(60, 1, three, ...), PEOPLE.delete(61, 2, two, three), PEOPLE.update(15, 1, two, one),
        SOFT.delete(62, 2, two, three), SOFT.update(63, 1, ..., one),
        KEYED.update(64, 1, three, two, was=(one,)), KEYED.delete(65, 2, two, two),
        BAG.delete(66, 1, one, two),
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_REPORT", "on")  # values are looked for in the pages too
        for number, changes in enumerate((first, second)):
            deliver(landing, f"{number}", map(message, changes))
            run_all(_source(landing))
    return landing


def _rows(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    rows = lake.load(("masked", table)).scan().to_arrow().to_pylist()
    shown = (tuple(value for name, value in row.items() if name not in {POSITION, COMMITTED_AT}) for row in rows)
    return sorted(shown, key=repr)


class Seen(NamedTuple):
    """What was to be seen after two runs: tests run in any order, and one of them goes on from there."""

    rows: dict[str, list[tuple[Any, ...]]]
    versions: list[dict[str, Any]]
    with_plain: set[str]
    with_secret: set[str]
    keyed: Life
    people: Life
    changes: list[dict[str, Any]]
    details: list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(landing: Path, lake: Lake, home: Path) -> Seen:
    """Tables, files, lives of rows, changes and quarantine after two runs."""
    assert_ledgers_close(lake, "masked")
    return Seen(
        rows={table.name: _rows(lake, table.name) for table in (PEOPLE, KEYED, BAG, SOFT)},
        versions=lake.load(history(Identifier("masked", "people"))).scan().to_arrow().to_pylist(),
        with_plain=files_with(home, CANARY),
        with_secret=files_with(home, SECRET),
        keyed=explain(lake, "masked.keyed", [f"person={CANARY} three"]),
        people=explain(lake, "masked.people", ["id=1"]),
        changes=sql.query(lake, "SELECT before, after FROM masked.people__changes").to_pylist(),
        details=lake.load(("quarantine", "masked")).scan(selected_fields=("detail",)).to_arrow().to_pylist(),
    )


def test_masks_are_of_cells(seen: Seen) -> None:
    """Late and partial images, deletes and changed keys lead to the rows that they lead to without masks, masked."""
    one, two, three = WORDS
    assert seen.rows == {
        "people": [(1, _hmac(three), masked_text("last4", one))],
        "keyed": [(1, _hmac(three))],
        "bag": [(1, _hmac(one), masked_text("hash", two)), (2, _hmac(one), masked_text("hash", two))],
        "soft": [(1, "****", False), (2, "****", True)],
    }
    assert {row["name"] for row in seen.versions} == {_hmac(word) for word in WORDS}
    assert {row["note"] for row in seen.versions} == {masked_text("last4", word) for word in WORDS}


def test_no_plain_value_is_outside_of_the_logs(seen: Seen) -> None:
    """Every file under the home is searched: tables, history, state, ledger, Data Docs, catalog, manifests."""
    # The table without masks is the proof that the search finds what is there.
    shown = {path for path in seen.with_plain if "warehouse/masked/open" in path}
    assert shown
    assert {path for path in seen.with_plain - shown if not path.startswith(PLAIN_PARTS)} == set()
    assert {part for part in PLAIN_PARTS if any(path.startswith(part) for path in seen.with_plain)} == set(PLAIN_PARTS)
    assert seen.with_secret == set()


def test_explain_and_changes_show_masks(seen: Seen) -> None:
    """A row is looked up by its plain key; what is shown of it, and of every event, is masked."""
    one, _, three = WORDS
    assert seen.keyed.rows.to_pylist()[0]["person"] == _hmac(three)
    assert [chapter.step.moved_from for chapter in seen.keyed.chapters] == [{"person": _hmac(one)}]
    assert CANARY not in repr(seen.people.chapters)
    assert seen.people.chapters[-1].cells["name"].new == seen.people.rows.to_pylist()[0]["name"]
    assert CANARY not in repr(seen.changes)
    assert {row["after"]["name"] for row in seen.changes if row["after"]} >= {_hmac(one), _hmac(three)}
    assert seen.details
    assert CANARY not in repr(seen.details)


def test_a_changed_source_file_counts_from_the_next_events_on(
    seen: Seen, landing: Path, lake: Lake, spark: SparkSession
) -> None:
    """Other masks, and columns that are published again, apply to every row; what is left out now is gone.

    A history that was switched off before has the earlier masks, and each run says so until it is dropped.
    """
    source = _source(
        landing,
        people={"mask": {"name": "hash"}, "exclude": ["note"], "history": True},
        soft={"deletes": "soft", "rename": {"name": "called"}},
        open={"mask": {"*": "hmac"}, "columns": {}},
    )
    one, two, three = WORDS
    third = [PEOPLE.insert(80, 3, one, two), SOFT.insert(82, 3, one, two), OPEN.insert(81, 3, one, two)]
    deliver(landing, "2", map(message, third))
    assert run_all(source)["compact"].problems == ()
    assert _rows(lake, "people") == [(1, masked_text("hash", three)), (3, masked_text("hash", one))]
    assert _rows(lake, "soft") == [(1, one, one, False), (2, two, three, True), (3, one, two, False)]
    assert lake.load(("masked", "soft")).schema().column_names[:3] == ["id", "called", "note"]
    changes = sql.query(lake, "SELECT after FROM masked.soft__changes").to_pylist()
    assert {row["after"]["called"] for row in changes if row["after"]} >= {one, two}
    assert _rows(lake, "open")[0][1:] in {(_hmac(one), _hmac(two)), (_hmac(two), _hmac(three))}
    assert "note" not in lake.load(history(Identifier("masked", "people"))).schema().column_names
    assert json.loads(lake.load(("masked", "soft")).properties[RULES_PROPERTY]) == {}
    assert run_all(source)["compact"].summary["tables"] == 0

    off = _source(
        landing, people={"mask": {"name": "redact", "note": "redact"}}, open={"mask": {"*": "hmac"}, "columns": {}}
    )
    assert not run_all(off)["publish"].remarks  # the table is as it was, too
    deliver(landing, "3", [message(PEOPLE.insert(90, 4, one, two))])
    (remark,) = run_all(off)["publish"].remarks
    assert remark.startswith("masked.people__history has name as they were before masked.people hid them.")
    spark.sql(remark.partition("in Spark by ")[2])
    assert run_all(off)["publish"].remarks == ()
    assert not [*Path(os.environ["TIDEMARK_HOME"]).glob("warehouse/masked/people__history/**/*.parquet")]
