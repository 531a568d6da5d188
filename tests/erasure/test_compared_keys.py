"""Erased keys go from the ledger's comparisons with the source database, from its old files too."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.erasure import certificate, compared_keys
from tidemark.lake import file_edits, purging
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import Class, DifferingKey, ReconciliationRow, Result
from tidemark.ledger.schemas import SCHEMAS
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, Erasure, KeyColumn, canonical, digest_of
from tidemark.values.iso8601 import to_micros

SECRET = b"a secret of the tests, long enough"
NAME, OTHER = "comparing_erased", "comparing_another"
AT = datetime(2026, 11, 1, tzinfo=UTC)
KEPT = DifferingKey(why=Class.EXTRA, kind=Class.EXTRA, key={"mail": "kept@example.org", "day": "2026-01-02"})


def _key(**values: str) -> DifferingKey:
    return DifferingKey(why=Class.LOST, kind=Class.LOST, key=values)


def _erasure(*key: tuple[str, str, str], before: int = EVER) -> Erasure:
    columns = tuple(KeyColumn(name=name, type=kind, called=(name,)) for name, kind, _ in key)
    values = [(name, canonical(value, kind) or "") for name, kind, value in key]
    digest = digest_of(SECRET, "shop.people", values)
    return Erasure(object="shop.people", columns=columns, digest=digest, before=before, horizon=EVERYWHERE)


MAIL = _erasure(("mail", "string", "gone@example.org"), ("day", "date", "2026-01-02"))


def _row(run: int, *keys: DifferingKey, table: str = "shop.people") -> ReconciliationRow:
    text = msgspec.json.encode(keys).decode()
    fields = {"object": table, "target": "x.people", "result": Result.DIFFERS, "cut": 1, "batch": 1}
    return ReconciliationRow(run=run, lost=len(keys), keys=text, read_at=AT, **fields)


def _stored(lake: Lake) -> list[str]:
    return [path for _, path in purging.stored_data_files(lake.load(compared_keys.TABLE))]


def _leave_stray(lake: Lake, age: timedelta) -> None:
    """Leave a file as an attempt to commit does that another commit was faster than."""
    stored = max(_stored(lake), key=lambda path: len(pq.read_table(path)))  # not the other source's
    stray = f"{Path(stored).parent}/stray-{age.seconds}.parquet"
    shutil.copy(stored, stray)
    at = (datetime.now(UTC) - age).timestamp()
    os.utime(stray, (at, at))


def test_the_erased_key_goes_and_nothing_else_does(lake: Lake) -> None:
    """Other keys, other tables, other sources and the times of the comparisons stay; old files with the key do not."""
    gone = _key(mail="gone@example.org", day="2026-01-02")
    ledger, other = Ledger(lake, NAME), Ledger(lake, OTHER)
    ledger.replace(ReconciliationRow, [_row(1, gone, KEPT), _row(1, gone, table="shop.orders")])
    ledger.replace(ReconciliationRow, [_row(2, KEPT)])
    other.replace(ReconciliationRow, [_row(1, gone)])
    before = {(row.run, row.object): row for row in ledger.reconciliations()}
    edit = compared_keys.edit(NAME, SECRET, [MAIL])
    assert certificate.compared(lake, edit, file_edits.NOTHING)[str(compared_keys.TABLE)].found == 1
    _leave_stray(lake, timedelta(hours=2))
    _leave_stray(lake, timedelta(minutes=2))

    assert compared_keys.erase(lake, edit).rows == 1
    compared_keys.purge(lake, NAME)
    after = {(row.run, row.object): row for row in ledger.reconciliations()}
    changed = before[1, "shop.people"]
    assert after == {**before, (1, "shop.people"): msgspec.structs.replace(changed, keys=_row(1, KEPT).keys)}
    assert [row.differing for row in other.reconciliations()] == [[gone]]
    place = certificate.compared(lake, edit, file_edits.NOTHING)[str(compared_keys.TABLE)]
    assert (place.found, place.unused_files) == (1, 1)  # a young file, which may be of a commit that is under way
    (young,) = [path for path in _stored(lake) if "stray" in path]
    os.utime(young, (0, 0))
    compared_keys.purge(lake, NAME)
    place = certificate.compared(lake, edit, file_edits.NOTHING)[str(compared_keys.TABLE)]
    assert (place.found, place.unused_files) == (0, 0)
    assert len(lake.load(compared_keys.TABLE).metadata.snapshots) == 1
    compared_keys.purge(lake, NAME)  # again: nothing is missing
    assert len(ledger.reconciliations()) == 3


@pytest.mark.parametrize(
    ("erasure", "key", "erased"),
    [
        (_erasure(("id", "int", "7")), {"id": "7"}, True),
        (_erasure(("id", "long", "7")), {"id": "07"}, True),
        (_erasure(("id", "decimal(9, 2)", "1.50")), {"id": "1.5"}, True),
        (_erasure(("id", "int", "7")), {"id": "8"}, False),
        (_erasure(("id", "int", "7")), {"id": "7", "part": "1"}, False),
        (_erasure(("id", "int", "7")), {"number": "7"}, False),
        (_erasure(("id", "int", "7")), {"id": "seven"}, False),
        (_erasure(("id", "int", "7"), before=to_micros(AT) - 1), {"id": "7"}, False),
    ],
)
def test_keys_are_compared_as_an_erasure_compares_them(erasure: Erasure, key: dict[str, str], *, erased: bool) -> None:
    """By the hash of the typed key; what the source was read as after the erasure may have a new row."""
    edit = compared_keys.edit(NAME, SECRET, [erasure])
    kept = _row(1, _key(**key)).keys
    rows = {"source": [NAME], "object": ["shop.people"], "keys": [kept], "read_at": [AT]}
    schema = SCHEMAS["reconciliations"]
    batch = pa.RecordBatch.from_pydict(rows, schema=pa.schema([schema.field(name) for name in rows]))
    assert edit.holds(batch).to_pylist() == [erased]
