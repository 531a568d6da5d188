"""What land and ``tidemark plan`` remark of dump files, each fact in a sentence with its number and the first path."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.queries.pending_files import Pending
from tidemark.text import counted


def of_pending(files: Pending) -> Iterator[str]:
    """Yield what is remarked of files that match and that the run does not take."""
    if files.untimed:
        yield (
            f"not taken, as the path names a time that does not exist: {counted(len(files.untimed), 'file')} (first: "
            f"{files.untimed[0]}); hours are 00 to 23"
        )
