"""Before images are compared with the row before by every source that does not say otherwise, and at little cost.

Texts that are the same prove most of them; few are read. A lost UPDATE is reported, whether the event before it is in
the same run or stored. What a sound stream may show is not reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support import plans
from support import sound_histories as histories
from support.histories import UNAVAILABLE, deliver
from support.rounds import how_many, in_two_runs
from support.running import assert_ledger_closes, run_all
from support.sound_histories import Step, Writer
from tidemark.compaction import before_image_samples, contradictions, stored_samples
from tidemark.folding import before_images, row_images
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.tables import planner
from tidemark.tables.plan import Plan

Make = Callable[..., Source]

_FORMATS: dict[str, tuple[str, Writer]] = {
    "debezium": ("debezium_json", histories.debezium_whole),
    "canal": ("canal_json", histories.canal),
    "halves": ("shareplex_json", histories.halves),
    "parts": ("shareplex_json", histories.one_message),
    "datahub": ("datahub_blob", histories.datahub),
}

_PROVED = {"parts", "datahub"}
"""Formats of ``make prove``. The others have one log, the order of the dump alone, and updates in two messages."""
_IN_TWO_RUNS = how_many(usually={"debezium"}, proving={*_FORMATS})
"""Formats of which ``make test`` has an UPDATE that is lost between two dumps, too."""


def _row(key: int, name: str, note: str = "same") -> dict[str, Any]:
    return {"id": key, "name": name, "note": note}


def _run(shop: Source, name: str, messages: Iterable[bytes]) -> list[str]:
    """Run all stages over new messages; return the remarks of compact about before images."""
    deliver(Path(shop.landing).parent, name, messages)
    reports = run_all(shop)
    assert reports["compact"].problems == reports["check"].problems == ()
    return [text for text in reports["compact"].remarks if "before images" in text]


@pytest.mark.more
@pytest.mark.parametrize(
    "named", [pytest.param(name, marks=[pytest.mark.prove] if name in _PROVED else []) for name in _FORMATS]
)
def test_a_lost_update_is_told_without_an_option(source: Make, spark: SparkSession, lake: Lake, named: str) -> None:
    """Row 1 loses an UPDATE in the midst of a dump; row 2 its second one, the first event of its key in the next."""
    format_name, write = _FORMATS[named]
    shop = source(format_name, tables={"shop.items": {"key": ["id"]}})
    a, b, c, d = (lambda key, name=name: _row(key, name) for name in "abcd")
    first = [Step(1, None, a(1)), Step(2, None, a(2)), Step(3, None, a(3)), Step(4, a(1), b(1)), Step(5, a(2), b(2))]
    first += [Step(7, c(1), d(1)), Step(8, a(3), b(3))]
    second = [Step(21, c(2), d(2)), Step(22, b(3), c(3)), Step(23, d(1), a(1)), Step(24, c(3), d(3))]
    both = (first, second)[: 2 if named in _IN_TWO_RUNS else 1]
    runs = [[unit.message for step in steps for unit in write("items", step)] for steps in both]
    texts_by_run = [_run(shop, str(number), messages) for number, messages in enumerate(runs, 1)]
    rows = sorted(Ledger(lake, shop.source).contradictions(), key=lambda row: row.cut)
    for number, (key, texts, row) in enumerate(zip((1, 2)[: len(both)], texts_by_run, rows, strict=True), 1):
        assert [text.partition("(")[2].partition(")")[0] for text in texts] == [f"id={key}"], texts
        assert f"landing/{number}.json, at position" in texts[0]
        assert (row.kind, row.events, row.cut) == ("before_images", 1, number)
    verdicts = {row["verdict"] for row in Ledger(lake, shop.source).read("tables")}
    assert verdicts == {"warned"}
    assert_ledger_closes(lake, shop.source)


def test_a_sound_batch_reads_one_old_image_of_each_row(
    source: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of events that follow each other in a batch none is read; of each row that is stored, the first new event."""
    read: list[int] = []
    make = before_image_samples.images.reader

    def reader(*args: Any) -> Any:
        made = make(*args)
        monkeypatch.setattr(
            made, "read", lambda shapes, texts, own=made.read: read.append(len(texts)) or own(shapes, texts)
        )
        return made

    monkeypatch.setattr(before_image_samples.images, "reader", reader)
    monkeypatch.setattr(before_images, "sides", None)
    shop = source("debezium_json", tables={"shop.items": {"key": ["id"]}})
    rows: dict[int, dict[str, Any]] = {}

    def changes(start: int) -> Iterator[bytes]:
        for place in range(start, start + 30):
            key = place % 3
            before, rows[key] = rows.get(key), _row(key, f"n{place}")
            yield histories.debezium_whole("items", Step(place, before, rows[key]))[0].message

    assert _run(shop, "1", changes(100)) == []
    assert read == [], "the rows begin in the batch"
    assert _run(shop, "2", changes(200)) == []
    assert read == [3]


def test_of_a_large_batch_a_share_is_read_and_texts_tell_the_rest(
    source: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost UPDATE between two events of a batch is reported where texts prove the others, in the share or not."""
    monkeypatch.setattr(before_image_samples, "_IMAGES", 1)
    shop = source("debezium_json", tables={"shop.items": {"key": ["id"]}})
    steps = [
        Step(place, _row(1, f"n{place - 1}") if place > 1 else None, _row(1, f"n{place}")) for place in range(1, 60)
    ]
    del steps[30]
    (text,) = _run(shop, "1", [histories.debezium_whole("items", step)[0].message for step in steps])
    assert text.startswith(
        "shop.items: 1 before images that are not the row before (id=1). The first is message 31 of "
    )


def _debezium(table: str, at: int, before: dict[str, Any] | None, after: dict[str, Any] | None, op: str = "") -> bytes:
    op = op or ("c" if before is None and at < 3 else "u" if after else "d")
    event = {"op": op, "before": before, "after": after}
    event["source"] = {"connector": "postgresql", "db": "shop", "schema": "shop", "table": table, "lsn": at}
    event["source"] |= {"ts_ms": 1767225600000 + 1000 * at, "snapshot": "true" if op == "r" else "false"}
    return json.dumps(event).encode()


def _filled() -> list[list[bytes]]:
    """A column that the source added and filled without an event; at last a row whose UPDATE is lost."""
    a, wide = {"id": 1, "name": "a"}, {"id": 1, "name": "a", "size": 7}
    other, wide_other = {"id": 2, "name": "a"}, {"id": 2, "name": "a", "size": 7}
    runs: list[list[tuple[Any, ...]]] = [
        [(1, None, a), (2, None, other), (5, wide, {**wide, "name": "b"})],
        [(7, wide_other, {**wide_other, "name": "b"})],
        [(9, {**wide_other, "name": "x"}, {**wide_other, "name": "c"})],
    ]
    return [[_debezium("filled", *change) for change in run] for run in runs]


def _gone() -> list[list[bytes]]:
    """Deleted rows whose old images have zeros and defaults beside the key."""
    rows = [{"id": number, "name": "a", "size": 7} for number in (1, 2)]
    gone = [{**row, "name": "", "size": 0} for row in rows]
    runs: list[list[tuple[Any, ...]]] = [
        [(1, None, rows[0]), (2, None, rows[1]), (5, gone[0], None)],
        [(7, None, {**rows[1], "size": 8}), (8, gone[1], None)],
        [(11, gone[1], None)],
    ]
    return [[_debezium("gone", *change) for change in run] for run in runs]


def _large() -> list[list[bytes]]:
    """A large value that is in no old image; at last a row whose UPDATE is lost."""
    row = {"id": 1, "name": "a", "text": "long"}
    old = {**row, "text": UNAVAILABLE}
    runs: list[list[tuple[Any, ...]]] = [
        [(1, None, row), (5, old, {**row, "text": "longer"})],
        [(7, old, {**row, "text": "longest"})],
        [(9, {**old, "name": "x"}, {**row, "name": "y"})],
    ]
    return [[_debezium("large", *change) for change in run] for run in runs]


def _documents() -> list[list[bytes]]:
    """Rows of a load with a place in the log, whose JSON has blanks there; at last a row whose UPDATE is lost."""
    loaded = [{"id": key, "doc": '{"a": 1, "b": [1, 2]}'} for key in (1, 2)]
    rows = [{"id": key, "doc": '{"a":1,"b":[1,2]}'} for key in (1, 2)]
    new = [{"id": key, "doc": '{"a":2}'} for key in (1, 2)]
    runs: list[list[tuple[Any, ...]]] = [
        [(1, None, row, "r") for row in loaded],
        [(5, rows[0], new[0]), (6, rows[1], new[1])],
        [(7, new[0], rows[0]), (9, rows[1], new[1])],
    ]
    return [[_debezium("documents", *change) for change in run] for run in runs]


_SOUND = how_many(usually=1, proving=2)
"""Runs without a lost UPDATE, before the one that has them."""


@pytest.fixture(scope="module")
def told_by_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The remarks of compact about before images in each of three runs, of tables of one source.

    In ``make test`` the last two runs are one.
    """
    landing = tmp_path_factory.mktemp("plain")
    tables = {f"shop.shop.{name}": {"key": ["id"]} for name in ("filled", "gone", "large", "documents")}
    fields = {"source": "plain_images", "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    shop = Source.model_validate(fields)
    by_run = zip(_filled(), _gone(), _large(), _documents(), strict=True)
    runs = [[each for table in run for each in table] for run in by_run]
    delivered = enumerate(in_two_runs(runs, last=True))
    return [_run(shop, f"{number}", messages) for number, messages in delivered]


def _of(table: str, told_by_run: list[list[str]]) -> list[list[str]]:
    return [[text for text in texts if text.partition(":")[0].endswith(f".{table}")] for texts in told_by_run]


@pytest.mark.more
def test_a_column_that_the_source_filled_is_no_lost_update(told_by_run: list[list[str]]) -> None:
    """PostgreSQL fills an added column without an event: the rows here have null, their next before images a value."""
    *sound, (text,) = _of("filled", told_by_run)
    assert sound == [[]] * _SOUND
    assert text.startswith("shop.shop.filled: 1 before images")
    assert "(id=2)" in text


@pytest.mark.more
def test_the_key_alone_of_a_deleted_row_is_no_lost_update(told_by_run: list[list[str]]) -> None:
    """With PostgreSQL's default replica identity, Debezium fills the old image of a DELETE with zeros and defaults."""
    assert _of("gone", told_by_run) == [[]] * (_SOUND + 1)
    assert len(told_by_run[-1]) == 3, "those of the other tables"


@pytest.mark.more
def test_a_large_value_that_the_log_lacks_is_not_compared(told_by_run: list[list[str]]) -> None:
    """Oracle has no LOB in the image of the row before."""
    *sound, (text,) = _of("large", told_by_run)
    assert sound == [[]] * _SOUND
    assert text.startswith("shop.shop.large: 1 before images")
    assert "(id=1)" in text


@pytest.mark.more
def test_a_row_that_a_load_wrote_in_another_run_is_not_compared(told_by_run: list[list[str]]) -> None:
    """A load of MySQL writes JSON with blanks, and changes without; the row of the first change is compared again."""
    *sound, (text,) = _of("documents", told_by_run)
    assert sound == [[]] * _SOUND
    assert text.startswith("shop.shop.documents: 1 before images")
    assert "(id=2)" in text


@pytest.mark.parametrize(("events", "share"), [(0, 1), (1999, 1), (3999, 1), (4000, 2), (100_000, 50)])
def test_about_as_many_images_are_read_of_any_batch(events: int, share: int) -> None:
    """One in so many events is in the share. If that is not all, pairs are collected where copies are ranked."""
    target = Identifier("erp", "t")
    plan = Plan(found=plans.found(plans.shape(id="long")), target=target, key=("id",), columns=(), compares_images=True)
    assert before_image_samples.wanted(plan, events) == (share, share == 1)
    assert before_image_samples.wanted(replace(plan, ranks_copies=True), events) == (share, True)
    assert before_image_samples.wanted(replace(plan, compares_images=False), events) is None


class _File:
    def __init__(self, rows: int, size: int) -> None:
        self.file, self.record_count, self.file_size_in_bytes = self, rows, size


@pytest.mark.parametrize(
    ("files", "cut", "read"),
    [
        ([(100, 10), (200, 10)], 1, [200, 100]),
        ([(150_000, 10), (100_000, 10), (20_000, 10)], 0, [150_000, 20_000]),
        ([(150_000, 10), (100_000, 10), (20_000, 10)], 1, [100_000, 20_000]),
        ([(100, 9 << 20), (200, 10)], 0, [200]),
        ([], 3, []),
    ],
)
def test_each_cut_reads_other_files_of_a_large_table(
    files: Sequence[tuple[int, int]], cut: int, read: list[int]
) -> None:
    """Whole files, as many as the batch is worth."""
    found = stored_samples._some([_File(*file) for file in files], 0, cut)  # type: ignore[misc]
    assert [task.file.record_count for task in found] == read


@pytest.mark.parametrize(("invariants", "compares"), [({}, True), ({"before_images": "off"}, False)])
def test_no_option_is_needed_and_one_turns_it_off(invariants: dict[str, str], compares: bool) -> None:  # noqa: FBT001
    """As the plan of a table says."""
    made = planner.plan(plans.source(invariants=invariants), plans.found(plans.shape(id="long")), None)
    assert made.compares_images is compares


@pytest.mark.prove
def test_nothing_is_done_where_the_option_is_off(
    source: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No image is hashed, and none is reported."""
    monkeypatch.setattr(row_images, "with_images", None)
    monkeypatch.setattr(contradictions, "before_images", None)
    shop = source("debezium_json", tables={"shop.items": {"key": ["id"]}}, invariants={"before_images": "off"})
    steps = [Step(1, None, _row(1, "a")), Step(2, _row(1, "b"), _row(1, "c"))]
    assert _run(shop, "1", [histories.debezium_whole("items", step)[0].message for step in steps]) == []
