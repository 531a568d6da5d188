"""Printing for the command line: results on standard output, remarks on standard error."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tidemark.cli.layout import Group, TextColumn, folded, laid_out
from tidemark.text import harmless_lines


def tell(text: str) -> None:
    """Print to standard error: everything that is not a result. A terminal's lines are broken between words."""
    room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    lines = [part for line in harmless_lines(text).split("\n") for part in folded(line, room)]
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print("\n".join(lines))


def width() -> int | None:
    """Return the width of the terminal that standard output is; None if it is none, and lines have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_lines(lines: Sequence[Text]) -> None:
    """Print lines as they are: the terminal breaks those that are too long. Only a terminal gets colours."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:  # many rows are written much faster without styles
        sys.stdout.writelines(f"{line.plain}\n" for line in lines)
        return
    for line in lines:
        console.print(line)


def print_groups(
    columns: Sequence[TextColumn],
    groups: Sequence[Group],
    *,
    vertical: bool | None = None,
    indented: bool = False,
    see_all: str = "",
) -> None:
    """Print groups of rows for the width of the terminal.

    Args:
        columns: as ``layout.laid_out``.
        groups: likewise.
        vertical: likewise.
        indented: likewise.
        see_all: the option that shows the columns that are left out, such as ``--all``. With it, columns that are zero
            are named too.
    """
    found = laid_out(columns, groups, width(), vertical=vertical, indented=indented)
    print_lines(found.lines)
    if found.zero and see_all:
        tell(f"not shown, as they are 0 or empty in all rows: {', '.join(found.zero)} ({see_all} shows them)")
    if found.spared:
        how = f"; {see_all} shows them" if see_all else ""
        tell(f"not shown, as the terminal is too narrow: {', '.join(found.spared)}{how}")


def print_words(head: str, words: Sequence[str]) -> None:
    """Print words in a line behind ``head``; on a terminal a line is broken only between words."""
    most = width()
    line = head
    for word in words:
        if most is not None and len(line) + 1 + len(word) > most and line.strip():
            print_lines([Text(line)])
            line = "   "
        line = f"{line} {word}"
    print_lines([Text(line)])
