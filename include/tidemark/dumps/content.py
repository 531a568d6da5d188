"""What a dump file holds, and the faults of its reader that nobody foresaw: such a file is refused alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec

import pyarrow as pa

from tidemark.dumps.stored_file import StoredFile
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import LandingError, TidemarkError
from tidemark.text import first_line


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpContent:
    """What a dump file holds, judged by its beginning; ``container`` is as in ``Inspection``."""

    container: str
    wrapping: Wrapping
    batches: Iterator[pa.RecordBatch]

    @property
    def kafka(self) -> bool:
        """Whether the messages are wrapped as Kafka records."""
        return self.wrapping is not Wrapping.PLAIN


_Arguments = ParamSpec("_Arguments")


def guarded(
    read: Callable[Concatenate[StoredFile, _Arguments], DumpContent],
) -> Callable[Concatenate[StoredFile, _Arguments], DumpContent]:
    """Return the function that opens a file, so that it and its batches raise a ``LandingError`` for whatever fails.

    What the caller does with a batch is not covered: a store that cannot be written is no fault of the file.
    """

    @functools.wraps(read)
    def opened(stored: StoredFile, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> DumpContent:
        with _refusing(stored.path):
            content = read(stored, *args, **kwargs)
        return replace(content, batches=_batches(stored.path, content.batches))

    return opened


def _batches(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with _refusing(path):
        yield from batches


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except (TidemarkError, MemoryError):
        raise
    except Exception as error:  # a hostile file may make a reader raise anything
        raise LandingError(
            f"{path}: cannot be read, for a reason that its reader does not know ({type(error).__name__}: "
            f"{first_line(error)[:200]}); fetch the file again, or write it anew"
        ) from error
