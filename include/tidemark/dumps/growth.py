"""A dump file that grew after it was landed: the messages that are new in it.

That the landed bytes are still the beginning of the file is known from their checksum. It does not follow that the file
holds the same messages as before and more behind them: a last line without its end may go on, and a text may now be
read as another container. So the beginning is read once more, as the file was then, and has to end with the message
that the whole file has at that place.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pyarrow as pa

from tidemark.dumps.containers import PARQUET, Inspection
from tidemark.errors import LandingError


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a dump file that was landed before."""

    size: int
    """In bytes."""
    checksum: str
    container: str
    messages: int


class Rest:
    """Takes all messages of a file that grew, and hands on those that are new."""

    def __init__(
        self, path: str, landed: Beginning, take: Callable[[pa.RecordBatch], None], inspect: Callable[..., Inspection]
    ) -> None:
        """Read the beginning of the file again.

        Args:
            path: of the file.
            landed: what was landed of it.
            take: takes the new messages.
            inspect: ``containers.inspect``, as the file is read.

        Raises:
            LandingError: the beginning does not read as it did when it was landed.
        """
        self._path, self._landed, self._take = path, landed, take
        self._passed = 0
        self._last: pa.RecordBatch | None = None
        self._agree = True
        if landed.container == PARQUET:
            raise self._refused("Parquet cannot grow, as its last bytes describe it")
        if landed.size:
            found = inspect(path, self._keep_last, sha256=landed.checksum, size=landed.size)
            if (found.container, found.messages) != (landed.container, landed.messages):
                raise self._refused("these are read as other messages now")

    def __call__(self, messages: pa.RecordBatch) -> None:
        """Take the next messages of the whole file."""
        old = max(0, min(self._landed.messages - self._passed, messages.num_rows))
        self._passed += messages.num_rows
        if old and self._passed - messages.num_rows + old == self._landed.messages:
            self._agree = self._last is not None and _content(messages.slice(old - 1, 1)) == _content(self._last)
        if old < messages.num_rows:
            self._take(messages.slice(old))

    def check(self, found: Inspection) -> None:
        """Check the whole file, when all its messages were taken.

        Raises:
            LandingError: the new bytes change how the beginning is read.
        """
        if self._landed.size and (found.container != self._landed.container or found.messages < self._landed.messages):
            raise self._refused("with what is new these are read as other messages")
        if not self._agree:
            raise self._refused("its last message, which had no line end, goes on")

    def _keep_last(self, messages: pa.RecordBatch) -> None:
        self._last = messages.slice(messages.num_rows - 1, 1)

    def _refused(self, why: str) -> LandingError:
        return LandingError(
            f"{self._path}: it grew, and its first {self._landed.size} bytes are those that were landed, but {why}: "
            "deliver what is new in another file"
        )


def _content(message: pa.RecordBatch) -> dict[str, object]:
    """Return the columns of a message; blanks behind its value do not matter, as they belong to its line end."""
    (found,) = message.to_pylist()
    return {**found, "value": found["value"] and found["value"].rstrip()}
