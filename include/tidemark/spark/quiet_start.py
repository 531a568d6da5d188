"""A start of Spark's JVM without the lines that it always prints. They say nothing about the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_BANNER = (
    b"WARNING: Using incubator modules: ",
    b"Setting default log level to ",
    b"To adjust logging level use sc.setLogLevel(",
)


@contextmanager
def without_banner() -> Iterator[None]:
    """Pass on what a JVM writes to standard error, as long as it lives, but for the lines of the banner.

    The JVM must be started within the context. It inherits standard error, so standard error is a pipe meanwhile.
    """
    sys.stderr.flush()
    before = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    Thread(target=_pass_on, args=(reader, os.dup(before)), name="stderr-of-the-jvm", daemon=True).start()
    try:
        yield
    finally:
        with suppress(ValueError):  # a standard error that was replaced and closed
            sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _pass_on(reader: int, target: int) -> None:
    with open(reader, "rb") as lines, open(target, "wb", buffering=0) as out:
        for line in lines:
            if line.startswith(_BANNER):
                continue
            with suppress(OSError):
                out.write(line)
