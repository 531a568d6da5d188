"""Removes old results of Great Expectations, each with its page: whoever writes the index lists all that there are.

A result is a file ``<table>/<run>/<time of the run>/<snapshot>.json``; dots in the name of a table make folders. The
ledger keeps what was found (``ledger.checks``), for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def remove(results: Path, pages: Path, tables: Iterable[str], *, keep: int) -> None:
    """Remove the results of tables but for the newest.

    Args:
        results: folder of the results.
        pages: folder of their pages, which have the same places.
        tables: names of tables, as they are in paths.
        keep: how many results of each table stay.
    """
    for table in tables:
        # A table with a longer name has its files further down.
        found = results.joinpath(*table.split(".")).glob("*/*/*.json")
        for result in sorted(found, key=lambda path: path.parent.name, reverse=True)[keep:]:
            _remove(pages / result.relative_to(results).with_suffix(".html"))
            _remove(result)


def _remove(file: Path) -> None:
    """Remove a file, and the folders of its run if nothing else is in them."""
    file.unlink(missing_ok=True)
    with suppress(OSError):
        file.parent.rmdir()
        file.parent.parent.rmdir()
