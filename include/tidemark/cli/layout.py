"""Rows of text laid out for the width of a terminal: names, keys and values are never cut.

Rows that fit stand below the names of their columns. If they do not fit, columns that are spared first go. If the rest
is still too wide, each row becomes a block, with one line for each column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from tidemark.ledger.states import TableState, VerdictWord
from tidemark.text import harmless

_GAP = "  "

_NOTHING = frozenset({"", "0", "0.0"})

_STYLES: Final[Mapping[str, str]] = {
    VerdictWord.PASSED: "green",
    TableState.PUBLISHED: "green",
    VerdictWord.APPROVED: "green",
    VerdictWord.WARNED: "yellow",
    VerdictWord.HELD: "yellow",
    TableState.WAITING: "yellow",
    VerdictWord.FAILED: "bold red",
    TableState.STOPPED: "bold red",
}
"""Colours of the words of a verdict or a state. The word says the same without its colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """A column, and what may be done with it to make rows fit."""

    name: str
    number: bool = False
    """Whether its values stand to the right."""
    optional: bool = False
    """Whether it is left out where all its values are zero or empty."""
    spared: int = 0
    """Its turn to be left out where rows do not fit: 1 goes first, 0 never goes."""
    is_state: bool = False
    """Whether its values are words that have a colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows with a heading above them and remarks below them."""

    rows: Sequence[Sequence[str]]
    heading: str = ""
    footer: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedLines:
    """Lines to be printed, and the names of the columns that are not in them."""

    lines: Sequence[Text]
    zero: Sequence[str] = ()
    """Columns that are left out because they are zero or empty in all rows."""
    spared: Sequence[str] = ()
    """Columns that are left out because the rows would not fit."""


def folded(text: str, width: int | None, *, indent: int = 0) -> list[str]:
    """Return a text as lines of at most ``width``, broken between words only: a name that is longer stays whole.

    Lines after the first one begin as the text does, and ``indent`` further to the right.
    """
    if width is None or cell_len(text) <= width:
        return [text]
    begin = text[: len(text) - len(text.lstrip(" "))] + " " * indent
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=begin,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def laid_out(
    columns: Sequence[TextColumn],
    groups: Sequence[Group],
    width: int | None,
    *,
    vertical: bool | None = None,
    indented: bool = False,
) -> PrintedLines:
    """Return the rows of all groups with the same columns.

    Args:
        columns: the columns; the first one names the row.
        groups: rows of text, a text for each column.
        width: columns of the terminal; None: any width.
        vertical: whether each row is a block; None: where the rows do not fit.
        indented: whether the rows stand to the right of what is above them; below a heading they always do.
    """
    page = _Page.of(columns, groups, width, indented=indented)
    places = page.without_zero()
    zero = [column.name for place, column in enumerate(columns) if place not in places]
    shown = list(places)
    spared = []
    for place in sorted((p for p in places if columns[p].spared), key=lambda p: columns[p].spared):
        if vertical or page.fits(shown, width):
            break
        shown.remove(place)
        spared.append(columns[place].name)
    if vertical is None and not page.fits(shown, width):
        vertical, shown, spared = True, places, []
    return PrintedLines(lines=list(page.blocks(shown) if vertical else page.table(shown)), zero=zero, spared=spared)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Columns and rows, in which nothing steers a terminal."""

    columns: Sequence[TextColumn]
    names: Sequence[str]
    groups: Sequence[Group]
    indent: str

    @classmethod
    def of(cls, columns: Sequence[TextColumn], groups: Sequence[Group], width: int | None, *, indented: bool) -> _Page:
        shown = [
            Group(
                rows=[[*map(harmless, row)] for row in each.rows],
                heading=each.heading,
                footer=[line for remark in each.footer for line in folded(harmless(remark), width)],
            )
            for each in groups
        ]
        indent = _GAP if indented or any(group.heading for group in groups) else ""
        return cls(columns=columns, names=[harmless(column.name) for column in columns], groups=shown, indent=indent)

    def cells(self, place: int) -> list[str]:
        return [row[place] for group in self.groups for row in group.rows]

    def without_zero(self) -> list[int]:
        """Return the places of the columns that have anything in them, or must be shown."""
        return [
            place
            for place, column in enumerate(self.columns)
            if not column.optional or not (cells := self.cells(place)) or any(cell not in _NOTHING for cell in cells)
        ]

    def widths(self, places: Sequence[int]) -> list[int]:
        return [max(map(cell_len, [self.names[place], *self.cells(place)])) for place in places]

    @property
    def has_rows(self) -> bool:
        return any(group.rows for group in self.groups)

    def fits(self, places: Sequence[int], width: int | None) -> bool:
        if not self.has_rows:
            return True
        gaps = len(_GAP) * (len(places) - 1)
        return width is None or len(self.indent) + sum(self.widths(places)) + gaps <= width

    def table(self, places: Sequence[int]) -> Iterator[Text]:
        """Yield the names of the columns, then a line for each row."""
        widths = self.widths(places)
        if self.has_rows or not any(group.heading for group in self.groups):
            yield self._line(self.names, places, widths, is_head=True)
        for group in self.groups:
            yield from _heading(group)
            yield from (self._line(row, places, widths) for row in group.rows)
            yield from map(Text, group.footer)

    def _line(
        self, cells: Sequence[str], places: Sequence[int], widths: Sequence[int], *, is_head: bool = False
    ) -> Text:
        line = Text(self.indent)
        for number, (place, width) in enumerate(zip(places, widths, strict=True)):
            column, cell = self.columns[place], cells[place]
            room = " " * (width - cell_len(cell))
            line.append(_GAP if number else "")
            line.append(room if column.number else "")
            line.append(cell, "bold" if is_head else _style(column, cell))
            line.append("" if column.number else room)
        line.rstrip()
        return line

    def blocks(self, places: Sequence[int]) -> Iterator[Text]:
        """Yield a block for each row, with a line for each column; optional columns only where they say something."""
        room = max((cell_len(self.names[place]) for place in places), default=0)
        numbers = count(1)
        for group in self.groups:
            yield from _heading(group)
            for row in group.rows:
                yield Text(f"{self.indent}-- {next(numbers)} --")
                shown = (place for place in places if not self.columns[place].optional or row[place] not in _NOTHING)
                yield from (self._named(place, row[place], room) for place in shown)
            yield from map(Text, group.footer)

    def _named(self, place: int, cell: str, room: int) -> Text:
        name = self.names[place]
        line = Text(self.indent + _GAP + name + " " * (room - cell_len(name)) + _GAP)
        line.append(cell, _style(self.columns[place], cell))
        line.rstrip()
        return line


def _style(column: TextColumn, cell: str) -> str:
    return _STYLES.get(cell, "") if column.is_state else ""


def _heading(group: Group) -> Iterator[Text]:
    if group.heading:
        yield Text(harmless(group.heading), "bold")
