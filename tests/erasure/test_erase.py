"""A data subject's rows are erased from every table, file and old cut, and nothing brings them back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.feeds import published, replayed
from support.rounds import how_many
from support.running import die_at, run_all
from tidemark.cli.app import app
from tidemark.errors import ConfigurationError, ErasureError
from tidemark.lake.feeds import in_step
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed
from tidemark.lake.retention import drop_up_to, without_bytes
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import Class, DifferingKey, ReconciliationRow, Result
from tidemark.ledger.rows import BatchRow, CutRow
from tidemark.pipeline import run_stage
from tidemark.queries.status import status_of
from tidemark.report import site
from tidemark.sources.model import Source
from tidemark.stages import StageReport

pytestmark = [pytest.mark.spark, pytest.mark.more]

CANARY = "Zwölfkanarien-8c1f"
"""Text that only the erased row has."""

NAME = "erasing"
TABLE = f"{NAME}.customers"
SECRET = "a secret of the tests, long enough"  # noqa: S105
TYPES = {"id": "int", "name": "varchar(90)", "age": "int"}

AHEAD = int((datetime.now(UTC) + timedelta(hours=8)).timestamp() * 1000)
"""The commit time of events whose source has a clock that is ahead, or writes its local time as UTC."""


def _message(
    kind: str, *rows: dict[str, Any], table: str = "customers", at: int = 1_767_225_600_000, old: Any = None
) -> bytes:
    envelope = {"type": kind, "database": "shop", "table": table, "isDdl": False, "mysqlType": TYPES, "pkNames": ["id"]}
    data = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    old = old or ([{"age": "0"} for _ in rows] if kind == "UPDATE" else None)
    return json.dumps({**envelope, "data": data, "old": old, "es": at, "ts": at}, ensure_ascii=False).encode()


def _row(number: int, name: str, age: object = 1) -> dict[str, Any]:
    return {"id": number, "name": name, "age": age}


DAYS = [
    [
        _message("INSERT", _row(1, f"{CANARY} first"), _row(2, "Two")),
        _message("INSERT", _row(3, "Three"), _row(5, f"{CANARY} moves")),
        _message("INSERT", _row(1, "an order of somebody"), table="orders"),
        _message("INSERT", _row(1, f"{CANARY} copied"), _row(2, "Two copied"), table="_customers_gho"),
    ],
    [
        _message("UPDATE", _row(1, f"{CANARY} second", 2), at=AHEAD),
        _message("UPDATE", _row(2, "Two again", 2), at=1_767_225_601_000),
        _message("UPDATE", _row(6, f"{CANARY} moves"), old=[{"id": "5"}], at=1_767_225_601_500),
    ],
    [
        _message("UPDATE", _row(1, f"{CANARY} third", f"{CANARY} is no number"), at=AHEAD),
        b'{"type": "INSERT", "database": "shop", "table": "customers", "data": [{"id": "1", "name": "'
        + CANARY.encode(),
        _message("UPDATE", _row(2, "Two and", "no number either"), at=1_767_225_602_000),
        _message("UPDATE", _row(3, "Three again"), at=1_767_225_602_000),
    ],
]

PAST_ITS_TIME = b'{"table": "customers", "data": [{"id": "1", "name": "' + CANARY.encode() + b" in raw alone"
"""No JSON, and only raw has its bytes (``retention: quarantine_days``)."""


WINDOWS = (
    "tidemark.erasure.logs.recount",
    "tidemark.erasure.cut.publish",
    "tidemark.ledger.cuts.publish",
    "tidemark.erasure.cut.purge",
    "tidemark.erasure.certificate.searched",
)
"""Functions before whose call an erasure is killed, one erasure for each, in ``make prove``.

In ``make test``, ``test_targets.py`` kills one, and ``normalization/test_erasures.py`` what an erasure does to the log.
"""


@pytest.fixture(scope="module", autouse=True)
def _secret() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_ERASE_SECRET", SECRET)
        yield


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that dumps are delivered to."""
    return tmp_path_factory.mktemp("landing")


@pytest.fixture(scope="module")
def source(landing: Path) -> Source:
    """The source of the story."""
    tables = {"shop.customers": {"key": ["id"], "history": True, "feed": True, "columns": {"age": "int"}}}
    fields = {"source": NAME, "format": "canal_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_quarantined": 1})


def _compared() -> ReconciliationRow:
    """A comparison with the source database that found the row, and another one, to differ."""
    keys = [
        DifferingKey(why=Class.DIFFERENT, kind=Class.DIFFERENT, key={"id": number}, columns=[text])
        for number, text in (("1", CANARY), ("2", "name"))
    ]
    fields = {"object": "shop.customers", "target": TABLE, "result": Result.DIFFERS, "cut": 1, "batch": 1}
    return ReconciliationRow(run=1, different=2, keys=msgspec.json.encode(keys).decode(), **fields)


def _deliver(landing: Path, name: str, *messages: bytes) -> None:
    (landing / name).write_bytes(b"\n".join(messages) + b"\n")


def _erase(source: Source, *key: str, **options: Any) -> StageReport:
    return run_stage("erase", source, table=TABLE, key=key or ("id=1",), **options)


def _rows(lake: Lake, name: str = "customers") -> list[dict[str, Any]]:
    rows = lake.load((NAME, name)).scan().to_arrow().to_pylist()
    return sorted(({k: v for k, v in row.items() if not k.startswith("_cdc")} for row in rows), key=repr)


def _holding(home: Path, text: str) -> list[str]:
    """Every file beneath a folder that holds a text, in whatever compression."""
    found = []
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        held = path.read_bytes()
        texts = [held]
        if held.startswith(b"PAR1"):
            texts += [repr(pq.ParquetFile(path).read().to_pylist()).encode()]
        if held.startswith(b"Obj\x01"):
            texts += [repr(list(fastavro.reader(io.BytesIO(held)))).encode()]
        spelled = (text.encode(), repr(text.encode())[2:-1].encode())
        if any(each in given for each in spelled for given in texts):
            found.append(str(path.relative_to(home)))
    return found


def _note_reprocessing(lake: Lake) -> None:
    """Let the last published cut show a reprocessing, the third, and a batch be derived again by a later one."""
    ledger = Ledger(lake, NAME)
    last = cuts.last_published(ledger)
    assert last is not None
    ledger.replace(CutRow, [msgspec.structs.replace(last, reprocessed=3)], equals("cut", last.cut))
    batches = [msgspec.structs.replace(row, reprocessed=4) for row in ledger.batches(equals("batch", 1))]
    ledger.replace(BatchRow, batches, equals("batch", 1))


def _accounts(lake: Lake) -> None:
    ledger = Ledger(lake, NAME)
    for row in ledger.tables():
        assert row.counts.closes, row
    for batch in ledger.batches():
        assert batch.landed == batch.accounted, batch
    changes = [row for row in lake.load(("changelog", NAME)).scan().to_arrow().to_pylist() if row["kind"] == "change"]
    assert sum(row.events for row in ledger.contents()) == len(changes)
    assert sum(batch.events for batch in ledger.batches()) == len(changes)


@pytest.fixture(scope="module")
def erased(source: Source, landing: Path, spark: SparkSession, lake: Lake, home: Path) -> dict[str, Any]:
    """The story up to the first erasure: three cuts, a dry run, and an erasure.

    In ``make prove`` it is killed in each window first; ``test_targets.py`` has one that is killed.
    """
    for number, messages in enumerate(DAYS[:2], start=1):
        _deliver(landing, f"day{number}.json", *messages, *([PAST_ITS_TIME] if number == 1 else []))
        run_all(source)
    with pytest.raises(ConfigurationError, match="id=5"):
        _erase(source, "id=6")
    assert {row["id"] for row in _rows(lake)} == {1, 2, 3, 6}
    moved = _erase(source, "id=6", follow=True)
    assert {row["id"] for row in _rows(lake)} == {1, 2, 3}
    Ledger(lake, NAME).replace(ReconciliationRow, [_compared()])
    _deliver(landing, "day3.json", *DAYS[2])
    run_all(source)  # onto rewritten tables
    without_bytes(lake, lake.load(("quarantine", NAME)), 1)
    _note_reprocessing(lake)
    before = _holding(home, CANARY)
    dry = _erase(source, dry_run=True)
    after_dry = _holding(home, CANARY)
    killed = []
    for name in how_many(usually=(), proving=WINDOWS):
        with pytest.MonkeyPatch.context() as patched:
            die_at(patched, name, 1)
            with pytest.raises(SystemExit):
                _erase(source, unread=True)
        with pytest.raises(ErasureError, match="cut short"):
            run_stage("normalize", source)
        killed.append(name)
    done = _erase(source, unread=True)
    story: dict[str, Any] = {
        "moved": moved,
        "before": before,
        "dry": dry,
        "after_dry": after_dry,
        "done": done,
        "killed": killed,
    }
    story |= {"fed": [_fed(lake)], "reprocessed": [row.reprocessed for row in Ledger(lake, NAME).batches()]}
    story |= {"cuts": sorted(Ledger(lake, NAME).cuts(), key=lambda row: row.cut)}
    story |= {"rows": _rows(lake), "orders": _rows(lake, "orders"), "versions": _rows(lake, "customers__history")}
    story |= {"left": _holding(home, CANARY), "certificate": _told(done), "counted": _erased_events(lake)}
    site.write(lake, [NAME])
    story |= {"status": status_of(lake, NAME)}
    story |= {"compared": [key.key for row in Ledger(lake, NAME).reconciliations() for key in row.differing]}
    story["left"] += _holding(home / "quality", CANARY)
    assert moved.summary["nothing_found"] == 1
    _accounts(lake)
    with pytest.raises(ConfigurationError) as refused:
        run_stage("restore", source, cut=1)
    back = _brought_back(source, landing, lake, home)
    return {**story, "refused": str(refused.value), **back, "fed": [*story["fed"], _fed(lake)]}


def _fed(lake: Lake) -> tuple[Any, ...]:
    """What replaying the feed gives, the published rows, and whether the feed needs no look at itself to go on."""
    table = Identifier.parse(TABLE)
    return replayed(lake, table), published(lake, table), in_step(lake.load(table), lake.load(feed(table))) is not None


def _brought_back(source: Source, landing: Path, lake: Lake, home: Path) -> dict[str, Any]:
    """What is there after everything that could bring the row back, and after a new row with its key."""
    _deliver(landing, "again.json", *DAYS[1], *DAYS[0])
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    run_stage("normalize", source, reprocess=True)
    drop_up_to(lake.load(("raw", NAME)), 3)
    for stage in ("retry", "rebuild", "compact", "check", "publish"):
        run_stage(stage, source)
    _accounts(lake)
    quarantined = lake.load(("quarantine", NAME)).scan().to_arrow().to_pylist()
    story = {"rows_again": _rows(lake), "left_again": _holding(home, CANARY), "verified": _erase(source, verify=True)}
    _deliver(landing, "new.json", _message("INSERT", _row(1, "Somebody new"), at=AHEAD + 1))
    run_all(source)
    story["quarantined"] = [(row["object"], row["reason"], row["value"]) for row in quarantined]
    return {**story, "rows_later": _rows(lake)}


def _told(report: StageReport) -> dict[str, Any]:
    certificate: dict[str, Any] = json.loads(Path(str(report.summary["certificate"])).read_text())
    return certificate


def _erased_events(lake: Lake) -> list[int]:
    return [row.erased for row in Ledger(lake, NAME).tables() if row.erased and row.state == "published"]


TWO, THREE = {"id": 2, "name": "Two again", "age": 2}, {"id": 3, "name": "Three again", "age": 1}


def test_no_byte_of_the_row_is_left(erased: dict[str, Any]) -> None:
    """After an erasure no file of the lake has the row's text, whatever its compression; a dry run removes nothing."""
    assert len(erased["before"]) > 10
    assert erased["after_dry"] == erased["before"]
    assert erased["left"] == []


def test_other_rows_stay(erased: dict[str, Any]) -> None:
    """Rows of other keys stay, also rows from the same message, and so do rows of other tables with its key."""
    assert erased["rows"] == [TWO, THREE]
    assert [row["name"] for row in erased["orders"]] == ["an order of somebody"]
    assert sorted(row["id"] for row in erased["versions"]) == [2, 2, 3, 3]


def test_the_feed_tells_of_the_other_rows_alone(erased: dict[str, Any]) -> None:
    """Replaying it gives the published rows after the erasure, and after a new row with the key, and it goes on."""
    assert len(erased["fed"]) == 2
    for fed_rows, rows, goes_on in erased["fed"]:
        assert fed_rows == rows
        assert goes_on


def test_the_erasure_is_a_cut_and_counts(erased: dict[str, Any]) -> None:
    """The ledger counts each erased event once as erased, also where the erasure was cut short; so does status."""
    assert erased["status"]["tables"][TABLE]["erased"] == 5
    assert erased["status"]["tables"][TABLE]["closes"]
    assert sorted(erased["counted"]) == [2, 3]


def test_an_erasure_answers_for_nothing_that_was_derived_again(erased: dict[str, Any]) -> None:
    """Its cut shows no newer reprocessing than the cut before it, and batches that are counted again keep theirs."""
    assert [row.reprocessed for row in erased["cuts"][-2:]] == [3, 3]
    assert erased["reprocessed"].count(4) == 1


def test_the_certificate_tells_places_and_no_key(erased: dict[str, Any], landing: Path) -> None:
    """The certificate says that nothing was found, names the dumps that held the row, and can be made again."""
    assert erased["done"].summary["nothing_found"] == 1
    assert not erased["done"].problems
    certificate = erased["certificate"]
    assert certificate["nothing_found"]
    places = certificate["places"]
    assert all(place["found"] == place["unused_files"] == 0 for place in places.values())
    assert certificate["copies"] == ["shop._customers_gho"]
    assert set(places) >= {
        f"raw.{NAME}",
        f"changelog.{NAME}",
        TABLE,
        f"{TABLE}__history",
        f"{TABLE}__feed",
        "ledger.reconciliations",
    }
    assert "ahead of the clock here" in erased["done"].remarks[-1]
    files = {remark.split(" holds")[0] for remark in erased["dry"].remarks}
    assert files == {str(landing / f"day{number}.json") for number in (1, 2, 3)}


def test_comparisons_with_the_source_keep_other_keys(erased: dict[str, Any]) -> None:
    """A comparison with the source database loses the erased key, and no other one."""
    assert erased["compared"] == [{"id": "2"}]


def test_old_cuts_that_showed_the_row_are_gone(erased: dict[str, Any]) -> None:
    """Restore refuses a cut whose snapshots the erasure removed."""
    assert "no longer kept" in erased["refused"]


def test_nothing_brings_the_row_back(erased: dict[str, Any]) -> None:
    """The dump under another name, reprocessing, retry and rebuild leave the row out, and its bytes.

    So they do with events whose commit time is ahead of the clock here.
    """
    assert erased["rows_again"] == [TWO, THREE]
    assert erased["left_again"] == []
    assert erased["verified"].summary["nothing_found"] == 1


def test_a_row_that_comes_after_the_erasure_is_a_new_one(erased: dict[str, Any]) -> None:
    """An insert that the source commits after the erased events is published."""
    assert erased["rows_later"] == [{"id": 1, "name": "Somebody new", "age": 1}, TWO, THREE]


def test_what_is_set_aside_is_told_without_its_message(erased: dict[str, Any]) -> None:
    """A rebuild after ``retention: raw_days`` sets events aside as before; only their bytes are past their time."""
    assert erased["quarantined"] == [("shop.customers", "unreadable_value", None)]


def test_the_secret_is_needed(erased: dict[str, Any], source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the secret, or with another one, nothing is erased, as the hashes of earlier erasures would not fit."""
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "another secret, long enough")
    with pytest.raises(ConfigurationError, match="another TIDEMARK_ERASE_SECRET"):
        _erase(source)
    monkeypatch.delenv("TIDEMARK_ERASE_SECRET")
    with pytest.raises(ConfigurationError, match="openssl rand"):
        _erase(source)


def test_the_command_prints_the_certificate(
    erased: dict[str, Any], source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``tidemark erase`` prints a line for each place, or the certificate, and ends with the status of the others.

    The new row with the key is no find of its search.
    """
    assert {"id": 1, "name": "Somebody new", "age": 1} in erased["rows_later"]
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    text = json.dumps(source.model_dump(mode="json", exclude_defaults=True))
    (tmp_path / f"{NAME}.yaml").write_text(text)
    answer = CliRunner().invoke(app, ["erase", TABLE, "id=1", "--verify", "--json"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["nothing_found"]
    assert CliRunner().invoke(app, ["erase", TABLE, "name=1"]).exit_code == 2
    assert CliRunner().invoke(app, ["erase", f"{NAME}.customer", "id=1"]).exit_code == 2
