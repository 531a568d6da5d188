"""A cut that is not published yet, and a source file that was edited meanwhile: no other file's cut is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from tidemark.errors import ExpectationError
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow
from tidemark.ledger.states import CutState, TableState
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES

GUESTS = Table("guests", columns=("id", "phone"))
HIDDEN = {"Shop.Guests": {"key": ["id"], "mask": {"phone": "redact"}}}
"""The messages write the name in small letters: the cut is held."""
MENDED = {"shop.guests": {"key": ["id"], "mask": {"phone": "redact"}}}


@pytest.fixture
def hotel(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The fields of a source with one delivery of one guest."""
    deliver(tmp_path, "1", [message(GUESTS.insert(1, 1, "555-0101"))])
    name = f"hotel_{request.node.name[5:40]}"
    return {"source": name, "format": "debezium_json", "landing": str(tmp_path / "*")}


def _held(fields: dict[str, Any]) -> int:
    """Run a source up to check, which holds the cut; return its number."""
    source = Source.model_validate({"tables": HIDDEN, **fields})
    for stage in ("land", "normalize", "compact", "check"):
        run_stage(stage, source, None, None)
    return _cut(source, CutState.AWAITING_APPROVAL)


def _cut(source: Source, state: CutState) -> int:
    cut = Ledger(Lake.open(), source.source).last_cut()
    assert cut is not None
    assert cut.state == state
    return cut.cut


def _phones(lake: Lake, source: Source) -> list[str | None]:
    return lake.load((source.source, "guests")).scan().to_arrow().column("phone").to_pylist()


@pytest.mark.spark
def test_a_held_cut_is_built_again_by_the_corrected_file(hotel: dict[str, Any], lake: Lake) -> None:
    """Nothing new has landed: what builds the cut is new. It gets a number that nobody has approved."""
    number = _held(hotel)
    mended = Source.model_validate({**hotel, "tables": MENDED})
    for stage in ("land", "normalize", "compact", "check", "publish"):
        assert run_stage(stage, mended, None, None).problems == ()
    assert _cut(mended, CutState.PUBLISHED) == number + 1
    (phone,) = _phones(lake, mended)
    assert phone is None or "0101" not in phone


@pytest.mark.spark
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "held"])
def test_publish_refuses_what_another_file_built(
    hotel: dict[str, Any],
    lake: Lake,
    checked: bool,  # noqa: FBT001 - a column of the cases
) -> None:
    """Check passes with the corrected file, or is not asked again; the rows are those of the file before."""
    number = _held(hotel)
    mended = Source.model_validate({**hotel, "tables": MENDED})
    if checked:
        run_stage("check", mended, None, None)
        _cut(mended, CutState.CHECKED)
    with pytest.raises(ExpectationError, match=f"cut {number} was built before .*`tidemark compact {mended.source}`"):
        run_stage("publish", mended, None, None, approve=None if checked else number)
    assert "approved" not in [row.verdict for row in Ledger(lake, mended.source).tables()]
    assert _phones(lake, mended) == []


@pytest.mark.spark
def test_other_edits_leave_a_held_cut_as_it_is(hotel: dict[str, Any], lake: Lake) -> None:
    """Limits and checks are what check judges by; a cut of an earlier version does not say what built it."""
    number = _held(hotel)
    limits = {"max_deletes": 0.3, "invariants": {"loaded_again": "warn"}}
    tables = {**HIDDEN, "shop.rooms": {"max_deletes": 1}}
    edited = Source.model_validate({**hotel, "tables": tables, **limits})
    run_stage("compact", edited, None, None)
    assert _cut(edited, CutState.AWAITING_APPROVAL) == number

    ledger = Ledger(lake, edited.source)
    (cut,) = ledger.cuts()
    ledger.replace(CutRow, [msgspec.structs.replace(cut, built_by=None)], equals("cut", number))
    other = Source.model_validate({**hotel, "tables": {**MENDED, **HIDDEN}})
    run_stage("compact", other, None, None)
    assert _cut(other, CutState.AWAITING_APPROVAL) == number
    run_stage("publish", other, None, None, approve=number)
    assert _phones(lake, other) == ["555-0101"]


@pytest.mark.spark
def test_a_held_cut_is_searched_for_what_was_off(hotel: dict[str, Any], lake: Lake) -> None:
    """A room is inserted while it is there: compact looks for such, and the cut was built while nobody asked."""
    twice = [message(Table("rooms").insert(at, 7, "blue", None)) for at in (2, 3)]
    deliver(Path(hotel["landing"]).parent, "2", twice)
    tables = {**HIDDEN, "shop.rooms": {"key": ["id"]}}
    fields = {**hotel, "tables": tables}
    number = _held(fields | {"invariants": {"existing_rows": "off"}})
    asking = Source.model_validate(fields | {"invariants": {"existing_rows": "block"}})
    with pytest.raises(ExpectationError, match="was built before"):
        run_stage("publish", asking, None, None, approve=number)
    run_stage("compact", asking, None, None)
    problems = " ".join(run_stage("check", asking, None, None).problems)
    assert "inserts of rows that were there" in problems
    assert _cut(asking, CutState.AWAITING_APPROVAL) == number + 1


@pytest.mark.spark
def test_an_edit_that_is_taken_back_leaves_nothing_to_wait_for(hotel: dict[str, Any], lake: Lake) -> None:
    """The cut that a name released is not published once the name is gone, though nothing else is left to build."""
    deliver(Path(hotel["landing"]).parent, "2", [message(Table("rooms").insert(2, 7, "blue", None))])
    fields = {**hotel, "schema": {"table": "hold"}}
    rooms, both = (
        {name: {"key": ["id"]} for name in names} for names in (["shop.rooms"], ["shop.rooms", "shop.guests"])
    )
    before, named = (Source.model_validate({**fields, "tables": tables}) for tables in (rooms, both))
    for stage in STAGES:
        run_stage(stage, before, None, None)
    for stage in ("compact", "check"):
        run_stage(stage, named, None, None)
    _cut(named, CutState.CHECKED)
    with pytest.raises(ExpectationError, match="was built before"):
        run_stage("publish", before, None, None)
    for stage in ("compact", "check", "publish"):
        run_stage(stage, before, None, None)
    _cut(before, CutState.PUBLISHED)
    assert lake.load((before.source, "rooms")).scan().to_arrow().num_rows == 1
    assert Ledger(lake, before.source).published_tables()["shop.guests"].state == TableState.WAITING
