"""An erasure finds the row in the copies that schema-change tools made of its table, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.ddl.lineages import Segment
from tidemark.erasure import logs, sentences
from tidemark.erasure.copies import CopiesOfTable, InCopies, copies_of, search
from tidemark.erasure.subject import ErasedRow
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState
from tidemark.normalization.erased_keys import EVERYWHERE, ErasedKeys, Erasure, KeyColumn, digest_of
from tidemark.pipeline import run_stage
from tidemark.queries.row_events import Identity
from tidemark.sources.model import Source
from tidemark.tables.eras import Era

SECRET = b"a secret of the tests, long enough"
AT = 1_767_225_600_000
NAMES = ("shop.guests", "shop.visitors")


def _message(table: str, at: int = AT, **row: str) -> bytes:
    envelope = {"type": "INSERT", "database": "shop", "table": table, "isDdl": False, "pkNames": ["id"], "old": None}
    kinds = dict.fromkeys(row, "varchar(90)") | {"id": "int"}
    return json.dumps({**envelope, "mysqlType": kinds, "data": [row], "es": at}).encode()


MESSAGES = [
    _message("guests", id="7", name="itself"),
    _message("_guests_gho", id="7", name="copied"),
    _message("_guests_gho", id="8", name="another"),
    _message("_guests_gho", AT + 5_000, id="7", name="later"),
    _message("__visitors_new", id="7", name="under the other name"),
    _message("_Guests_OLD", id="7", name="published by itself"),
    _message("_guests_ghc", id="7", name="progress of the tool"),
    _message("_guests_del", name="without its key"),
    _message("_others_gho", id="7", name="of another table"),
    _message("guests_copy", id="7", name="by no tool's name"),
]
ALONE = {
    "shop.guests": ("shop._guests_del", "shop._guests_gho"),
    "shop.visitors": ("shop.__visitors_new",),
}


@pytest.fixture(scope="module")
def source(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A source whose table ``visitors`` was called ``guests`` before, and had several schema changes by tools."""
    landing = tmp_path_factory.mktemp("copies")
    (landing / "a.json").write_bytes(b"\n".join(MESSAGES))
    fields = {"source": "copies", "format": "canal_json", "landing": str(landing / "*")}
    source = Source.model_validate(fields)
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    row = TableRow(cut=1, object="shop._Guests_OLD", target="copies._guests_old", state=TableState.PUBLISHED, batch=1)
    Ledger(lake, "copies").replace(TableRow, [row])
    return source


def _erasures(copies: Mapping[str, tuple[str, ...]]) -> tuple[Erasure, ...]:
    return tuple(
        Erasure(
            object=copy,
            columns=(KeyColumn(name="id", type="int", called=("id",)),),
            digest=digest_of(SECRET, copy, [("id", "7")]),
            before=AT * 1000,
            horizon=EVERYWHERE,
        )
        for each in copies.values()
        for copy in each
    )


def test_copies_are_those_of_any_name_of_the_table(source: Source, lake: Lake) -> None:
    """In whatever case; not a tool's own notes, and not what no tool names so."""
    ledger = Ledger(lake, source.source)
    assert copies_of(ledger, NAMES) == CopiesOfTable(ALONE, {"shop.guests": ("shop._Guests_OLD",)})
    assert copies_of(ledger, ["shop.people"]) == CopiesOfTable()
    assert copies_of(ledger, ["shop._Guests_OLD", "shop.guests"]).published == {}


def test_the_row_is_found_in_copies(source: Source, lake: Lake) -> None:
    """Events that do not show the key are counted, and so are those of a copy that is a table of its own."""
    ledger = Ledger(lake, source.source)
    copies = copies_of(ledger, NAMES)
    keys = ErasedKeys(secret=SECRET, erasures=_erasures(copies.alone) + _erasures(copies.published))
    found = search(lake, ledger, source.source, copies, keys)
    assert sorted(place for _, place, _ in found.events) == [2, 5]
    assert set(found.events.values()) == {AT * 1000}
    assert found[1:] == (1, {"shop._guests_del": 1}, {"shop._Guests_OLD": 1})
    assert search(lake, ledger, source.source, CopiesOfTable(), keys) == InCopies()


def test_events_in_copies_are_erased_and_counted_in_no_cut(source: Source, lake: Lake) -> None:
    """No published table holds them, so no cut of one has counted them."""
    ledger = Ledger(lake, source.source)
    file = ledger.files()[0].path
    subject = _subject(source, copies_of(ledger, NAMES))
    edit = logs.change_log_edit(subject, [(file, 1, 0), (file, 2, 0), (file, 5, 0)])
    own = logs.change_log_edit(subject, [(file, 1, 0), (file, 2, 0), (file, 5, 0)], subject.names)
    log = lake.load(("changelog", source.source))
    assert [logs.file_edits.find(log, each).rows for each in (edit, own)] == [3, 1]


def test_a_key_is_erased_in_copies_of_the_name_while_the_table_had_it() -> None:
    """Also before its key became this one: a copy has it before the table that it replaces."""
    first, second = Segment(NAMES[0], "", "05"), Segment(NAMES[1], "05", None)
    eras = [Era(("old",), (first._replace(ends="03"),)), Era(("id",), (first._replace(begins="03"), second))]
    found = ErasedRow._in_copies(
        cast(
            ErasedRow,
            SimpleNamespace(
                segments=(first, second),
                identities=[Identity(era=era, key=dict.fromkeys(era.key, "7")) for era in eras],
            ),
        ),
        {NAMES[0]: ("shop._guests_gho",), NAMES[1]: ("shop._visitors_gho",)},
    )
    assert [(each.era.key, segment) for each, segment in found] == [
        (("old",), Segment("shop._guests_gho", "", "03")),
        (("id",), Segment("shop._guests_gho", "", "05")),
        (("id",), Segment("shop._visitors_gho", "05", None)),
    ]


def test_what_is_left_in_copies_is_said_with_its_remedy(source: Source) -> None:
    """A copy that is published by itself, and events without the key."""
    subject: Any = _subject(source, CopiesOfTable())
    first, second = sentences.in_copies(subject, InCopies({}, 0, {"shop._g_del": 2}, {"shop._g_old": 1}))
    assert "shop._g_old is published by itself, and 1 of its events have the key" in first
    assert "shop._g_del, a copy of shop.guests" in second


def _subject(source: Source, copies: CopiesOfTable) -> ErasedRow:
    fields = {"source": source.source, "object": NAMES[0], "names": list(NAMES), "copies": copies}
    return cast(ErasedRow, SimpleNamespace(**fields))
