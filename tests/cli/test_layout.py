"""Tables on a terminal of any width: nothing is cut, numbers stand to the right, what says nothing is left out."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from support.statuses import source_status, table_status
from tidemark import formats
from tidemark.cli import status_text
from tidemark.cli.app import ORDER, app
from tidemark.cli.format_list import as_lines, described
from tidemark.cli.layout import Group, PrintedLines, TextColumn, folded, laid_out

WIDTHS = (80, 100, 140)
KEY = "900719925474099312345678901234567890"
FILE = "/srv/landing/erp/2026-01-02/part-00000-of-00010-0f3c6a2e.c000.json.gz"
COLUMNS = (
    TextColumn(name="table"),
    TextColumn(name="rows", number=True),
    TextColumn(name="events", number=True, spared=2),
    TextColumn(name="superseded", number=True, optional=True, spared=1),
    TextColumn(name="held", number=True, optional=True),
    TextColumn(name="verdict", is_state=True),
)


def plain(found: PrintedLines) -> list[str]:
    """The lines without their styles."""
    return [line.plain for line in found.lines]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Print statuses on a terminal of some columns; return the lines of standard output and of standard error."""

    def run(width: int, statuses: Sequence[dict[str, Any]], **options: Any) -> tuple[list[str], list[str]]:
        monkeypatch.setattr("tidemark.cli.printing.width", lambda: width)
        status_text.print_status(statuses, **options)
        out, err = capsys.readouterr()
        return out.splitlines(), err.splitlines()

    return run


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["orders", KEY, FILE, "表" * 30, FILE * 3])
def test_no_name_key_or_file_is_cut(width: int, name: str) -> None:
    """Rows that do not fit become blocks, and a value that is longer than a line stays whole in its line."""
    found = laid_out(COLUMNS, [Group(rows=[[name, "1", "2", "3", "4", "passed"]], heading="erp")], width)
    assert sum(name in line for line in plain(found)) == 1
    assert not any("…" in line for line in plain(found))
    long = [line for line in plain(found) if cell_len(line) > width]
    assert all(name in line for line in long)
    assert not long or cell_len(name) + len("  table       ") > width - 2


def test_numbers_stand_to_the_right_of_their_column() -> None:
    """Also below a longer name; text stands to the left, and wide characters count twice."""
    rows = [["表格", "7", "1234567", "0", "1", "passed"], ["lines", "12345", "2", "0", "0", "warned"]]
    assert plain(laid_out(COLUMNS, [Group(rows=rows)], 80)) == [
        "table   rows   events  held  verdict",
        "表格       7  1234567     1  passed",
        "lines  12345        2     0  warned",
    ]


def test_columns_that_are_zero_in_all_rows_are_left_out_and_named() -> None:
    """A column that must be shown stays, whatever is in it."""
    found = laid_out(COLUMNS, [Group(rows=[["a", "0", "0", "0", "0", ""], ["b", "0", "0", "", "0", ""]])], 80)
    assert found.zero == ["superseded", "held"]
    assert plain(found) == ["table  rows  events  verdict", "a         0       0", "b         0       0"]


def test_columns_go_in_their_order_before_rows_become_blocks() -> None:
    """Those that were spared come back in a block, which has room for all."""
    rows = [["a_table_of_the_shop", "1", "2", "3", "4", "passed"]]
    one = laid_out(COLUMNS, [Group(rows=rows)], 50)
    both = laid_out(COLUMNS, [Group(rows=rows)], 40)
    none = laid_out(COLUMNS, [Group(rows=rows)], 30)
    assert (one.spared, both.spared, none.spared) == (["superseded"], ["superseded", "events"], [])
    assert plain(none) == [
        "-- 1 --",
        "  table       a_table_of_the_shop",
        "  rows        1",
        "  events      2",
        "  superseded  3",
        "  held        4",
        "  verdict     passed",
    ]
    assert plain(laid_out(COLUMNS, [Group(rows=rows)], 140, vertical=True)) == plain(none)
    assert len(plain(laid_out(COLUMNS, [Group(rows=rows)], None))) == 2


def test_nothing_in_rows_names_or_headings_steers_a_terminal() -> None:
    """Control characters are written as escapes, and count as what is printed."""
    columns = [TextColumn(name="a\x1b[2J"), TextColumn(name="b")]
    for vertical in (True, False):
        groups = [Group(rows=[["\x1b[31m\n", "[red]"]], heading="\x9b1m", footer=["\u202e"])]
        text = "\n".join(plain(laid_out(columns, groups, 80, vertical=vertical)))
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert r"\x1b[31m\n" in text
        assert "[red]" in text


def test_only_a_terminal_gets_colours_and_words_say_the_same() -> None:
    """The lines of a file and those of a terminal are equal but for their styles."""
    lines = laid_out(COLUMNS, [Group(rows=[["a", "1", "2", "0", "0", "failed"]])], 80).lines
    written = {}
    for terminal in (True, False):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, color_system="standard" if terminal else "auto")
        for line in lines:
            console.print(line, soft_wrap=True)
        written[terminal] = file.getvalue()
    assert "\x1b[1;31mfailed" in written[True]
    assert "\x1b" not in written[False]
    assert written[False].splitlines() == [line.plain for line in lines]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_status_of_a_demo_has_its_names_whole(width: int, printed: Any) -> None:
    """Ten sources of five tables: a heading each, no name cut, no line longer than the terminal."""
    names = ("shop_replicate_avro", "shop_canal", "shop_datahub_tuple")
    tables = ("customers", "order_lines", "product_categories", "stock_movements", "orders")
    statuses = [
        source_status(name, {f"{name}.{table}": table_status(rows=41, events=417, applied=400) for table in tables})
        for name in names
    ]
    out, err = printed(width, statuses)
    assert [line for line in out if line.endswith("cut 4 published")] == [f"{name}: cut 4 published" for name in names]
    for table in tables:
        assert sum(line.startswith(f"  {table} ") for line in out) == len(names)
    assert max(map(len, out)) <= width
    assert not any("…" in line for line in out + err)
    assert "superseded, duplicate, held, quarantined (--all shows them)" in err[0]
    whole, _ = printed(200, statuses, whole=True)
    assert "superseded  duplicate  held  quarantined" in whole[0]


def test_a_source_that_has_nothing_is_one_line(printed: Any) -> None:
    """Without names of columns where no source has a table."""
    nothing = {**source_status("erp", {}), "cut": None, "published_cut": None, "published_at": None}
    nothing["messages"] = dict.fromkeys(nothing["messages"], 0)
    out, err = printed(80, [nothing, {**nothing, "source": "crm"}])
    assert (out, err) == (["erp: nothing has landed yet", "crm: nothing has landed yet"], [])
    out, _ = printed(80, [nothing, source_status("shop", {"shop.orders": table_status()})])
    assert out[0].split()[0] == "table"
    assert "shop: published cut 4 at 2026-01-04 00:00 UTC" in out


@pytest.mark.parametrize("width", WIDTHS)
def test_the_formats_are_told_in_lines_that_fit(width: int) -> None:
    """Broken between words; what is no terminal gets a line for each."""
    found = [described(name) for name in formats.names()]
    lines = [*as_lines(found, width)]
    assert max(map(len, lines)) <= width
    whole = [*as_lines(found, None)]
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(whole).split())
    assert sum(line in formats.names() for line in lines) == len(found)


def test_what_needs_attention_is_never_spared(printed: Any) -> None:
    """Held and quarantined events are shown in the narrowest table that has some."""
    table = table_status(rows=1, events=9, applied=1, superseded=1, duplicate=1, held=3, quarantined=4)
    out, err = printed(80, [source_status("erp", {"erp.a_longer_name": table})])
    assert [word for word in out[0].split() if word in {"held", "quarantined"}] == ["held", "quarantined"]
    assert err == ["not shown, as the terminal is too narrow: duplicate, superseded, applied; --all shows them"]


def test_a_failed_cut_names_its_checks_and_what_goes_on(printed: Any) -> None:
    """By the stored results, else by the tables that failed; a held cut names its approval."""
    tables = {"erp.orders": table_status(verdict="failed", state="candidate"), "erp.items": table_status()}
    failed = {"erp": {"erp.orders": ["expect_column_values_to_be_between (total)"]}}
    _, known = printed(100, [source_status("erp", tables, "failed")], failed=failed)
    assert "cut 4 failed a check, and nothing of it is published: erp.orders: expect_column_values_to_be_between" in (
        " ".join(known)
    )
    assert "`tidemark check erp` and `tidemark publish erp`" in known[-1]
    _, unknown = printed(100, [source_status("erp", tables, "failed")])
    assert any(line.endswith("nothing of it is published: erp.orders") for line in unknown)
    _, held = printed(100, [source_status("erp", tables, "held")])
    assert "`tidemark publish erp --approve 4`" in held[-1]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_remark_is_broken_between_words_only(width: int) -> None:
    """A word or a path stays whole, also one that is longer than the line; without a terminal nothing is broken."""
    path = f"/srv/{'long/' * 40}a.json"
    text = f"  not shown, as they are 0 or empty in all rows: held, quarantined in {path} (--all shows them) {KEY}"
    lines = folded(text, width)
    assert [word for line in lines for word in line.split()] == text.split()
    assert all(line.startswith("  ") for line in lines)
    assert all(cell_len(line) <= width for line in lines if path not in line)
    assert folded(text, None) == [text]
    found = laid_out(COLUMNS[:1], [Group(rows=[["a"]], heading="erp", footer=[text])], width)
    assert plain(found)[-len(lines) :] == lines


def test_the_page_of_the_command_line_has_the_groups_of_the_help() -> None:
    """Each command, in the order of the help."""
    page = (Path(__file__).parents[2] / "docs" / "operations" / "command-line.md").read_text("utf-8")
    table = page.partition("| group | commands |")[2].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", table) == [*ORDER]


def test_the_help_has_a_place_for_every_command() -> None:
    """In the order in which a person needs them, not in the order of imports."""
    import tidemark.cli.commands  # noqa: F401  puts them into the application

    named = [command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands]
    assert sorted([*named, *(group.name for group in app.registered_groups)]) == sorted(ORDER)
