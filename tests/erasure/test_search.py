"""Which messages an erasure finds and may take, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from support.running import die_at
from tidemark.erasure import logs, refusals
from tidemark.erasure.search import Places, decode
from tidemark.errors import RetriableLakeError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, ErasedKeys, Erasure, KeyColumn, digest_of
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

if TYPE_CHECKING:
    from tidemark.erasure.subject import ErasedRow

SECRET = b"a secret of the tests, long enough"
NAME = "found_again"


def _message(*rows: tuple[int, str], **fields: Any) -> bytes:
    envelope = {"type": "INSERT", "database": "shop", "table": "guests", "isDdl": False, "pkNames": ["id"], "old": None}
    data = [{"id": str(number), "name": name} for number, name in rows]
    kinds = {"id": "int", "name": "varchar(90)"}
    return json.dumps({**envelope, "mysqlType": kinds, "data": data, "es": 1_767_225_600_000, **fields}).encode()


def _source(name: str, landing: Path, **options: Any) -> Source:
    given = {"source": name, "format": "canal_json", "landing": str(landing / "*"), "options": options}
    return Source.model_validate(given)


def _erased(source: Source) -> ErasedKeys:
    """The key of row 7."""
    erasure = Erasure(
        object="shop.guests",
        columns=(KeyColumn(name="id", type="int", called=("id",)),),
        digest=digest_of(SECRET, "shop.guests", [("id", "7")]),
        before=EVER,
        horizon=EVERYWHERE,
    )
    return ErasedKeys(secret=SECRET, erasures=(erasure,), declared=source.written())


def _names(lake: Lake, source: str) -> list[str]:
    rows = lake.load(("changelog", source)).scan().to_arrow().to_pylist()
    return sorted(json.loads(row["after"])["name"] for row in rows if row["kind"] == "change")


def test_a_message_that_can_be_decoded_only_now_is_left_to_a_retry(lake: Lake, tmp_path: Path) -> None:
    """It has rows of others, which are in no change log: a retry keeps them."""
    (tmp_path / "a.json").write_bytes(
        b"\n".join(
            [
                _message((7, "read at once"), (8, "a neighbour")),
                _message((7, "read late"), (9, "nowhere else"), table=None),
                _message((10, "another"), table=None),
            ]
        )
    )
    for stage in ("land", "normalize"):
        run_stage(stage, _source(NAME, tmp_path))
    fixed, ledger = _source(NAME, tmp_path, table="shop.guests"), Ledger(lake, NAME)
    found = decode(lake, ledger, fixed, _erased(fixed))
    assert ([place for _, place, _ in found.events], [place for _, place in found.retriable]) == ([1], [2])
    places = Places(
        events=found.events,
        newer=0,
        messages=frozenset((file, place) for file, place, _ in found.events),
        unread=[],
        retriable=found.retriable,
    )
    subject = cast("ErasedRow", SimpleNamespace(source=NAME, names=["shop.guests"]))
    logs.erase_messages(lake, subject, places, unread=True)
    assert lake.load(("quarantine", NAME)).scan().to_arrow().num_rows == 2
    assert [row["value"] is None for row in sorted(_rows(lake, "raw"), key=lambda row: row["place"])] == [
        True,
        False,
        False,
    ]
    run_stage("retry", fixed)
    assert _names(lake, NAME) == ["a neighbour", "another", "nowhere else", "read at once", "read late"]


def test_what_was_set_aside_of_another_row_stays_under_the_last_name_of_its_table() -> None:
    """The event came under a name that the table had; a message that has no other row of the table goes whole."""
    places = Places(
        events=frozenset({("a", 1, 0), ("a", 2, 0)}), newer=0, messages=frozenset({("a", 1), ("a", 2)}), unread=[]
    )
    edit = logs.quarantine_edit(places, ["shop.a", "shop.b"], {("a", 1)}, unread=False)
    rows = [("shop.b", 1), ("shop.b", 2), ("shop.c", 2), (None, 2)]
    columns = {"object": [name for name, _ in rows], "file": ["a"] * 4, "place": [place for _, place in rows]}
    batch = pa.RecordBatch.from_pydict({**columns, "key": [b"k"] * 4, "value": [b"v"] * 4, "detail": ["quoted"] * 4})
    assert edit.holds(batch).to_pylist() == [True] * 4
    [(_, kept)] = edit.instead((1, "quarantined", "shop.b"), batch)
    assert list(zip(kept["object"].to_pylist(), kept["place"].to_pylist(), strict=True)) == [
        ("shop.b", 1),
        ("shop.c", 2),
    ]
    assert (kept["value"].null_count, "quoted" in kept["detail"].to_pylist()) == (2, False)


def test_other_rows_of_a_message_are_found_under_each_name_of_the_table(lake: Lake, tmp_path: Path) -> None:
    """Not those of other tables, which need no event to stay."""
    source = _source("others_at", tmp_path)
    lines = [_message((7, "read"), (8, "other"), table=table) for table in ("before", "after", "another")]
    (tmp_path / "a.json").write_bytes(b"\n".join([*lines, _message((7, "alone"), table="before")]))
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    log, file = lake.load(("changelog", "others_at")), str(tmp_path / "a.json")
    events = frozenset((file, place, 0) for place in (1, 2, 3, 4))
    places = Places(events=events, newer=0, messages=frozenset(), unread=[])
    assert {place for _, place in logs.others_at(log, places, ["shop.before", "shop.after"])} == {1, 2}


def _rows(lake: Lake, kind: str) -> list[dict[str, Any]]:
    return list(lake.load((kind, NAME)).scan().to_arrow().to_pylist())


def test_an_erasure_waits_for_a_reprocess_that_was_cut_short(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages that it decodes have left the quarantine, and their events are in no change log yet."""
    name = "erased_between"
    (tmp_path / "a.json").write_bytes(_message((7, "read late"), (9, "nowhere else"), table=None))
    fixed, ledger = _source(name, tmp_path, table="shop.guests"), Ledger(lake, name)
    for stage in ("land", "normalize"):
        run_stage(stage, _source(name, tmp_path))
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.lake.lake.Lake.append_files", 2)
        with pytest.raises(SystemExit):
            run_stage("normalize", fixed, reprocess=True)
    with pytest.raises(RetriableLakeError, match=f"run `tidemark normalize {name}`, then erase again"):
        refusals.require_derived(lake, ledger, name, begun=False)
    refusals.require_derived(lake, ledger, name, begun=True)
    run_stage("normalize", fixed)
    refusals.require_derived(lake, ledger, name, begun=False)


def test_an_erasure_waits_for_what_landed(lake: Lake, tmp_path: Path) -> None:
    """A message that no normalize has read may have the row."""
    source = _source("erased_early", tmp_path)
    (tmp_path / "a.json").write_bytes(_message((7, "unread")))
    run_stage("land", source)
    with pytest.raises(RetriableLakeError, match="not normalized yet"):
        refusals.require_derived(lake, Ledger(lake, source.source), source.source, begun=False)
