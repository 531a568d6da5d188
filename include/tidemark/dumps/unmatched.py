"""Why a landing pattern matches no file: a part of its path that is not there, or only no file yet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from tidemark.dumps.landing_path import Pattern, parsed, part_of
from tidemark.dumps.stored_file import locate

_MOST_FOLDERS: Final = 1000
"""Folders that are looked into at each level."""

_VARIED: Final = re.compile(r"[*?%]")


class Unmatched(NamedTuple):
    """The first part of a pattern that matches nothing."""

    path: str
    """The part, in the folder that is there."""
    certain: bool
    """Whether the part has a fixed name and does not exist. A wildcard or a field of time may match later."""


def unmatched(pattern: str, *, landed: bool) -> Unmatched:
    """Return the first part of a pattern that matches nothing, of a pattern that matches no file.

    Args:
        pattern: a landing pattern.
        landed: whether files of it were landed before. Then a folder of an object store, which is there only as long as
            files are in it, and a folder below a field of time or a wildcard, may be gone.
    """
    found = parsed(pattern)
    missing = _missing(found.root)
    if missing is not None:
        return Unmatched(missing, certain=not landed or "://" not in missing)
    for path, name in _levels(found):
        if not any(True for _ in _folders_in(found.root, name)):
            return Unmatched(path, certain=not landed and not _VARIED.search(name.rpartition("/")[2]))
    alone = not _VARIED.search(found.rest) and "/" not in found.rest and "://" not in found.root
    return Unmatched(pattern, certain=alone and not landed and not (Path(found.root) / found.rest).exists())


def _missing(root: str) -> str | None:
    """Return the first part of a folder that does not exist; None if it does."""
    filesystem, name = locate(root)
    if filesystem is None:
        folder = Path(name).absolute()
        return next((str(part) for part in (*reversed(folder.parents), folder) if not part.is_dir()), None)
    names = name.strip("/").split("/")
    heads = ["/".join(names[: count + 1]) for count in range(len(names))]
    try:
        infos = filesystem.get_file_info(heads)
    except (OSError, pa.ArrowException):
        return None
    scheme = root.partition("://")[0]
    return next((f"{scheme}://{info.path}" for info in infos if info.type == pafs.FileType.NotFound), None)


def _levels(found: Pattern) -> Iterator[tuple[str, str]]:
    """Yield the folders of a pattern below its root: where each is, and the pattern down to it."""
    names = found.rest.split("/")[:-1]
    if "://" in found.root or "**" in names:
        return
    for count, name in enumerate(names):
        above = "/".join(names[:count])
        there = next(_folders_in(found.root, above), found.root) if above else found.root
        yield os.path.join(there, name), "/".join(names[: count + 1])  # noqa: PTH118  a pattern is no path


def _folders_in(root: str, name: str) -> Iterator[str]:
    """Yield folders that match a pattern below a local root."""
    regex, levels = part_of(name), name.count("/")
    folders = [Path(root)]
    for level in range(levels + 1):
        inner = (entry for folder in folders for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        folders = [Path(entry.path) for _, entry in zip(range(_MOST_FOLDERS), inner, strict=False)]
        if level == levels:
            yield from (str(folder) for folder in folders if regex.fullmatch(folder.relative_to(root).as_posix()))
