"""Opens a local dump file safely, and tells by what a dump file shows that it changed."""

from __future__ import annotations

import os
import stat

import pyarrow.fs as pafs

from tidemark.errors import UnopenedFileError

State = tuple[int | None, ...]
"""Size in bytes first, then times of the last change."""


def local_state(descriptor: int) -> State:
    """Return the state of an open local file."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def remote_state(filesystem: pafs.FileSystem, name: str) -> State:
    """Return the state of a file in a store."""
    return state_of(filesystem.get_file_info(name))


def state_of(info: pafs.FileInfo) -> State:
    """Return the state of a file that a store described."""
    return info.size, info.mtime_ns


def opened_descriptor(path: str, name: str) -> int:
    """Open a local file, without following a link.

    Raises:
        UnopenedFileError: it cannot be opened, or is not a regular file.
    """
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnopenedFileError(
            f"{path}: cannot be opened ({error.strerror}); links are not followed, give a readable regular file"
        ) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise UnopenedFileError(f"{path}: not a regular file; links, pipes, devices and folders are not landed")
