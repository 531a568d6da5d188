"""Pipes that nobody reads any more, as ``| head`` and ``| grep -q`` leave them.

A command that only shows something ends then, as other programs do. A command that works goes on to its own end.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

UNREAD = 141
"""Exit status of a program that a closed pipe ended, as shells tell it: 128 and the number of SIGPIPE."""


class _Patient(io.FileIO):
    """An open file that takes what nobody reads any more, and drops it."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401  whatever has a buffer
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


@contextmanager
def outlasting_readers() -> Iterator[None]:
    """Let standard output and error be written to, whether anybody reads them or not."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_patient, before)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _patient(stream: TextIO) -> TextIO:
    """Return a stream to the same open file that never ends a program; one without an open file as it is."""
    number = _number(stream)
    if number is None or not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = _Patient(number, "w", closefd=False)
    return io.TextIOWrapper(
        # Python writes without a buffer, too, where PYTHONUNBUFFERED asks for it.
        raw if stream.write_through else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def unread() -> list[int]:
    """Return the numbers of standard output and error, as far as they are pipes that nobody reads any more."""
    return [number for number in map(_number, (sys.stdout, sys.stderr)) if number is not None and _is_unread(number)]


def drop_unread() -> None:
    """Drop what is still to be written to such a pipe. Python would write it at its end, and fail."""
    for number in unread():
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _number(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _is_unread(number: int) -> bool:
    poll = select.poll()
    poll.register(number, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
