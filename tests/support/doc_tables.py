"""Tables of the format pages, read back so that tests can hold the code to what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs" / "formats"


def table(format_: str, first: str) -> list[list[str]]:
    """Return the rows of the table of ``docs/formats/<format_>.md`` whose first column is headed ``first``.

    Cells are without blanks and backticks at their ends.
    """
    lines = (_DOCS / f"{format_}.md").read_text().splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"| {first} |")]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


def listed(cell: str) -> list[str]:
    """Return the names of a cell that lists them; a comma in brackets is part of a name."""
    return re.split(r", (?![^(]*\))", cell)
