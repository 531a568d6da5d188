"""A landed file that grew lands what is new, once; one that changed in any other way is refused, with the reason."""

from __future__ import annotations

import bz2
import gzip
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from support.running import die_at
from tidemark.dumps import tasks
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

MakeSource = Callable[..., Source]

_ZSTD = zstandard.ZstdCompressor()


def line(number: int) -> bytes:
    """One message."""
    return b'{"number": %d}' % number


def lines(first: int, last: int) -> bytes:
    """Messages from one number to another, one a line."""
    return b"".join(line(number) + b"\n" for number in range(first, last + 1))


def record(number: int) -> bytes:
    """One message as a Kafka record."""
    return b'{"topic": "t", "partition": 0, "offset": %d, "value": "{\\"number\\": %d}"}\n' % (number, number)


def avro(last: int) -> bytes:
    """An Avro file of messages, in which each message has a block, so that a longer one begins with a shorter one."""
    text = io.BytesIO()
    messages = [line(number).decode() for number in range(1, last + 1)]
    fastavro.writer(text, "string", messages, sync_interval=1, sync_marker=b"s" * 16)
    return text.getvalue()


GROWN: dict[str, tuple[bytes, bytes]] = {
    "lines.jsonl": (lines(1, 3), lines(1, 6)),
    "no_end.jsonl": (lines(11, 12) + line(13), lines(11, 16)),
    "blank_lines.jsonl": (b"\n" + lines(1, 3) + b"\n\n", b"\n" + lines(1, 3) + b"\n\n" + lines(4, 6)),
    "was_empty.jsonl": (b"", lines(21, 26)),
    "crlf.jsonl": (lines(1, 2) + line(3) + b"\r", lines(1, 2) + line(3) + b"\r\n" + lines(4, 6)),
    "pretty.json": (b'{\n"number": 1}{"number":\n2}', b'{\n"number": 1}{"number":\n2}{"number": 3}'),
    "records.jsonl": (b"".join(map(record, range(1, 4))), b"".join(map(record, range(1, 7)))),
    "members.jsonl.gz": (gzip.compress(lines(1, 3)), gzip.compress(lines(1, 3)) + gzip.compress(lines(4, 6))),
    "members.jsonl.zst": (_ZSTD.compress(lines(1, 3)), _ZSTD.compress(lines(1, 3)) + _ZSTD.compress(lines(4, 6))),
    "members.jsonl.bz2": (bz2.compress(lines(1, 3)), bz2.compress(lines(1, 3)) + bz2.compress(lines(4, 6))),
    "blocks.avro": (avro(3), avro(6)),
    "rows.csv": (b"_sequence_id_,a\n1,x\n2,y\n", b'_sequence_id_,a\n1,x\n2,y\n3,"z\nz"\n'),
}
"""Name to the content at first, and later."""


def _parquet(count: int) -> bytes:
    text = io.BytesIO()
    columns = {"topic": ["t"] * count, "partition": [0] * count, "offset": range(count), "value": ["{}"] * count}
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), text)
    return text.getvalue()


REFUSED: dict[str, tuple[bytes, bytes, str]] = {
    "changed.jsonl": (lines(1, 3), b" " + lines(2, 9), "changed since it was landed"),
    "shorter.jsonl": (lines(11, 13), lines(11, 12), "changed since it was landed"),
    "goes_on.jsonl": (lines(1, 2) + b"12", lines(1, 2) + b"123\n", "its last message, which had no line end, goes on"),
    "two_on_a_line.jsonl": (lines(1, 2) + line(33), lines(1, 2) + line(33) + line(4) + b"\n", "no line end, goes on"),
    "member_goes_on.jsonl.gz": (
        gzip.compress(lines(1, 2) + b"14"),
        gzip.compress(lines(1, 2) + b"14") + gzip.compress(b"5\n"),
        "no line end, goes on",
    ),
    "array.json": (b'[{"a": 1}]\n', b'[{"a": 1}]\n[{"a": 2}]\n', "read as other messages"),
    "rows.parquet": (_parquet(2), _parquet(2) + _parquet(3), "Parquet"),
    "half_a_cell.csv": (b"_sequence_id_,a\n1,x\n2,y", b"_sequence_id_,a\n1,x\n2,yz\n", "no line end, goes on"),
}
"""Name to the content at first, later, and the reason."""


def deliver(source: Source, dumps: dict[str, bytes]) -> None:
    """Write dump files."""
    for name, content in dumps.items():
        (Path(source.landing).parent / name).write_bytes(content)


def land(source: Source) -> StageReport:
    """Run the stage."""
    return run_stage("land", source, None, None)


def rows(lake: Lake, source: Source) -> Counter[tuple[Any, ...]]:
    """What ``raw`` has, but for batch and checksum."""
    fields = ("file", "place", "key", "value", "topic", "partition", "offset")
    found = lake.load(("raw", source.source)).scan(selected_fields=fields).to_arrow().to_pylist()
    found = [{**row, "value": row["value"].rstrip()} for row in found]
    return Counter((Path(row["file"]).name, *(row[name] for name in fields[1:])) for row in found)


def test_what_is_new_lands_as_if_the_file_had_come_at_once(source: MakeSource, lake: Lake) -> None:
    """In every container that can grow: each message once, at its own place, in the batch of its run."""
    shop, at_once = source("canal_json"), source("canal_json")
    deliver(shop, {name: first for name, (first, _) in GROWN.items()})
    assert land(shop).problems == ()
    before = rows(lake, shop)
    deliver(shop, {name: whole for name, (_, whole) in GROWN.items()})
    report = land(shop)
    assert (report.problems, report.summary["files"], report.summary["batch"]) == ((), len(GROWN), 2)
    assert land(at_once).problems == ()
    assert rows(lake, shop) == rows(lake, at_once)
    assert set(rows(lake, shop).values()) == {1}
    assert before < rows(lake, shop)
    assert land(shop).summary == {"files": 0, "messages": 0, "refused": 0, "batch": 2}
    counted = sum(row.messages for row in Ledger(lake, shop.source).files())
    assert counted == rows(lake, shop).total()


def test_what_did_not_only_grow_is_refused(source: MakeSource, lake: Lake) -> None:
    """By name, with the reason; what was landed stays, and files beside it land."""
    shop = source("canal_json")
    deliver(shop, {name: first for name, (first, *_) in REFUSED.items()})
    assert land(shop).problems == ()
    before = rows(lake, shop)
    deliver(shop, {name: later for name, (_, later, _) in REFUSED.items()} | {"beside.jsonl": lines(21, 22)})
    report = land(shop)
    problems = {
        name: [problem for problem in report.problems if f"/{name}:" in problem or f"/{name} " in problem]
        for name in REFUSED
    }
    for name, (_, _, reason) in REFUSED.items():
        assert len(problems[name]) == 1, name
        assert reason in problems[name][0]
    assert (report.summary["messages"], report.summary["refused"]) == (2, len(REFUSED))
    assert rows(lake, shop) - before == Counter(
        {("beside.jsonl", place, None, line(20 + place), None, None, None): 1 for place in (1, 2)}
    )


def test_a_file_grows_run_by_run(source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many runs, one of which is killed; a copy of an earlier state of the file lands nothing."""
    shop = source("canal_json")
    for last in range(1, 6):
        deliver(shop, {"day.jsonl": lines(1, 2 * last)})
        if last == 3:
            with monkeypatch.context() as patched:
                die_at(patched, "tidemark.lake.lake.Lake.append_files", 1)
                with pytest.raises(SystemExit):
                    land(shop)
        assert land(shop).summary == {"files": 1, "messages": 2, "refused": 0, "batch": last}
    deliver(shop, {"copy.jsonl": lines(1, 4)})
    assert land(shop).summary["files"] == 0
    assert rows(lake, shop) == Counter(
        {("day.jsonl", place, None, line(place), None, None, None): 1 for place in range(1, 11)}
    )


def test_a_line_without_its_end_waits(source: MakeSource, lake: Lake) -> None:
    """``files: append``: the whole lines land, also of a file that is first seen so; the run says what waits."""
    shop = source("canal_json", files="append")
    half = {"a.jsonl": lines(1, 2) + b'{"num', "begun.jsonl": b'{"num', "number.jsonl": lines(7, 8) + b"12"}
    deliver(shop, {**half, "whole.jsonl": lines(9, 9) + line(10), "cut.jsonl.gz": gzip.compress(lines(1, 2))[:-9]})
    report = land(shop)
    assert (report.summary["files"], report.summary["messages"]) == (3, 6)
    assert sorted(Path(remark.split(" ends inside")[0]).name for remark in report.remarks) == sorted(half)
    assert len(report.problems) == 1
    assert "cut.jsonl.gz" in report.problems[0]
    assert land(shop).summary["files"] == 0
    deliver(
        shop, {"a.jsonl": lines(1, 3) + b'{"numb', "begun.jsonl": lines(5, 5), "number.jsonl": lines(7, 8) + b"123\n"}
    )
    deliver(shop, {"whole.jsonl": lines(9, 11), "cut.jsonl.gz": gzip.compress(lines(1, 2))})
    report = land(shop)
    assert (report.summary["files"], report.summary["messages"], report.problems) == (5, 6, ())
    values = Counter(row[3] for row in rows(lake, shop))
    expected = [1, 2, 3, 5, 7, 8, 9, 10, 11, 1, 2]
    assert values == Counter([*map(line, expected), b"123"])


def test_a_long_line_shows_its_own_end_up_to_the_limit_of_the_source(source: MakeSource, lake: Lake) -> None:
    """``files: append``: a whole JSON object lands without a line end where a message may be so long; else it waits."""
    long = b'{"text": "%s"}' % (b"x" * (17 << 20))
    for limit, messages in ((16, 1), (18, 2)):
        shop = source("canal_json", files="append", max_message_mib=limit)
        (Path(shop.landing).parent / "a.json").write_bytes(lines(1, 1) + long)
        report = land(shop)
        assert report.summary["messages"] == messages
        assert [remark.split(" ends inside a line")[0][-7:] for remark in report.remarks] == ["/a.json"] * (
            2 - messages
        )


def test_a_file_that_grows_while_it_is_landed(source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """``files: append``: what was listed lands, and the rest in the next run."""
    shop = source("canal_json", files="append")
    deliver(shop, {"a.jsonl": lines(1, 3)})
    original = tasks.land

    def growing(*args: Any, **kwargs: Any) -> bytes:
        deliver(shop, {"a.jsonl": lines(1, 5)})
        return original(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "land", growing)
        assert land(shop).summary == {"files": 1, "messages": 3, "refused": 0, "batch": 1}
    assert land(shop).summary == {"files": 1, "messages": 2, "refused": 0, "batch": 2}
