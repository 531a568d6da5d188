"""What is in a local folder and in those under it; links are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def in_folders(root: Path, deepest: int | None) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder and in those under it, and is no folder; ``deepest`` is 1 for the folder alone."""
    folders = [(str(root), 1)]
    while folders:
        folder, depth = folders.pop()
        for entry in _entries(folder):
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif deepest is None or depth < deepest:
                folders.append((entry.path, depth + 1))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def status_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return size and times of what a folder holds; None if it has gone meanwhile."""
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
