"""Types that are guessed from values: what becomes of a number, or a text, that does not fit one."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from support.cut_by_cut import CutByCut
from support.debezium_log import Log
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage

pytestmark = [pytest.mark.spark, pytest.mark.more]

ENTRIES = {
    "grown_h": {"history": True},
    "grown_bag": {"key": []},
    "strict_number": {"schema": "strict"},
}
"""What the source file says of tables, beside their key. A rebuilt table lets its whole cut be built twice."""

LAST = how_many(usually="two", proving="three")
"""The cut in which all numbers are known. In ``make test`` the third cut is one with the second."""

LONG = 1234567890123456789
"""A whole number between two doubles."""


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> CutByCut:
    """Numbers outgrow what was guessed in the second cut; in ``make prove`` in two cuts, and a fourth is rebuilt."""
    cut_by_cut = CutByCut(lake, "guessed", tmp_path_factory.mktemp("guessed"))
    source = cut_by_cut.source(ENTRIES)
    grown, h, bag, strict, numbers = map(Log, ("grown_t", "grown_h", "grown_bag", "strict_number", "numbers"))
    rounded = Log("rounded")
    logs = (h, bag, strict) if PROVING else (h, strict)
    first = [numbers.put(1, id=1, n=10, m=1, b=True), numbers.put(2, id=2, n=11, m=2, b=False)]
    first += [rounded.put(1, id=1, double=1e300, d=1e300, long=LONG, mixed=1e300), rounded.put(2, id=2, mixed=LONG)]
    cut_by_cut.deliver("one", [*first, *(log.put(1, id=1, n=10) for log in (grown, *logs))])
    cut_by_cut.run("one", source)
    texts = [numbers.put(3, id=3, n="abc", m=3, b=True), numbers.put(4, id=4, n=12, m=4, b="maybe")]
    halves = [log.put(2, id=2, n=10.5) for log in logs]
    last = rounded.put(3, id=3, double=LONG, d=0.1, long=1e300)
    cut_by_cut.deliver("two", [*texts, *halves, grown.put(2, id=2, n=11), last])
    if PROVING:
        cut_by_cut.run("two", source)
    more = [numbers.put(5, id=5, n=13, m=5.5, b=True), numbers.put(6, id=6, n=14.5, m=6, b=None)]
    cut_by_cut.deliver("three", [*more, h.put(3, id=3, n=10**19), h.put(3, id=4, n="abc"), grown.put(3, id=3, n="abc")])
    cut_by_cut.run(LAST, source)
    if not PROVING:
        return cut_by_cut
    for table in ("numbers", "strict_number"):
        run_stage("rebuild", source, table=f"shop.{table}")
    cut_by_cut.deliver("four", [grown.put(4, id=4, n=10.5), grown.put(5, id=5, n=12)])
    cut_by_cut.run("four", source)
    return cut_by_cut


def test_no_table_is_stopped_and_every_event_is_accounted_for(story: CutByCut, lake: Lake) -> None:
    """Tables are rebuilt by themselves, and no problem is reported."""
    assert [story.problems(step) for step in story.reports] == [{}] * len(story.reports)
    assert_ledger_closes(lake, "guessed")


def test_a_number_that_outgrows_a_guessed_type_is_taken_as_if_it_had_been_there_at_first(
    story: CutByCut, lake: Lake
) -> None:
    """The table is folded again with the type of all its numbers; text among them stays where it is."""
    half = Decimal("10.5").quantize(Decimal(10) ** -18)
    for name in how_many(usually=("grown_h", "grown_h__history"), proving=("grown_h", "grown_bag", "grown_h__history")):
        columns, rows = story.tables["two"][name]
        more = [] if PROVING else [Decimal(10**19)]
        assert sorted(row[columns.split().index("n")] for row in rows) == [Decimal(10), half, *more], name
    assert story.tables["two"]["grown_t"][1] == [(1, 10), (2, 11)]
    assert story.tables[LAST]["grown_h"][1] == [(1, Decimal(10)), (2, half), (3, Decimal(10**19))]
    if PROVING:
        grown = [(1, Decimal(10)), (2, Decimal(11)), (4, half), (5, Decimal(12))]
        assert story.tables["four"]["grown_t"][1] == grown
    quarantined = lake.load(("quarantine", "guessed")).scan().to_arrow().to_pylist()
    details = [row["detail"] for row in quarantined if str(row["object"]).startswith("shop.grown")]
    of_numbers = ["decimal(38, 18) written as plain: not a number"]
    read_as = of_numbers * 2 if PROVING else [*of_numbers, "long written as plain: not an integer"]
    advice = "`columns: {n: string}` keeps it as text"
    assert sorted(details) == [f"column 'n': \"abc\" is no {each}; {advice}" for each in read_as]


def test_a_table_that_is_built_anew_by_itself_makes_no_text_of_its_numbers(story: CutByCut, lake: Lake) -> None:
    """Values set aside for a type that readers know stay set aside, whatever the reason for a rebuild.

    A rebuild by command makes text of them.
    """
    columns, rows = story.tables[LAST]["numbers"]
    names = columns.split()
    values = [tuple(row[names.index(name)] for name in ("id", "n", "m", "b")) for row in rows]
    more = Decimal("14.5").quantize(Decimal(10) ** -18), Decimal("5.5").quantize(Decimal(10) ** -18)
    assert values == [(1, 10, 1, True), (2, 11, 2, False), (5, 13, more[1], True), (6, more[0], 6, None)]
    if not PROVING:
        return
    assert len(story.tables["four"]["numbers"][1]) == 6
    types = {field.name: str(field.field_type) for field in lake.load(("guessed", "numbers")).schema().fields}
    assert (types["n"], types["b"]) == ("string", "string")


def test_a_strict_source_sets_a_number_aside_that_outgrows_a_guess(story: CutByCut) -> None:
    """No type changes that nobody allowed; a rebuild by command takes the number in."""
    assert story.tables[LAST]["strict_number"][1] == [(1, 10)]
    assert story.quarantined[LAST].count("shop.strict_number") == 1
    if PROVING:
        assert [row[0] for row in story.tables["four"]["strict_number"][1]] == [1, 2]


def test_a_guess_that_would_round_a_number_is_text(story: CutByCut) -> None:
    """It does not matter which came first: the number with an exponent, or the one with more digits than a double."""
    text, first = "1e+300", story.tables["one"]["rounded"]
    assert first == ("id double d long mixed", [(1, 1e300, 1e300, LONG, text), (2, None, None, None, str(LONG))])
    rows = [(1, text, 1e300, str(LONG), text), (2, None, None, None, str(LONG)), (3, str(LONG), 0.1, text, None)]
    assert story.tables["two"]["rounded"][1] == rows
