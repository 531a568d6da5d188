"""Tables whose names meet where Tidemark makes names of them: state tables, the change log, its own namespaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.running import assert_ledger_closes, run_all
from tidemark.compaction import candidate, placing
from tidemark.compaction.run import Run
from tidemark.errors import ConfigurationError
from tidemark.lake import purging
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, state
from tidemark.lake.properties import STATE_OF_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import erase
from tidemark.tables.plan import Plan

pytestmark = [pytest.mark.spark]

SOURCE = "meeting"
TARGETS = {
    "us.orders": "meeting.eu__orders",
    "de.orders": "meeting__eu.orders",
    "fr.orders": "meeting.fr__orders",
    "shop.x.y": "meeting.xy",
    "shop.a.b": "meeting.ab",
}


def canal(number: int, database: str, table: str, kind: str, key: int) -> bytes:
    """A change of one row."""
    message = {
        "database": database,
        "table": table,
        "type": kind,
        "isDdl": False,
        "es": 1_700_000_000_000 + number,
        "ts": 1_700_000_000_000 + number,
        "id": number,
        "pkNames": ["id"],
        "data": [{"id": str(key), "v": f"{database}/{table}"}],
        "mysqlType": {"id": "int", "v": "varchar(9)"},
        "sqlType": {"id": 4, "v": 12},
        "old": None,
    }
    return json.dumps(message).encode()


FIRST = [
    *(canal(key, "us", "orders", "INSERT", key) for key in (1, 2, 3)),
    canal(4, "us", "orders", "DELETE", 1),
    canal(5, "ledger", "cuts", "INSERT", 1),
    canal(6, "shop.a", "b", "INSERT", 1),
    canal(7, "shop", "a.b", "INSERT", 1),
    canal(8, "shop.x", "y", "INSERT", 1),
    canal(9, "fr", "orders", "INSERT", 1),
    canal(20, "apart", "one", "INSERT", 1),
    canal(21, "apart", "two", "INSERT", 2),
    canal(22, "within", "orders", "INSERT", 1),
    canal(23, "old", "one", "INSERT", 1),
    canal(24, "old", "two", "INSERT", 1),
]
SECOND = [
    *(canal(key, "de", "orders", "INSERT", key) for key in (1, 2, 3)),
    canal(10, "shop", "x.y", "INSERT", 2),
    canal(11, "fr", "orders", "INSERT", 2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the dumps of the source land."""
    return tmp_path_factory.mktemp("landing")


@pytest.fixture(scope="module")
def source(folder: Path, home: Path) -> Source:
    """The source of all tables here."""
    tables: dict[str, dict[str, Any]] = {name: {"target": target, "key": ["id"]} for name, target in TARGETS.items()}
    places = {"apart.*": str(folder.with_name("apart")), "within.orders": str(home)}
    tables |= {name: {"target": "meeting.{table}", "layout": {"location": place}} for name, place in places.items()}
    fields = {"source": SOURCE, "format": "canal_json", "landing": f"{folder}/*", "target": "{database}.{table}"}
    return Source.model_validate({**fields, "tables": tables})


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, lake: Lake, source: Source, folder: Path) -> list[dict[str, Any]]:
    """State and reason of each table in two runs."""

    def as_before(run: Run, plan: Plan) -> str | None:
        """An earlier version gave all tables of a pattern one folder."""
        return str(folder.with_name("shared")) if plan.found.database == "old" else placed(run, plan)

    found = []
    placed = placing.place
    for run, messages in enumerate((FIRST, SECOND), start=1):
        (folder / f"{run}.jsonl").write_bytes(b"".join(message + b"\n" for message in messages))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(candidate, "place", as_before)
            run_all(source)
        assert_ledger_closes(lake, SOURCE)
        rows = [row for row in Ledger(lake, SOURCE).tables() if row.cut == run]
        found.append({row.object: (row.state, row.reason or "") for row in rows})
    return found


def published(lake: Lake, name: str) -> list[tuple[int, str]]:
    """The rows of a published table."""
    rows = lake.load(Identifier.parse(name)).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in rows)


def assert_stopped(outcome: tuple[str, str], reason: str) -> None:
    """A table was stopped, and its reason says why."""
    assert outcome[0] == "stopped"
    assert reason in outcome[1]


def test_a_state_table_has_one_owner(outcomes: list[dict[str, Any]], lake: Lake) -> None:
    """A DELETE of one table would take the row of the other, and its ledger would close."""
    assert outcomes[0]["us.orders"] == ("published", "")
    assert published(lake, "meeting.eu__orders") == [(2, "us/orders"), (3, "us/orders")]
    assert lake.load(state(Identifier("meeting", "eu__orders"))).properties[STATE_OF_PROPERTY] == "meeting.eu__orders"
    assert_stopped(outcomes[1]["de.orders"], "state.meeting__eu__orders, which is that of meeting.eu__orders")
    assert lake.find(Identifier("meeting__eu", "orders")) is None


def test_the_other_tables_of_the_run_are_published(outcomes: list[dict[str, Any]], lake: Lake) -> None:
    """One that stops before it has a branch stops alone."""
    assert [run["fr.orders"] for run in outcomes] == [("published", "")] * 2
    assert published(lake, "meeting.fr__orders") == [(1, "fr/orders"), (2, "fr/orders")]


def test_a_database_with_the_name_of_a_namespace_of_tidemark_is_not_published_there(
    outcomes: list[dict[str, Any]], lake: Lake
) -> None:
    """Its rows would stand in the ledger."""
    assert_stopped(outcomes[0]["ledger.cuts"], "Tidemark's own tables")
    assert "v" not in lake.load(Identifier("ledger", "cuts")).schema().column_names


def test_two_tables_of_one_text_are_not_merged_in_one_run(outcomes: list[dict[str, Any]], lake: Lake) -> None:
    """Neither is published, as their rows cannot be told apart."""
    assert_stopped(outcomes[0]["shop.a.b"], "several tables at the source: 'shop', 'a.b' and 'shop.a', 'b'")
    assert lake.find(Identifier("meeting", "ab")) is None


def test_a_table_of_the_same_text_is_not_merged_into_a_published_one(
    outcomes: list[dict[str, Any]], lake: Lake
) -> None:
    """The published rows stay."""
    assert outcomes[0]["shop.x.y"] == ("published", "")
    assert_stopped(outcomes[1]["shop.x.y"], "several tables at the source")
    assert published(lake, "meeting.xy") == [(1, "shop.x/y")]


def test_tables_of_a_pattern_have_a_folder_each(outcomes: list[dict[str, Any]], lake: Lake) -> None:
    """An erasure or maintenance of one removes what its folder has beside its own files."""
    assert [outcomes[0][f"apart.* -> meeting.{name}"] for name in ("one", "two")] == [("published", "")] * 2
    one, two = (lake.load(Identifier("meeting", name)) for name in ("one", "two"))
    assert one.location().endswith("/apart/meeting/one")
    assert two.location().endswith("/apart/meeting/two")
    purging.purge(one)
    assert published(lake, "meeting.two") == [(2, "apart/two")]


def test_a_folder_that_holds_other_tables_is_refused(outcomes: list[dict[str, Any]], lake: Lake) -> None:
    """The folder of the whole lake holds raw."""
    assert_stopped(outcomes[0]["within.orders"], "shares a folder with raw.meeting")
    assert lake.find(Identifier("meeting", "orders")) is None


def test_orphans_stay_in_a_folder_of_two_tables(
    outcomes: list[dict[str, Any]], source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of the two does not know is of the other: maintenance removed it, and says what to do now."""
    assert outcomes[0]["old.one"] == ("published", "")
    report = run_stage("maintain", source, table="old.one")
    assert [remark.partition(":")[0] for remark in report.remarks] == ["old.one"]
    assert {name for name, detail in report.details.items() if "orphans" in detail} == {"state.old__one"}
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "of the tests, and no other")
    with pytest.raises(ConfigurationError, match=r"old\.one: the folder is, holds or lies in that of another table"):
        erase.run(source, "old.one", ["id=1"])
