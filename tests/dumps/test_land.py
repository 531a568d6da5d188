"""Land takes a dump file whole or not at all, whether its messages fit in memory or fill files of their own."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.running import die_at
from tidemark.dumps import tasks
from tidemark.lake import data_files
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

MakeSource = Callable[..., Source]

MANY = 20_000
"""Messages of a dump of several row groups."""


@pytest.fixture(params=[data_files.ROW_GROUP_BYTES, 1 << 16], ids=["in_memory", "own_files"], autouse=True)
def row_group_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Below it, a dump shares its data file with others."""
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", request.param)
    return int(request.param)


def lines(first: int, count: int = MANY) -> bytes:
    """JSON lines that say their number."""
    return b"".join(b'{"number": %d}\n' % number for number in range(first, first + count))


def deliver(source: Source, **dumps: bytes) -> None:
    """Write dump files, ``_`` in a name for a dot."""
    for name, content in dumps.items():
        (Path(source.landing).parent / name.replace("_", ".")).write_bytes(content)


def land(source: Source) -> StageReport:
    """Run the stage."""
    return run_stage("land", source, None, None)


def landed(lake: Lake, source: Source) -> Counter[tuple[str, bytes]]:
    """How often ``raw`` has each message, by the name of its file."""
    rows = lake.load(("raw", source.source)).scan(selected_fields=("file", "value")).to_arrow().to_pylist()
    return Counter((Path(row["file"]).name, row["value"]) for row in rows)


def messages(name: str, content: bytes) -> Counter[tuple[str, bytes]]:
    """Each line of a dump once."""
    return Counter((name, line) for line in content.splitlines())


def written(lake: Lake, source: Source) -> set[Path]:
    """Data files in the folder of ``raw``."""
    return set(Path(f"{lake.load(('raw', source.source)).location()}/data".removeprefix("file://")).glob("*.parquet"))


def committed(lake: Lake, source: Source) -> set[Path]:
    """Data files that belong to ``raw``."""
    tasks = lake.load(("raw", source.source)).scan().plan_files()
    return {Path(task.file.file_path.removeprefix("file://")) for task in tasks}


def test_a_large_dump_has_data_files_of_its_own(source: MakeSource, lake: Lake, row_group_bytes: int) -> None:
    """Dumps that fit in memory share a data file, larger ones share none."""
    shop = source("canal_json")
    deliver(shop, a_json=lines(0), b_json=lines(MANY), c_json=lines(2 * MANY, 3), d_json=lines(2 * MANY + 3, 3))
    assert land(shop).summary == {"files": 4, "messages": 2 * MANY + 6, "refused": 0, "batch": 1}
    files = [
        {Path(file).name for file in pq.read_table(path, columns=["file"]).column("file").unique().to_pylist()}
        for path in committed(lake, shop)
    ]
    own = [{"a.json"}, {"b.json"}, {"c.json", "d.json"}]
    assert sorted(files, key=sorted) == (own if row_group_bytes == 1 << 16 else [set().union(*own)])
    assert set(landed(lake, shop).values()) == {1}


def test_a_cut_dump_leaves_no_file(source: MakeSource, lake: Lake) -> None:
    """Its messages before the cut are in no data file; the others land, and it lands once it is whole."""
    shop = source("canal_json")
    whole = gzip.compress(lines(MANY))
    deliver(shop, a_json=lines(0), b_json_gz=whole[:-9], c_json=lines(2 * MANY, 3))
    report = land(shop)
    assert report.summary == {"files": 2, "messages": MANY + 3, "refused": 1, "batch": 1}
    assert "b.json.gz" in report.problems[0]
    assert "damaged or cut" in report.problems[0]
    sound = messages("a.json", lines(0)) + messages("c.json", lines(2 * MANY, 3))
    assert landed(lake, shop) == sound
    assert written(lake, shop) == committed(lake, shop)
    deliver(shop, b_json_gz=whole)
    assert land(shop).summary["messages"] == MANY
    assert landed(lake, shop) == sound + messages("b.json.gz", lines(MANY))


def test_the_same_content_lands_once(source: MakeSource, lake: Lake) -> None:
    """Under two names in one run, and under a third in a later one."""
    shop = source("canal_json")
    deliver(shop, a_json=lines(0), b_json=lines(0))
    assert land(shop).summary == {"files": 1, "messages": MANY, "refused": 0, "batch": 1}
    deliver(shop, c_json=lines(0))
    assert land(shop).summary == {"files": 0, "messages": 0, "refused": 0, "batch": 1}
    assert landed(lake, shop) == messages("a.json", lines(0))
    assert written(lake, shop) == committed(lake, shop)


FLAT = b'{"id": 1, "state": "%s"}\n'
"""A row that Debezium flattened, with neither a time nor a place in the log."""

CANAL = b'{"database":"shop","table":"t","type":"INSERT","isDdl":false,"es":1,"ts":2,"data":[{"id":"1"}]}\n'

RECORD = b'{"topic":"t","partition":0,"offset":5,"timestamp":1,"key":null,"value":"{\\"id\\":1}"}\n'


@pytest.mark.parametrize(
    ("format_name", "first", "options", "again"),
    [
        ("debezium_json", FLAT % b"a", {"flattened": True, "table": "shop.t"}, True),
        ("debezium_json", RECORD, {"flattened": True, "table": "shop.t"}, False),
        ("canal_json", CANAL, {}, False),
    ],
    ids=["no time", "offsets", "times"],
)
def test_equal_files_are_remarked_where_they_may_be_two_changes(
    source: MakeSource, lake: Lake, format_name: str, first: bytes, options: dict[str, Any], *, again: bool
) -> None:
    """In the run that finds both; later where messages have neither a time nor a place. A blank line makes another."""
    shop = source(format_name, options=options)
    deliver(shop, a_json=first, b_json=first, c_json=b"", d_json=b"")
    (remark,) = land(shop).remarks
    folder = Path(shop.landing).parent
    assert remark.startswith(
        f"left out, as its bytes are those of another file: 1 file (first: {folder}/b.json, equal to {folder}/a.json)"
    )
    run_stage("normalize", shop)
    assert list(land(shop).remarks) == ([remark] if again else [])
    deliver(shop, e_json=b"", f_json=first)
    assert [each[:60] for each in land(shop).remarks] == (
        ["left out, as its bytes are those of another file: 2 files (f"] if again else []
    )
    deliver(shop, b_json=first + b"\n", f_json=b"")
    assert land(shop).summary["messages"] == 1
    (folder / "a.json").touch()
    assert land(shop).remarks == ()


def test_a_last_row_of_csv_without_an_end_lands_and_is_remarked(source: MakeSource, lake: Lake) -> None:
    """Such a row is sound CSV, or cut within its last cell: nobody can tell, so the run says it."""
    shop = source("datahub_tuple")
    rows = b"_sequence_id_,name\n1,a\n"
    deliver(shop, a_csv=rows, b_csv=rows + b"2,unfinis", c_csv=rows + b"3,c", d_csv=rows + b'4,"d"', e_csv=b"name,id")
    report = land(shop)
    assert report.summary == {"files": 5, "messages": 7, "refused": 0, "batch": 1}
    (remark,) = report.remarks
    assert remark.startswith("the last row has no line end: 2 files (first: ")
    assert "/b.csv)" in remark
    waiting = land(source("datahub_tuple", files="append")).remarks
    assert [remark.split(" ends inside a line")[0][-6:] for remark in waiting] == [
        "/b.csv",
        "/c.csv",
        "/d.csv",
        "/e.csv",
    ]


def test_content_refused_under_one_name(source: MakeSource, lake: Lake) -> None:
    """What a file is read as hangs on its name too."""
    shop = source("canal_json")
    deliver(shop, a_parquet=lines(0), b_json=lines(0), c_json=lines(0))
    report = land(shop)
    assert report.summary == {"files": 1, "messages": MANY, "refused": 1, "batch": 1}
    assert "a.parquet" in report.problems[0]
    assert landed(lake, shop) == messages("b.json", lines(0))


def test_a_file_whose_name_is_no_utf_8_is_refused(source: MakeSource, lake: Lake) -> None:
    """No text can hold such a name, so it is shown with escapes; the other files land."""
    shop = source("canal_json")
    deliver(shop, b_json=lines(0, 3))
    folder = os.fsencode(Path(shop.landing).parent)
    Path(os.fsdecode(folder + b"/caf\xe9.json")).write_bytes(lines(3, 3))
    report = land(shop)
    assert report.summary == {"files": 1, "messages": 3, "refused": 1, "batch": 1}
    assert report.problems == (
        f"{os.fsdecode(folder)}/caf\\xe9.json: its name, or that of a folder above it, is not UTF-8; rename it",
    )
    assert [row.path for row in Ledger(lake, shop.source).refusals()] == [f"{os.fsdecode(folder)}/caf\\xe9.json"]
    assert landed(lake, shop) == messages("b.json", lines(0, 3))


def test_a_changed_file_is_refused(source: MakeSource, lake: Lake) -> None:
    """A landed file stays as it is: nothing of its new content is in ``raw``, nor in a file."""
    shop = source("canal_json")
    deliver(shop, a_json=lines(0))
    land(shop)
    deliver(shop, a_json=lines(1, 2 * MANY), b_json=lines(2 * MANY, 3))
    report = land(shop)
    assert report.summary == {"files": 1, "messages": 3, "refused": 1, "batch": 2}
    assert "a.json changed since it was landed (batch 1" in report.problems[0]
    assert landed(lake, shop) == messages("a.json", lines(0)) + messages("b.json", lines(2 * MANY, 3))
    assert written(lake, shop) == committed(lake, shop)


def test_a_changing_file_is_refused(source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lands is what was hashed; the new content lands next time."""
    shop = source("canal_json")
    deliver(shop, a_json=lines(0))
    original = tasks.land

    def changing(*args: Any, **kwargs: Any) -> bytes:
        deliver(shop, a_json=lines(MANY))
        return original(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "land", changing)
        report = land(shop)
    assert report.summary == {"files": 0, "messages": 0, "refused": 1, "batch": 0}
    assert "a.json: another file than before" in report.problems[0]
    assert not written(lake, shop)
    land(shop)
    assert landed(lake, shop) == messages("a.json", lines(MANY))


@pytest.mark.parametrize(
    "point", ["ledger.ledger.Ledger.replace", "lake.lake.Lake.append_files"], ids=["ledger", "commit"]
)
def test_a_killed_land_lands_nothing(
    point: str, source: MakeSource, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files belong to no snapshot (maintenance removes them); the next land has each message once."""
    shop = source("canal_json")
    deliver(shop, a_json=lines(0), b_json_gz=gzip.compress(lines(MANY)))
    with monkeypatch.context() as patched:
        die_at(patched, f"tidemark.{point}", 1)
        with pytest.raises(SystemExit):
            land(shop)
    orphans = written(lake, shop)
    assert orphans
    assert not landed(lake, shop)
    assert land(shop).summary == {"files": 2, "messages": 2 * MANY, "refused": 0, "batch": 1}
    assert landed(lake, shop) == messages("a.json", lines(0)) + messages("b.json.gz", lines(MANY))
    assert not orphans & committed(lake, shop)
    assert len(Ledger(lake, shop.source).read("files")) == 2
