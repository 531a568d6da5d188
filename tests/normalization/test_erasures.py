"""What decodes messages leaves erased rows out, takes their bytes from raw, and keeps the events of other rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.rounds import crash_windows
from support.running import die_at
from tidemark.errors import ConfigurationError
from tidemark.lake import purging
from tidemark.lake.branches import marker
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG
from tidemark.ledger.erasure_rows import DONE, ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.erased_keys import KeyColumn, digest_of, fingerprint
from tidemark.normalization.transaction_tracker import READ, Tracker
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

SECRET = "a secret of the tests, long enough"  # noqa: S105

GONE = "Zwölfkanarien"
"""Text of the erased row."""


@pytest.fixture(scope="module", autouse=True)
def _secret() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_ERASE_SECRET", SECRET)
        yield


def _message(*rows: tuple[int, str], **fields: Any) -> bytes:
    envelope = {"type": "INSERT", "database": "shop", "table": "people", "isDdl": False, "pkNames": ["id"], "old": None}
    data = [{"id": str(number), "name": name} for number, name in rows]
    kinds = {"id": "int", "name": "varchar(90)"}
    return json.dumps(
        {**envelope, "mysqlType": kinds, "data": data, "es": 1_767_225_600_000, **fields}, ensure_ascii=False
    ).encode()


def _source(name: str, landing: Path, **fields: Any) -> Source:
    given = {"source": name, "format": "canal_json", "landing": str(landing / "*"), **fields}
    return Source.model_validate(given)


def _erase_one(lake: Lake, source: str) -> None:
    """Let the ledger say that the row with id 1 was erased."""
    reading = msgspec.json.encode([KeyColumn(name="id", type="int", called=("id",))]).decode()
    digest = digest_of(SECRET.encode(), "shop.people", [("id", "1")])
    row = ErasureRow(
        object="shop.people",
        digest=digest,
        reading=reading,
        secret=fingerprint(SECRET.encode()),
        before=datetime.now(UTC),
        horizon="",
        state=DONE,
    )
    Ledger(lake, source).replace(ErasureRow, [row])


def _kinds(lake: Lake, source: str) -> list[tuple[str, str | None]]:
    rows = lake.load(("changelog", source)).scan().to_arrow().to_pylist()
    return sorted((row["kind"], row["after"] and json.loads(row["after"])["name"]) for row in rows)


def _raw(lake: Lake, source: str) -> list[bytes | None]:
    return [row["value"] for row in lake.load(("raw", source)).scan().to_arrow().to_pylist()]


def _files_with(lake: Lake, source: str) -> int:
    """How many files of raw and quarantine hold the text of the erased row, whether a snapshot has them or not."""
    folders = [lake.load((kind, source)).location().removeprefix("file://") for kind in ("raw", "quarantine")]
    files = [path for folder in folders for path in Path(folder).rglob("*.parquet")]
    return sum(GONE.encode() in b"".join(filter(None, pq.read_table(path)["value"].to_pylist())) for path in files)


_SCHEMA = pa.schema([field for field in CHANGE_LOG if field.name in READ])

MESSAGES = (_message((1, GONE), (2, "two")), _message((3, "three")), _message((1, GONE)))
LEFT = [("change", "three"), ("change", "two"), ("erased", None), ("erased", None)]

CRASHES = {
    "before_the_change_log": ("tidemark.lake.lake.Lake.append_files", 2),
    "before_the_bytes_go": ("tidemark.lake.file_edits.apply", 1),
    "before_the_files_go": ("tidemark.lake.purging.purge", 1),
    "before_the_marker": ("tidemark.normalization.erasures.commit_files", 1),
}


@pytest.mark.parametrize("point", [None, *crash_windows(CRASHES, usually={"before_the_bytes_go"})])
def test_a_replay_leaves_the_row_out(
    point: str | None, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delivered again, decoded again, killed anywhere: other rows are there once, the row and its bytes are not."""
    name = f"replay_{point or 'whole'}"
    source = _source(name, tmp_path)
    _erase_one(lake, name)
    (tmp_path / "a.json").write_bytes(b"\n".join(MESSAGES))
    run_stage("land", source)
    if point is not None:
        with monkeypatch.context() as patched:
            die_at(patched, *CRASHES[point])
            with pytest.raises(SystemExit):
                run_stage("normalize", source)
    run_stage("normalize", source)
    for _ in range(2):
        assert _kinds(lake, name) == LEFT
        assert sorted(_raw(lake, name), key=repr) == sorted([None, None, MESSAGES[1]], key=repr)
        assert _files_with(lake, name) == 0
        ledger = Ledger(lake, name)
        (batch,) = ledger.batches()
        assert (batch.landed, batch.decoded, batch.events) == (3, 3, 2)
        assert sum(row.events for row in ledger.contents()) == 2
        run_stage("normalize", source, reprocess=True)


def test_a_row_that_comes_again_costs_no_look_at_earlier_batches(lake: Lake, tmp_path: Path) -> None:
    """A source that delivers whole dumps brings the row in each run: only the files of its batch are read for it."""
    source = _source("repeated_erased", tmp_path)
    _erase_one(lake, source.source)
    (tmp_path / "a.json").write_bytes(MESSAGES[1])
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    (stored,) = [path for _, path in purging.stored_data_files(lake.load(("raw", source.source)))]
    first = Path(stored).read_bytes()
    Path(stored).write_bytes(b"not to be read")
    (tmp_path / "b.json").write_bytes(b"\n".join(MESSAGES))
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    assert Path(stored).read_bytes() == b"not to be read"
    Path(stored).write_bytes(first)
    assert sorted(_raw(lake, source.source), key=repr) == sorted([None, None, MESSAGES[1], MESSAGES[1]], key=repr)
    assert _files_with(lake, source.source) == 0


def test_a_retried_message_of_the_row_goes(lake: Lake, tmp_path: Path) -> None:
    """A message that can be decoded now, and is of an erased row, leaves quarantine and loses its bytes."""
    source = _source("retried_erased", tmp_path)
    _erase_one(lake, source.source)
    (tmp_path / "a.json").write_bytes(_message((1, GONE), (2, "two"), table=None))
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    assert _files_with(lake, source.source) > 0
    run_stage("retry", _source("retried_erased", tmp_path, options={"table": "shop.people"}))
    assert _kinds(lake, source.source) == [("change", "two"), ("erased", None)]
    assert _raw(lake, source.source) == [None]
    assert _files_with(lake, source.source) == 0


def test_what_a_killed_reprocessing_carries_over_of_a_retried_message_is_there_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event of another row came in the batch of the retry, and goes to the batch that the message landed with."""
    source = _source("carried_twice", tmp_path)
    _erase_one(lake, source.source)
    (tmp_path / "a.json").write_bytes(_message((1, GONE), (2, "two"), table=None))
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    fixed = _source("carried_twice", tmp_path, options={"table": "shop.people"})
    run_stage("retry", fixed)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.lake.lake.Lake.append_files", 2)
        with pytest.raises(SystemExit):
            run_stage("normalize", fixed, reprocess=True)
    run_stage("normalize", fixed)
    ledger = Ledger(lake, source.source)
    log = lake.load(("changelog", source.source)).scan().to_arrow().to_pylist()
    assert sorted((row["batch"], row["kind"]) for row in log) == [(1, "change"), (1, "erased")]
    assert [(row.batch, row.events, row.landed == row.accounted) for row in ledger.batches()] == [(1, 1, True)]
    assert [(row.batch, row.events) for row in ledger.contents()] == [(1, 1)]


@pytest.mark.parametrize("secret", [None, "too short", "another secret, long enough"])
def test_nothing_is_decoded_without_the_secret(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str | None
) -> None:
    """Messages of a source with erased rows wait until the secret is there, so that no erased row comes back."""
    source = _source(f"secret_{len(secret or '')}", tmp_path)
    _erase_one(lake, source.source)
    (tmp_path / "a.json").write_bytes(_message((1, GONE)))
    run_stage("land", source)
    with monkeypatch.context() as patched:
        if secret is None:
            patched.delenv("TIDEMARK_ERASE_SECRET")
        else:
            patched.setenv("TIDEMARK_ERASE_SECRET", secret)
        with pytest.raises(ConfigurationError, match="TIDEMARK_ERASE_SECRET"):
            run_stage("normalize", source)
    assert marker(lake.load(("changelog", source.source)), "batch") is None


def test_a_transaction_is_whole_without_its_erased_event() -> None:
    """An erased event counts for whether its transaction is whole, and not as one that a table is to take in."""
    names = ("operation", "position", "committed_at", "transaction_id", "transaction_number", "transaction_last")
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def rows(number: int, *, last: bool) -> pa.RecordBatch:
        values = ("INSERT", "1", at, "t", number, last)
        return pa.RecordBatch.from_pylist([dict(zip(names, values, strict=True))], schema=_SCHEMA)

    seen = []
    for erased in (False, True):
        tracker = Tracker(marked=True, keep=frozenset({"t"}))
        tracker.changes(1, "shop.people", rows(1, last=False), erased=erased)
        tracker.changes(1, "shop.people", rows(2, last=True))
        seen += tracker.close().seen
    assert [each.whole for each in seen] == [True, True]
    assert [each.tables for each in seen] == [{"shop.people": (2, 0)}, {"shop.people": (1, 0)}]
