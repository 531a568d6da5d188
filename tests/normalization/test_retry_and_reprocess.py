"""Events derived again: quarantined messages after a fix, and batches after a fix; without Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pytest

from support.histories import Table, message
from support.replicate_messages import column, in_json, metadata, row
from support.rounds import crash_windows
from support.running import die_at
from tidemark.ddl.history import histories
from tidemark.lake import copies, file_edits, retention
from tidemark.lake.catalog import home
from tidemark.lake.filters import unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE, RAW, VARIED
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import erasures
from tidemark.pipeline import run_stage
from tidemark.positions import encode_position
from tidemark.sources.model import Source

ORDER = {"type": "INSERT", "database": "shop", "table": "orders", "isDdl": False, "mysqlType": {"id": "int"},
         "pkNames": ["id"], "old": None, "es": 1767225600000}  # fmt: skip


def _canal(number: int, **fields: Any) -> bytes:
    return json.dumps({**ORDER, "data": [{"id": str(number)}], **fields}).encode()


def _nameless(number: int) -> bytes:
    return _canal(number, table=None)


def _deliver(landing: Path, day: int, *messages: bytes) -> None:
    folder = landing / f"2026-01-{day:02d}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.json").write_bytes(b"\n".join(messages) + b"\n")


def _source(name: str, landing: Path, format_name: str = "canal_json", **options: Any) -> Source:
    pattern = str(landing / "%Y-%m-%d" / "*.json")
    fields = {"source": name, "format": format_name, "landing": pattern, "options": options}
    return Source.model_validate(fields)


def _run(source: Source, *stages: str, **arguments: Any) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for stage in stages:
        own = arguments if stage == stages[-1] else {}
        summary = dict(run_stage(stage, source, **own).summary)
    return summary


def _events(lake: Lake, source: str) -> list[dict[str, Any]]:
    """The change log, but for the batch and the time of landing."""
    rows = lake.load(("changelog", source)).scan().to_arrow().drop_columns(["batch", "landed_at"]).to_pylist()
    return sorted(rows, key=repr)


def _quarantined(lake: Lake, source: str) -> list[tuple[str, bytes]]:
    rows = lake.load(("quarantine", source)).scan().to_arrow().to_pylist()
    return sorted((row["reason"], row["value"]) for row in rows)


def _assert_messages_are_accounted_for(lake: Lake, source: str) -> None:
    ledger = Ledger(lake, source)
    batches = ledger.read("batches")
    for found in batches:
        assert found["landed"] == found["decoded"] + found["control"] + found["quarantined"], found
    assert sum(found["landed"] for found in batches) == sum(file["messages"] for file in ledger.read("files"))
    assert sum(found["quarantined"] for found in batches) == len(_quarantined(lake, source))
    contents = sum(found["events"] for found in ledger.read("contents"))
    changes = [found for found in _events(lake, source) if found["kind"] == "change"]
    assert sum(found["events"] for found in batches) == contents == len(changes)


def _dies(monkeypatch: pytest.MonkeyPatch, name: str, call: int, work: Callable[[], Any]) -> None:
    with monkeypatch.context() as patched:
        die_at(patched, name, call)
        with pytest.raises(SystemExit):
            work()


_TWO_DAYS = [_canal(1), _nameless(2), b"{", _nameless(3)], [_nameless(4), _canal(5)]


def _two_days(name: str, landing: Path) -> Source:
    """A source that needs an option for three of its messages, and one broken message; normalized without it."""
    source = _source(name, landing)
    for day, messages in enumerate(_TWO_DAYS, 1):
        _deliver(landing, day, *messages)
        _run(source, "land", "normalize")
    return _source(name, landing, table="shop.orders")


class Clean(NamedTuple):
    """What a source has that had the option from the start: three days, whose dumps tests deliver in other ways."""

    events: list[dict[str, Any]]
    quarantined: list[tuple[str, bytes]]

    def assert_same(self, lake: Lake, source: str, landing: Path) -> None:
        """Compare events, positions and quarantine with those of a source to which all or some of the days came."""
        days = {folder.name for folder in landing.iterdir()}
        assert _events_in(lake, source, landing) == [each for each in self.events if each["file"].split("/")[1] in days]
        assert _quarantined(lake, source) == self.quarantined
        _assert_messages_are_accounted_for(lake, source)


def _events_in(lake: Lake, source: str, landing: Path) -> list[dict[str, Any]]:
    """The change log, with the names of files as they are in the landing folder."""
    folder, in_a_position = str(landing), encode_position((str(landing),))
    rows = [
        {**row, "file": row["file"].replace(folder, ""), "position": row["position"].replace(in_a_position, "~")}
        for row in _events(lake, source)
    ]
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def clean(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """The days of ``_two_days`` and the one that most tests deliver then, a run each."""
    landing = tmp_path_factory.mktemp("clean")
    for day, messages in enumerate((*_TWO_DAYS, [_nameless(6)]), 1):
        _deliver(landing, day, *messages)
        _run(_source("clean", landing, table="shop.orders"), "land", "normalize")
    return Clean(_events_in(lake, "clean", landing), _quarantined(lake, "clean"))


def test_retried_messages_are_as_if_they_had_been_read_at_once(clean: Clean, lake: Lake, tmp_path: Path) -> None:
    """Same events, same positions; what stays broken stays; a second retry finds nothing to do."""
    fixed = _two_days("retried", tmp_path)
    assert len(_quarantined(lake, "retried")) == 4
    assert _run(fixed, "retry") == {"messages": 4, "decoded": 3, "control": 0, "quarantined": 1, "rebuilds": 0}
    assert _quarantined(lake, "retried") == [("malformed", b"{")]
    assert _run(fixed, "retry") == {"messages": 1, "decoded": 0, "control": 0, "quarantined": 1, "rebuilds": 0}
    _deliver(tmp_path, 3, _nameless(6))
    assert _run(fixed, "land", "normalize")["decoded"] == 1
    clean.assert_same(lake, "retried", tmp_path)


def test_only_the_named_reason_is_retried(lake: Lake, tmp_path: Path) -> None:
    """Messages of another reason are left alone."""
    fixed = _two_days("one_reason", tmp_path)
    assert _run(fixed, "retry", reason="malformed")["messages"] == 1
    assert len(_quarantined(lake, "one_reason")) == 4
    assert _run(fixed, "retry", reason="missing_table")["decoded"] == 3
    _assert_messages_are_accounted_for(lake, "one_reason")


@pytest.mark.parametrize("emptied", [False, True])
def test_metadata_that_came_later_is_known_to_a_retry(emptied: bool, lake: Lake, tmp_path: Path) -> None:  # noqa: FBT001
    """Rows that landed before their structure are read once it is there; in what order they came does not show.

    In one case, that of another table with the same schema id was there before.
    """
    columns = {"id": column(1, "INT8", key=1), "status": column(2, "STRING")}
    structure, other = (in_json("MD", metadata(columns, table=table)) for table in ("orders", "copies"))
    bodies = [row("INSERT", {"id": number, "status": "new"}, seq=number) for number in (1, 2)]
    rows = [in_json("DT", {"schema": "shop", "table": "orders", **body} if emptied else body) for body in bodies]
    source = _source(f"retry_metadata_{emptied}".lower(), tmp_path, "replicate_json")
    _deliver(tmp_path, 1, *([other] if emptied else []), *rows)
    _run(source, "land", "normalize")
    assert [reason for reason, _ in _quarantined(lake, source.source)] == ["missing_metadata"] * 2
    assert _run(source, "retry")["quarantined"] == 2
    _deliver(tmp_path, 2, structure)
    _run(source, "land", "normalize")
    if emptied:
        assert retention.without_bytes(lake, lake.load(("quarantine", source.source)), 1) == 2
    assert _run(source, "retry")["decoded"] == 2
    assert _quarantined(lake, source.source) == []
    clean = _source(f"{source.source}_clean", tmp_path, "replicate_json")
    _run(clean, "land", "normalize")
    assert _events(lake, source.source) == _events(lake, clean.source)
    _assert_messages_are_accounted_for(lake, source.source)


def test_messages_that_lost_their_bytes_are_retried_from_raw(clean: Clean, lake: Lake, tmp_path: Path) -> None:
    """Quarantine has no bytes of them any more (``quarantine_days``): no message counts as a tombstone."""
    fixed = _two_days("emptied", tmp_path)
    assert retention.without_bytes(lake, lake.load(("quarantine", "emptied")), 2) == 4
    assert _run(fixed, "retry") == {"messages": 4, "decoded": 3, "control": 0, "quarantined": 1, "rebuilds": 0}
    assert _run(fixed, "retry")["quarantined"] == 1
    _deliver(tmp_path, 3, _nameless(6))
    _run(fixed, "land", "normalize")
    clean.assert_same(lake, "emptied", tmp_path)


def test_messages_whose_bytes_are_nowhere_stay_in_quarantine(lake: Lake, tmp_path: Path) -> None:
    """Each retry counts and reports them. Others are read, and one that an erasure took is set aside no more."""
    fixed = _two_days("nowhere", tmp_path)
    _deliver(tmp_path, 3, _nameless(6), _nameless(7))
    _run(_source("nowhere", tmp_path), "land", "normalize")
    raw = lake.load(("raw", "nowhere"))
    file, place = next(
        (row["file"], row["place"]) for row in raw.scan().to_arrow().to_pylist() if row["value"] == _nameless(7)
    )
    file_edits.apply(lake, raw, RAW, erasures.messages_edit({(file, place)}))
    retention.without_bytes(lake, lake.load(("quarantine", "nowhere")), 3)
    retention.drop_up_to(lake.load(("raw", "nowhere")), 1)
    before = [row for row in lake.load(("quarantine", "nowhere")).scan().to_arrow().to_pylist() if row["batch"] == 1]
    for decoded in (3, 0):
        report = run_stage("retry", fixed)
        expected = {"messages": decoded + 3, "decoded": decoded, "control": 0, "quarantined": 3, "without_bytes": 3}
        assert report.summary == {**expected, "rebuilds": 0}
        assert "3 messages of nowhere stay in quarantine untried" in report.remarks[0]
        left = lake.load(("quarantine", "nowhere")).scan().to_arrow().to_pylist()
        assert sorted(left, key=repr) == sorted(before, key=repr)
    assert sorted(json.loads(row["after"])["id"] for row in _events(lake, "nowhere")) == ["1", "4", "5", "6"]
    _assert_messages_are_accounted_for(lake, "nowhere")


RETRY_CRASHES = {
    "before_raw": ("tidemark.lake.lake.Lake.append_files", 1),
    "before_contents": ("tidemark.ledger.ledger.Ledger.write_contents", 1),
    "before_quarantine": ("tidemark.lake.lake.Lake.append_files", 2),
    "before_changelog": ("tidemark.lake.lake.Lake.append_files", 3),
    "before_fast_forward": ("tidemark.normalization.retrying.fast_forward", 1),
}


KILLED = [*zip(RETRY_CRASHES, itertools.cycle(["retry", "normalize"])), ("before_changelog", "retry")]
_USUALLY = {("before_contents", "normalize"), ("before_changelog", "retry")}


@pytest.mark.parametrize(
    ("point", "following"),
    [pytest.param(*each, marks=[] if each in _USUALLY else [pytest.mark.prove]) for each in KILLED],
)
def test_a_killed_retry_changes_nothing_more(
    point: str, following: str, clean: Clean, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed anywhere, with a file landing next: after another retry all is as a clean run has it."""
    name = f"retry_{point}_{following}"
    fixed = _two_days(name, tmp_path)
    _dies(monkeypatch, *RETRY_CRASHES[point], lambda: _run(fixed, "retry"))
    if following == "normalize":
        _deliver(tmp_path, 3, _nameless(6))
        _run(fixed, "land", "normalize")
    _run(fixed, "normalize", "retry")
    _deliver(tmp_path, 3, _nameless(6))
    _run(fixed, "land", "normalize")
    clean.assert_same(lake, name, tmp_path)


@pytest.mark.parametrize(
    ("reason", "following"),
    [(None, "normalize"), ("missing_table", "retry"), pytest.param(None, "retry", marks=pytest.mark.prove)],
)
def test_a_killed_retry_is_finished_where_others_moved_the_quarantine(
    reason: str | None, following: str, clean: Clean, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was retried leaves it, of whatever files main consists now; what was not tried stays."""
    name = f"moved_{reason}_{following}".lower()
    fixed = _two_days(name, tmp_path)
    asked = {"reason": reason} if reason else {}
    _dies(monkeypatch, *RETRY_CRASHES["before_fast_forward"], lambda: _run(fixed, "retry", **asked))
    assert len(_quarantined(lake, name)) == 4
    quarantine = lake.load(("quarantine", name))
    assert file_edits.apply(lake, quarantine, QUARANTINE, _same_rows()).rows == 4
    if following == "normalize":
        _deliver(tmp_path, 3, _nameless(6))
        _run(fixed, "land")
    _dies(monkeypatch, "tidemark.normalization.retrying.drop_branch", 1, lambda: _run(fixed, following))
    _run(fixed, following)
    assert _run(fixed, "retry") == {"messages": 1, "decoded": 0, "control": 0, "quarantined": 1, "rebuilds": 0}
    if following != "normalize":
        _deliver(tmp_path, 3, _nameless(6))
    _run(fixed, "land", "normalize")
    clean.assert_same(lake, name, tmp_path)
    assert [ref for ref in lake.load(("quarantine", name)).refs() if ref.startswith("retry_")] == []


def _same_rows() -> file_edits.Edit:
    """An edit that writes the files of the quarantine again, as a rewrite of small files does."""
    return file_edits.Edit(
        where=unset("object"),
        holds=lambda rows: pc.is_null(rows.column("object")),
        instead=lambda partition, rows: iter([(partition, rows)]),
        plain=VARIED,
    )


def test_maintain_finishes_a_killed_retry_before_it_moves_the_quarantine(
    clean: Clean, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits to the quarantine, and the branch of the retry has to begin where main stands."""
    fixed = _two_days("maintained", tmp_path)
    _dies(monkeypatch, *RETRY_CRASHES["before_fast_forward"], lambda: _run(fixed, "retry"))
    _dies(monkeypatch, "tidemark.stages.maintain.open_session", 1, lambda: run_stage("maintain", fixed))
    assert _quarantined(lake, "maintained") == [("malformed", b"{")]
    assert sorted(lake.load(("quarantine", "maintained")).refs()) == ["main"]
    _deliver(tmp_path, 3, _nameless(6))
    _run(fixed, "land", "normalize")
    clean.assert_same(lake, "maintained", tmp_path)


def test_a_load_that_a_killed_retry_decoded_empties_no_table(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are in quarantine still, so nothing in the ledger says that they replace the rows that are there."""
    nameless = [json.loads(message(each)) for each in Table("t").load(50, (1, "a2", "x"), (2, "b2", "x"))]
    for each in nameless:
        del each["source"]["table"]
        each["after"]["size"] = 3
    source = _source("killed_load", tmp_path, "debezium_json")
    fixed = _source("killed_load", tmp_path, "debezium_json", table="shop.t")
    _deliver(tmp_path, 1, *map(message, Table("t").load(10, (1, "a", "x"), (2, "b", "x"))))
    _run(source, "land", "normalize")
    _deliver(tmp_path, 2, *(json.dumps(each).encode() for each in nameless))
    _run(source, "land", "normalize")
    ledger = Ledger(lake, "killed_load")
    before = (ledger.statements(), ledger.shapes())
    _dies(monkeypatch, *RETRY_CRASHES["before_changelog"], lambda: _run(fixed, "retry"))
    assert (len(ledger.statements()), len(ledger.shapes())) == (2, 2)
    _deliver(tmp_path, 3, message(Table("t").insert(60, 3, "c", "x")))
    _run(fixed, "land", "normalize")
    assert len(_quarantined(lake, "killed_load")) == 2
    assert (ledger.statements(), ledger.shapes()) == before
    assert histories(ledger, ["shop.t"]) == {}
    _run(fixed, "retry")
    assert [each.load for each in histories(ledger, ["shop.t"])["shop.t"].emptyings] == [True]


def test_a_land_that_was_cut_short_before_a_retry_lands_after_it(
    clean: Clean, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files were written to the ledger ahead; the number of their batch goes to the retry."""
    fixed = _two_days("cut_short", tmp_path)
    _deliver(tmp_path, 3, _nameless(6))
    _dies(monkeypatch, "tidemark.lake.lake.Lake.append_files", 1, lambda: _run(fixed, "land"))
    _run(fixed, "retry")
    assert _run(fixed, "land", "normalize")["decoded"] == 1
    clean.assert_same(lake, "cut_short", tmp_path)


def test_a_retry_waits_for_what_landed_to_be_normalized(clean: Clean, lake: Lake, tmp_path: Path) -> None:
    """Batches are numbered by land: those in between must not be passed over."""
    fixed = _two_days("waiting", tmp_path)
    _deliver(tmp_path, 3, _nameless(6))
    with pytest.raises(Exception, match="run normalize"):
        _run(fixed, "land", "retry")
    _run(fixed, "normalize", "retry")
    clean.assert_same(lake, "waiting", tmp_path)


def test_reprocessing_with_nothing_changed_changes_no_event(lake: Lake, tmp_path: Path) -> None:
    """The same events in the same batches, the same quarantine."""
    _two_days("unchanged", tmp_path)
    source = _source("unchanged", tmp_path)
    before = (lake.load(("changelog", "unchanged")).scan().to_arrow().to_pylist(), _quarantined(lake, "unchanged"))
    assert _run(source, "normalize", reprocess=True)["reprocessed"] == 2
    after = (lake.load(("changelog", "unchanged")).scan().to_arrow().to_pylist(), _quarantined(lake, "unchanged"))
    assert [sorted(map(repr, side)) for side in after] == [sorted(map(repr, side)) for side in before]
    _assert_messages_are_accounted_for(lake, "unchanged")


@pytest.mark.parametrize("retried", [False, True])
def test_reprocessing_after_a_fix_is_as_if_it_had_been_there(
    retried: bool,  # noqa: FBT001
    clean: Clean,
    lake: Lake,
    tmp_path: Path,
) -> None:
    """One day after the other, and messages that were retried before under another name of the table."""
    name = f"reprocessed_{retried}".lower()
    fixed = _two_days(name, tmp_path)
    if retried:
        _run(_source(name, tmp_path, table="shop.wrong"), "retry")
        assert {found["object"] for found in _events(lake, name)} == {"shop.orders", "shop.wrong"}
    day = {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2026, 1, 2, tzinfo=UTC)}
    assert _run(fixed, "normalize", reprocess=True, **day)["reprocessed"] == 1
    assert ("missing_table", _nameless(4)) in _quarantined(lake, name) or retried
    assert _run(fixed, "normalize", reprocess=True, start=day["end"])["reprocessed"] == 1
    expected = {"shop.orders", "shop.wrong"} if retried else {"shop.orders"}
    assert Ledger(lake, name).rebuild_requests().keys() == expected
    clean.assert_same(lake, name, tmp_path)


@pytest.mark.parametrize(
    ("statement", "concerned"),
    [
        ("DROP TABLE orders", {"shop.orders"}),
        ("ALTER TABLE _orders_gho RENAME COLUMN id TO number", {"shop.orders"}),
        ("RENAME TABLE one TO old, two TO one, old TO two", {"shop.one", "shop.two"}),
        ("DROP TABLE missing", set()),
    ],
)
def test_a_statement_read_only_now_has_its_tables_built_again(
    statement: str, concerned: set[str], lake: Lake, tmp_path: Path
) -> None:
    """Though their events are all in other batches; so has one that is read no more, but not one that stays."""
    name = f"restated_{statement.split()[2].lower()}"
    ddl = {"type": "ALTER", "isDdl": True, "data": None, "mysqlType": None, "pkNames": None}
    swap = "RENAME TABLE orders TO _orders_del, _orders_gho TO orders"
    other = _canal(9, table="others")
    strict, lenient = _source(name, tmp_path).model_copy(update={"max_message_mib": 1}), _source(name, tmp_path)
    for number, messages in enumerate(
        [
            [_canal(1, table=table) for table in ("orders", "one", "two")],
            [_canal(1, **ddl, sql=statement, padding=" " * (1 << 20)), other],
            [_canal(1, **ddl, sql=swap), other],
        ],
        1,
    ):
        _deliver(tmp_path, number, *messages)
        _run(strict, "land", "normalize")
    assert [reason for reason, _ in _quarantined(lake, name)] == ["message_too_long"]
    ledger, nothing = Ledger(lake, name), set[str]()
    second = {"start": datetime(2026, 1, 2, tzinfo=UTC), "end": datetime(2026, 1, 3, tzinfo=UTC)}
    for source, expected in ((strict, nothing), (lenient, concerned), (lenient, nothing)):
        _run(source, "normalize", reprocess=True, **second)
        assert ledger.rebuild_requests().keys() == {"shop.others"} | expected
        ledger.answered(ledger.rebuild_requests())


REPROCESS_CRASHES = {
    "before_contents": ("tidemark.ledger.ledger.Ledger.write_contents", 1),
    "before_quarantine": ("tidemark.lake.lake.Lake.append_files", 1),
    "before_changelog": ("tidemark.lake.lake.Lake.append_files", 2),
    "before_batches": ("tidemark.ledger.ledger.Ledger.replace", 6),
    "before_transactions": ("tidemark.normalization.open_transactions.settle_again", 1),
    "before_it_is_known": ("tidemark.ledger.ledger.Ledger.forget", 1),
}


@pytest.mark.parametrize("point", crash_windows(REPROCESS_CRASHES, usually={"before_changelog"}))
@pytest.mark.parametrize("retried", [False, True])
def test_a_killed_reprocessing_is_done_by_the_next_normalize(
    retried: bool,  # noqa: FBT001
    point: str,
    clean: Clean,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever comes next finishes it, and is not asked to; events of messages that were retried are there once, too."""
    name = f"killed_{point}_{retried}".lower()
    fixed = _two_days(name, tmp_path)
    work = {"reprocess": True}
    if retried:
        _run(fixed, "retry")
    _dies(monkeypatch, *REPROCESS_CRASHES[point], lambda: _run(fixed, "normalize", **work))
    _run(fixed, "normalize")
    assert Ledger(lake, name).read("reprocessing") == []
    assert Ledger(lake, name).rebuild_requests().keys() == {"shop.orders"}
    clean.assert_same(lake, name, tmp_path)


@pytest.mark.parametrize("point", crash_windows(REPROCESS_CRASHES, usually={"before_batches"}))
def test_compact_derives_the_batches_of_a_killed_reprocessing_first(
    point: str, clean: Clean, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a normalize, as in a rebuild or in another run: it would read old events by new shapes."""
    name = f"compacted_{point}"
    fixed = _two_days(name, tmp_path)
    _dies(monkeypatch, *REPROCESS_CRASHES[point], lambda: _run(fixed, "normalize", reprocess=True))
    _dies(monkeypatch, "tidemark.stages.compact.open_session", 1, lambda: _run(fixed, "rebuild", "compact"))
    assert Ledger(lake, name).read("reprocessing") == []
    clean.assert_same(lake, name, tmp_path)


def test_a_rehearsal_leaves_no_trace(lake: Lake, tmp_path: Path) -> None:
    """What is done to the copies is seen in them, and nowhere else: no table moved, no file stayed."""
    fixed = _two_days("rehearsed_log", tmp_path)

    def everything() -> dict[Any, str]:
        tables = [name for (space,) in lake.catalog.list_namespaces() for name in lake.catalog.list_tables(space)]
        return {name: lake.catalog.load_table(name).metadata_location for name in tables}

    usual, before, files = Lake.open(), everything(), sorted(home().glob("warehouse/**/*.*"))
    with copies.rehearsal("rehearsed_log") as beside:
        assert Lake.open() is beside
        _run(fixed, "normalize", reprocess=True)
        assert {found["object"] for found in _events(beside, "rehearsed_log")} == {"shop.orders"}
        assert len(_events(beside, "rehearsed_log")) == 5
        _assert_messages_are_accounted_for(beside, "rehearsed_log")
        assert len(_events(lake, "rehearsed_log")) == 2
    assert Lake.open() is usual
    assert everything() == before
    assert sorted(home().glob("warehouse/**/*.*")) == files
