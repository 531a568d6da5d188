"""The lake against a real PostgreSQL: every kind of difference is found, and why it is one."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url
from typer.testing import CliRunner

from support import source_databases
from support.answers import differences
from support.source_databases import LONG_AGO, add_rows, ahead, has_come_to, published
from tidemark.cli.app import app
from tidemark.cli.reconcile_command import ComparisonAnswer
from tidemark.errors import ConfigurationError, SourceDatabaseError, UnknownNameError
from tidemark.events import TableId
from tidemark.lake.filters import at_least
from tidemark.lake.lake import Lake
from tidemark.lake.properties import NAMES_PROPERTY, RULES_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.reconciliation_rows import ReconciliationRow, Result
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.positions import changed, encode_position
from tidemark.queries.status import status_of
from tidemark.reconciliation import run as reconciling
from tidemark.reconciliation import statements
from tidemark.reconciliation.connections import address_of
from tidemark.reconciliation.run import reconcile
from tidemark.sources.model import Source

CONNECTION = "DB_OF_TEST"
WRONG = "wrong-and-secret"
COLUMNS = {"id": "long", "name": "string", "total": "decimal(10, 2)"}
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def secret() -> str:
    """The password of the database."""
    return source_databases.password()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, secret: str) -> Iterator[str]:
    """The URL of a PostgreSQL of this module."""
    with source_databases.postgres(tmp_path_factory.mktemp("pg"), secret) as url:
        yield url


@pytest.fixture
def connected(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL, which the environment has."""
    monkeypatch.setenv(CONNECTION, url)
    return url


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection]:
    """A connection that writes."""
    parts = make_url(url)
    host, name = str(parts.query["host"]), "postgres"
    with psycopg.connect(host=host, user=name, password=parts.password, autocommit=True) as connection:
        yield connection


def _source(name: str, **more: Any) -> Source:
    file = {"source": name, "format": "canal_json", "landing": "/none/*", "reconcile": {"connection": CONNECTION}}
    return Source.model_validate({**file, **more})


def _rows(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"n{number}", "total": None} for number in range(count)]


def _make(database: psycopg.Connection, schema: str, rows: list[dict[str, Any]]) -> None:
    """A table ``orders`` of the source with such rows."""
    database.execute(f'CREATE SCHEMA "{schema}"'.encode())
    database.execute(
        f'CREATE TABLE "{schema}".orders (id bigint PRIMARY KEY, name text, total numeric(10, 2))'.encode()
    )
    with database.cursor() as cursor:
        insert = f'INSERT INTO "{schema}".orders VALUES (%(id)s, %(name)s, %(total)s)'  # noqa: S608
        cursor.executemany(insert.encode(), rows)


def _classes(row: ReconciliationRow) -> dict[str, str]:
    return {each.key["id"]: each.why for each in row.differing}


def test_each_fault_is_found_and_classed_once_the_log_is_past_it(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """What was changed behind the back of the capture tool is different, extra or lost; a newer change is behind.

    The first look, before the log has passed, can only say behind; the second settles each key by the change log.
    """
    _make(database, "faults", _rows(300))
    source = _source("faults")
    published(lake, "faults", TableId("db", "faults", "orders"), COLUMNS, _rows(300), key=["id"])
    has_come_to(lake, "faults", 1, LONG_AGO)
    (row,) = reconcile(source)
    assert (row.result, row.source_rows, row.lake_rows) == (Result.EQUAL, 300, 300)
    assert (row.verified_through, row.verified_place) == (row.read_at, row.place)
    through = row.verified_through

    database.execute("UPDATE faults.orders SET total = 1.5 WHERE id = 7")
    database.execute("DELETE FROM faults.orders WHERE id = 8")
    database.execute("INSERT INTO faults.orders VALUES (999, '', NULL)")
    (row,) = reconcile(source)
    assert row.result == Result.BEHIND
    assert _classes(row) == {"7": "behind", "8": "behind", "999": "behind"}
    assert {each.key["id"]: each.kind for each in row.differing} == {"7": "different", "8": "extra", "999": "lost"}

    has_come_to(lake, "faults", 1, datetime.now(UTC))
    database.execute("UPDATE faults.orders SET name = NULL WHERE id = 9")
    (row,) = reconcile(source)
    assert (row.result, row.behind, row.lost, row.extra, row.different) == (Result.DIFFERS, 1, 1, 1, 1)
    assert _classes(row) == {"7": "different", "8": "extra", "999": "lost", "9": "behind"}
    assert {each.key["id"]: each.columns for each in row.differing if each.columns} == {"7": ["total"], "9": ["name"]}
    assert row.verified_through == through

    has_come_to(lake, "faults", 1, ahead())
    (row,) = reconcile(source)
    assert _classes(row) == {"7": "different", "8": "extra", "999": "lost", "9": "different"}

    shown = status_of(lake, "faults")["tables"]["faults.orders"]
    assert (shown["reconciled"], shown["verified_through"]) == ("differs", through and through.isoformat())


def test_a_moment_is_verified_later_when_nothing_of_it_differs_any_more(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """A busy table is never equal; what differed at one look and does not at the next was on its way."""
    _make(database, "busy", _rows(3))
    source = _source("busy")
    table = published(lake, "busy", TableId("db", "busy", "orders"), COLUMNS, _rows(1), key=["id"])
    has_come_to(lake, "busy", 1, LONG_AGO)
    (first,) = reconcile(source)
    assert (first.result, first.verified_through) == (Result.BEHIND, None)
    has_come_to(lake, "busy", 2, datetime.now(UTC))
    add_rows(lake, table, _rows(2)[1:])
    (row,) = reconcile(source)
    assert row.verified_through is None  # key 2 differs still, so the first look is not explained
    add_rows(lake, table, _rows(3)[2:])
    database.execute("DELETE FROM busy.orders WHERE id = 0")
    has_come_to(lake, "busy", 2, datetime.now(UTC))
    (now,) = reconcile(source)
    assert _classes(now) == {"0": "behind"}
    assert (now.verified_through, now.verified_place) == (row.read_at, row.place)


def test_a_run_that_could_not_compare_a_table_settles_and_verifies_nothing(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """Rows that were lost then are lost still; what the last comparison suspected is settled past such a run."""
    _make(database, "unseen", _rows(3))
    source = _source("unseen")
    published(lake, "unseen", TableId("db", "unseen", "orders"), COLUMNS, _rows(2), key=["id"])
    has_come_to(lake, "unseen", 1, LONG_AGO)
    database.execute("ALTER TABLE unseen.orders RENAME TO away")
    (row,) = reconcile(source)
    assert row.result == Result.NOT_COMPARED
    database.execute("ALTER TABLE unseen.away RENAME TO orders")
    has_come_to(lake, "unseen", 1, datetime.now(UTC))
    (row,) = reconcile(source)
    assert (_classes(row), row.verified_through) == ({"2": "behind"}, None)
    has_come_to(lake, "unseen", 1, datetime.now(UTC))
    database.execute("ALTER TABLE unseen.orders RENAME TO away")
    (row,) = reconcile(source)
    assert row.result == Result.NOT_COMPARED
    database.execute("ALTER TABLE unseen.away RENAME TO orders")
    database.execute("INSERT INTO unseen.orders VALUES (3, '', NULL)")
    has_come_to(lake, "unseen", 1, datetime.now(UTC))
    database.execute("SELECT pg_sleep(0.01)")
    (row,) = reconcile(source)
    assert (_classes(row), row.verified_through) == ({"2": "lost", "3": "behind"}, None)


def test_a_place_in_the_log_is_compared_as_a_place(lake: Lake, connected: str, database: psycopg.Connection) -> None:
    """Where positions begin with the place in the log, an event past it shows that nothing else will come."""
    _make(database, "places", _rows(3))
    source = _source("places", format="debezium_json")
    published(lake, "places", TableId("db", "places", "orders"), COLUMNS, _rows(2), key=["id"])
    high, low = str(database.execute("SELECT pg_current_wal_insert_lsn()").fetchall()[0][0]).split("/")
    before = (int(high, 16) << 32) + int(low, 16)
    ledger = Ledger(lake, "places")
    for place, expected in ((before, "behind"), (before + (1 << 30), "lost")):
        span = SpanRow(batch=1, object="other", newest=encode_position(changed(place, 0, 1)), last=ahead())
        ledger.replace(SpanRow, [span], at_least("batch", 1))
        (row,) = reconcile(source)
        assert _classes(row) == {"2": expected}, place
        assert row.places > (before - 1,)


def test_a_commit_time_in_the_future_shows_nothing_of_how_far_the_log_is(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """Keys stay behind, as if the event with the wrong time had not come; the times of other batches count."""
    _make(database, "early", _rows(3))
    source = _source("early")
    published(lake, "early", TableId("db", "early", "orders"), COLUMNS, _rows(2), key=["id"])
    has_come_to(lake, "early", 1, datetime(2100, 1, 1, tzinfo=UTC))
    for _ in range(2):
        (row,) = reconcile(source)
        assert (_classes(row), row.verified_through) == ({"2": "behind"}, None)
    has_come_to(lake, "early", 2, ahead())
    (row,) = reconcile(source)
    assert _classes(row) == {"2": "lost"}


def test_what_is_counted_is_exact_and_what_is_kept_is_bounded(
    lake: Lake, connected: str, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many keys differ, in more buckets than a query names; a second table of the source is left out."""
    monkeypatch.setattr("tidemark.reconciliation.comparing._MANY_BUCKETS", 3)
    _make(database, "many", _rows(2500))
    source = _source("many", reconcile={"connection": CONNECTION, "tables": ["db.many.*"]})
    published(lake, "many", TableId("db", "many", "orders"), COLUMNS, _rows(100), key=["id"])
    published(lake, "many", TableId("db", "elsewhere", "orders2"), COLUMNS, [], key=["id"])
    has_come_to(lake, "many", 1, ahead())
    (row,) = reconcile(source)
    assert (row.lost, row.extra, row.different, len(row.differing)) == (2400, 0, 0, 500)
    (row,) = reconcile(source, "orders2")
    assert (row.result, row.reason) == (
        Result.NOT_COMPARED,
        "the user of the connection sees no such table in the source database",
    )
    with pytest.raises(UnknownNameError, match=r"Unknown table 'order' of many\..*Allowed: db\.elsewhere"):
        list(reconcile(source, "order"))
    typo = _source("many", reconcile={"connection": CONNECTION, "tables": ["db.many.*", "db.many.ordres"]})
    with pytest.raises(UnknownNameError, match=r"no published table is 'db\.many\.ordres'\. Did you mean"):
        list(reconcile(typo))
    with pytest.raises(ConfigurationError, match="nothing of none is published yet"):
        list(reconcile(_source("none")))


def test_equal_rows_of_a_table_without_a_key_are_counted(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """Two of one row at the source and three in the lake is one extra, whatever the order."""
    database.execute("CREATE SCHEMA bags")
    database.execute("CREATE TABLE bags.notes (a int, b text)")
    database.execute("INSERT INTO bags.notes VALUES (1, 'x'), (1, 'x'), (NULL, ''), (2, 'y'), (2, 'y')")
    here = [{"a": 1, "b": "x"}] * 3 + [{"a": None, "b": ""}, {"a": 2, "b": "y"}, {"a": None, "b": None}]
    published(lake, "bags", TableId("db", "bags", "notes"), {"a": "int", "b": "string"}, here)
    has_come_to(lake, "bags", 1, LONG_AGO)
    (row,) = reconcile(_source("bags"))
    assert (row.result, row.source_rows, row.lake_rows) == (Result.BEHIND, 5, 6)
    assert (row.behind, row.keys) == (3, "[]")
    # The log passes that moment, and no event of the table came.
    has_come_to(lake, "bags", 1, datetime.now(UTC))
    (row,) = reconcile(_source("bags"))
    assert (row.lost, row.extra, row.different, row.keys) == (1, 2, 0, "[]")


def test_a_stopped_table_is_compared_as_it_is_published(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """Its row of the newest cut names no published table, and the rows of an earlier cut are there to be read."""
    _make(database, "still", _rows(2))
    published(lake, "still", TableId("db", "still", "orders"), COLUMNS, _rows(2), key=["id"])
    ledger = Ledger(lake, "still")
    ledger.replace(CutRow, [CutRow(cut=2, state="published", batch=2)])
    stopped = TableRow(cut=2, object="db.still.orders", state="stopped", reason="a type", batch=1, held=1, events=1)
    ledger.replace(TableRow, [stopped, TableRow(cut=2, object="db.still.never", state="waiting", batch=0)])
    (row,) = reconcile(_source("still"))
    assert (row.target, row.result, row.batch) == ("still.orders", Result.EQUAL, 1)


def test_softly_deleted_rows_are_no_rows(lake: Lake, connected: str, database: psycopg.Connection) -> None:
    """A row that the source no longer has and the lake keeps, marked, is no difference; an unmarked one is extra."""
    _make(database, "soft", _rows(3))
    here = [{**row, "_cdc_deleted": None if row["id"] else False} for row in _rows(3)]
    gone = [{"id": 50, "name": "gone", "total": None, "_cdc_deleted": True}]
    published(lake, "soft", TableId("db", "soft", "orders"), COLUMNS, here + gone, key=["id"], soft=True)
    (row,) = reconcile(_source("soft"))
    assert (row.result, row.lake_rows) == (Result.EQUAL, 3)


def test_a_table_that_cannot_be_compared_says_why(
    lake: Lake, connected: str, database: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key or a row that has no exact text on both sides is never taken for equal; its rows are still counted."""
    database.execute("CREATE SCHEMA odd")
    database.execute("CREATE TABLE odd.times (at time PRIMARY KEY, v int)")
    database.execute("CREATE TABLE odd.bag (j jsonb)")
    database.execute("INSERT INTO odd.times VALUES ('10:00', 1)")
    published(lake, "odd", TableId("db", "odd", "times"), {"at": "string", "v": "int"}, [], key=["at"])
    published(lake, "odd", TableId("db", "odd", "bag"), {"j": "string"}, [{"j": "{}"}])
    bag, times = reconcile(_source("odd"))
    assert (times.result, times.source_rows, times.lake_rows) == (Result.NOT_COMPARED, 1, 0)
    assert times.reason is not None
    assert times.reason.startswith("its key cannot be compared: at: time without time zone at the source and string")
    assert (bag.result, bag.reason) == (Result.NOT_COMPARED, "it has no key, and not every column can be compared: j")


def test_columns_with_other_names_are_compared_with_their_own(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """A key and a column that ``rename`` publishes under other names; keys that differ have the published names."""
    _make(database, "called", _rows(2))
    rows = [{"nr": row["id"], "text": row["name"], "total": None} for row in _rows(2)]
    kinds = {"nr": "long", "text": "string", "total": "decimal(10, 2)"}
    published(lake, "called", TableId("db", "called", "orders"), kinds, rows, key=["nr"])
    with lake.load(("called", "orders")).transaction() as changes:
        changes.set_properties({NAMES_PROPERTY: json.dumps({"id": "nr", "name": "text"})})
    has_come_to(lake, "called", 1, ahead())
    (row,) = reconcile(_source("called"))
    assert (row.result, row.columns, row.left_out) == (Result.EQUAL, 3, "{}")
    database.execute("UPDATE called.orders SET name = 'x' WHERE id = 1")
    (row,) = reconcile(_source("called"))
    assert [(each.key, each.columns) for each in row.differing] == [({"nr": "1"}, ["text"])]


def test_values_of_masked_columns_are_not_compared_and_masked_keys_are_not_named(
    lake: Lake, connected: str, database: psycopg.Connection
) -> None:
    """Not by the comparison, nor by earlier ones of which the ledger had plain keys."""
    database.execute("CREATE SCHEMA masked")
    for table in ("people", "calls"):
        database.execute(f"CREATE TABLE masked.{table} (mail text PRIMARY KEY, name text)".encode())
        database.execute(f"INSERT INTO masked.{table} VALUES ('ann@example.com', 'Ann')".encode())  # noqa: S608
    for table, mail, name in (("people", "6f1c", "Ann"), ("calls", "ann@example.com", "***")):
        row = {"mail": mail, "name": name}
        published(
            lake, "masked", TableId("db", "masked", table), {"mail": "string", "name": "string"}, [row], key=["mail"]
        )
    assert ["ann@example.com" in row.keys for row in reconcile(_source("masked"))] == [True, True]
    for table, mask in (("people", {"mail": "hmac"}), ("calls", {"name": "redact"})):
        with lake.load(("masked", table)).transaction() as changes:
            changes.set_properties({RULES_PROPERTY: json.dumps({"masks": mask})})
    calls, people = reconcile(_source("masked"))
    assert (calls.result, json.loads(calls.left_out)) == (Result.EQUAL, {"name": "it is published with other values"})
    assert people.result == Result.NOT_COMPARED
    assert people.reason == "its key cannot be compared: mail: it is published with other values"
    kept = Ledger(lake, "masked").reconciliations()
    assert [row.keys for row in kept if row.object == people.object] == ["[]", "[]"]


def test_a_replica_verifies_what_it_had_replayed(
    lake: Lake, url: str, secret: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that stands still shows the rows of the lake, and proves nothing of the time since."""
    host = str(make_url(url).query["host"])
    with psycopg.connect(host=host, user="postgres", password=secret, autocommit=True) as database:
        _make(database, "copied", _rows(2))
        published(lake, "copied", TableId("db", "copied", "orders"), COLUMNS, _rows(2), key=["id"])
        primary = Path(str(database.execute("SHOW data_directory").fetchall()[0][0]))
        with source_databases.standby(tmp_path_factory.mktemp("replica") / "pg", primary, database, secret) as replica:
            monkeypatch.setenv(CONNECTION, replica)
            database.execute("CREATE TABLE last_change ()")
            (before,) = database.execute("SELECT clock_timestamp()").fetchall()[0]
            _replayed(replica, secret, str(database.execute("SELECT pg_current_wal_insert_lsn()").fetchall()[0][0]))
            (row,) = reconcile(_source("copied"))
            assert row.result == Result.EQUAL
            assert row.read_at is not None
            assert row.verified_through is not None
            assert row.verified_through < before < row.read_at
            through = row.verified_through
            monkeypatch.setenv(CONNECTION, url)
            database.execute("INSERT INTO copied.orders VALUES (2, '', NULL)")
            has_come_to(lake, "copied", 1, datetime.now(UTC))
            (row,) = reconcile(_source("copied"))
            assert (row.result, row.verified_through) == (Result.BEHIND, through)


def _replayed(replica: str, secret: str, place: str) -> None:
    """Wait until a replica has replayed the log up to a place, and let it stop there."""
    host = str(make_url(replica).query["host"])
    with psycopg.connect(host=host, user="postgres", password=secret, autocommit=True) as copy:
        for _ in range(300):
            if copy.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (place,)).fetchall()[0][0]:
                break
            time.sleep(0.1)
        copy.execute("SELECT pg_wal_replay_pause()")


def _file(folder: Any, patched: pytest.MonkeyPatch, name: str) -> None:
    text = f"source: {name}\nformat: canal_json\nlanding: /none/*\nreconcile: {{connection: {CONNECTION}}}\n"
    (folder / f"{name}.yaml").write_text(text)
    patched.setenv("TIDEMARK_SOURCES", str(folder))


def test_command_prints_classes_with_the_command_that_explains_and_no_secret(
    lake: Lake,
    connected: str,
    secret: str,
    database: psycopg.Connection,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Exit status 0 for equal, 1 for differences; JSON is one object a line; no value outside the key leaves."""
    caplog.set_level(logging.DEBUG)
    database.execute("CREATE SCHEMA shown")
    database.execute("CREATE TABLE shown.tags (a text, b bytea, v text, PRIMARY KEY (a, b))")
    kinds = {"a": "string", "b": "binary", "v": "string"}
    here = [{"a": "it's \x1b[31m|", "b": b"\xff", "v": "a value of the lake"}]
    published(lake, "shown", TableId("db", "shown", "tags"), kinds, here, key=["a", "b"])
    has_come_to(lake, "shown", 1, ahead())
    _file(tmp_path, monkeypatch, "shown")
    texts = []
    done = RUNNER.invoke(app, ["reconcile", "shown", "--json"])
    comparison = json.loads(done.stdout)
    assert [*differences(comparison, ComparisonAnswer)] == []
    assert (done.exit_code, comparison["extra"], comparison["result"]) == (1, 1, "differs")
    texts.append(done.output)
    assert comparison["keys"][0]["key"] == {"a": "it's \x1b[31m|", "b": "/w=="}
    assert comparison["keys"][0]["explain"] == "tidemark explain shown.tags 'a=it'\"'\"'s \x1b[31m|' b=/w=="
    database.execute("INSERT INTO shown.tags VALUES (%s, %s, 'a value of the source')", [here[0]["a"], here[0]["b"]])
    done = RUNNER.invoke(app, ["reconcile", "shown", "shown.tags"])
    assert done.exit_code == 1
    assert re.search(r"different in v: tidemark explain shown\.tags 'a=it'\"'\"'s \\x1b\[31m\|' b=/w==", done.output)
    texts.append(done.output)
    database.execute("UPDATE shown.tags SET v = 'a value of the lake'")
    done = RUNNER.invoke(app, ["reconcile", "shown"])
    assert done.exit_code == 0, done.output
    texts.append(done.output)
    status = RUNNER.invoke(app, ["status", "shown"])
    assert "shown: 1 tables compared with the source database, verified through 20" in status.output
    kept = [str(Ledger(lake, "shown").read("reconciliations")), status.output, caplog.text, *texts]
    for text in kept:
        assert secret not in text
        assert "a value of" not in text


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_source_that_does_not_answer_is_status_3_without_its_address(
    kind: str, lake: Lake, secret: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a wrong password: neither it, nor the user, nor the host is in any text."""
    caplog.set_level(logging.DEBUG)
    _file(tmp_path, monkeypatch, "unreachable")
    published(lake, "unreachable", TableId("db", "public", "orders"), COLUMNS, [], key=["id"])
    monkeypatch.setenv(CONNECTION, f"{kind}://nobodyknows:{secret}@127.0.0.1:1/hiddendb")
    done = RUNNER.invoke(app, ["reconcile", "unreachable"])
    assert done.exit_code == 3
    assert f"SourceDatabaseError: the source database of connection '{CONNECTION}' failed or refused" in done.output
    for text in (done.output, caplog.text):
        assert not re.search(f"{secret}|nobodyknows|127.0.0.1", text), text


def test_a_wrong_password_is_not_repeated(lake: Lake, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server refuses, and the error has neither password nor user."""
    monkeypatch.setenv(CONNECTION, make_url(url).set(password=WRONG).render_as_string(hide_password=False))
    published(lake, "refused", TableId("db", "public", "orders"), COLUMNS, [], key=["id"])
    with pytest.raises(SourceDatabaseError) as caught:
        list(reconcile(_source("refused")))
    assert not re.search(f"{WRONG}|postgres", str(caught.value).replace("password authentication", ""))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "is not set: put a URL"),
        ("oracle://u:s3cr3t@h/d", "is of the kind 'oracle'"),
        ("postgresql://u:s3cr3t@h/d?sslmod=require", "unknown option 'sslmod'. Did you mean 'sslmode'?"),
        ("s3cr3t no url", "holds no URL"),
        ('{"conn_type": "postgres", "password": "s3cr3t", "port": "x"}', "holds no readable JSON"),
    ],
)
def test_a_connection_that_is_none_is_told_without_what_it_holds(
    text: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the connection, and what is allowed."""
    monkeypatch.delenv(CONNECTION, raising=False)
    if text is not None:
        monkeypatch.setenv(CONNECTION, text)
    with pytest.raises(ConfigurationError) as caught:
        address_of(CONNECTION)
    assert expected in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_connections_are_airflows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a URL or as JSON in Airflow's variable, with an escaped password, and never shown by ``repr``."""
    monkeypatch.setenv("AIRFLOW_CONN_ERP_DB", "mysql://reader:p%40ss%2Fword@db.example:3307/shop")
    address = address_of("erp_db")
    assert (address.dialect, address.host, address.port) == ("mysql", "db.example", 3307)
    assert (address.user, address.password, address.database) == ("reader", "p@ss/word", "shop")
    parts = {"conn_type": "postgres", "login": "a", "password": "p@ss", "host": "h", "schema": "d", "extra": "{}"}
    address = address_of("erp_db", json.dumps({**parts, "port": None}))
    assert (address.dialect, address.port, address.password) == ("postgres", 5432, "p@ss")
    assert "p@ss" not in repr(address)


def test_names_never_leave_their_quotes() -> None:
    """A name with every quotation mark is one identifier in each dialect, and a statement stays one statement."""
    import sqlglot

    name = "a\"b`c'd]; DROP TABLE x; -- \\"
    for dialect in ("postgres", "mysql", "duckdb"):
        kinds = reconciling.kinds.ValueKind
        side = statements.Side(
            dialect=dialect,
            table=statements.table(name, name),
            key=[(name, kinds.TEXT)],
            columns=[(name, kinds.TEXT), ("n", kinds.NUMBER)],
        )
        for query in (
            statements.buckets(side, 2),
            statements.keys(side, 2, ["0a"]),
            statements.columns(side, ["f" * 32]),
        ):
            parsed = sqlglot.parse(statements.sql(query, dialect), read=dialect)
            assert len(parsed) == 1
            assert parsed[0] is not None
            names = {each.name for each in parsed[0].find_all(sqlglot.exp.Identifier)}
            assert names <= {name, "n", "k", "d", "b", "s", "r", "c0", "c1"}, names
            assert name in names
