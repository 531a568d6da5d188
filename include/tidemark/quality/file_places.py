"""Places of changes in files: where the names of files order changes, because nothing else does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tidemark.ledger.order_rows import SpanRow

_IN_A_FILE: Final = re.compile(r"\d+\.010\.\d+\.~(?:[^.]*%2F)?")
"""Begins the position of a change that its place in a file orders (``Message.order``): log, interval, folder."""


def folder_of(position: str) -> str | None:
    """Return the folder of a place in a file, with its log and interval; None for any other position."""
    found = _IN_A_FILE.match(position)
    return found[0] if found else None


def folders_of(spans: Iterable[SpanRow]) -> set[str | None]:
    """Return the folders of the first and the last file of each span."""
    return {folder_of(end) for span in spans for end in _ends(span)}


def highest_beside(before: Sequence[SpanRow], now: Sequence[SpanRow], folders: set[str | None]) -> str | None:
    """Return the highest known place of old changes of a table that new ones are compared with.

    A folder that had files before is compared with itself: a folder for each partition or server is filled beside the
    others. A new one is compared with all.

    Args:
        before: of old changes.
        now: of new ones.
        folders: those of old changes of all tables.
    """
    found = {end for span in before for end in _ends(span)}
    folder = folder_of(max(span.newest for span in now))
    beside = {end for end in found if folder_of(end) == folder} if folder in folders else found
    return max(beside, default=None)


def _ends(span: SpanRow) -> tuple[str, str]:
    return span.oldest or span.newest, span.newest
