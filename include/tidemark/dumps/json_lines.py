"""The lines of a text, one message each. Blank lines are not messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidemark.dumps.beyond_limit import TooLong, within
from tidemark.dumps.json_text import is_valid
from tidemark.errors import LandingError

Group = tuple[Sequence[int], list[bytes]]
"""Places and values of consecutive messages."""


def groups(
    chunks: Iterator[bytes], path: str, limit: int, is_whole: Callable[[bytes], bool] = is_valid
) -> Iterator[Group]:
    """Yield the lines of a text with their numbers. Of a line that is too long, ``beyond_limit`` says what is yielded.

    Args:
        chunks: of the text.
        path: of the file.
        limit: most bytes of one message.
        is_whole: whether a last line without its end is a whole message.

    Raises:
        LandingError: the file ends inside a message.
    """
    pending: list[bytes] = []
    long: TooLong | None = None
    """The line that began in earlier chunks, if it is too long."""
    number = 1
    for chunk in chunks:
        if long is not None:
            rest, ended, chunk = chunk.partition(b"\n")  # noqa: PLW2901
            long.add(rest)
            if not ended:
                continue
            yield (number,), [long.kept_line()]
            number, long = number + 1, None
        end = chunk.rfind(b"\n")
        if end >= 0:
            lines = _split_lines(b"".join((*pending, chunk[: end + 1])))
            pending = []
            if len(chunk) > limit or len(lines[0]) > limit:
                lines = [within(line, limit) for line in lines]
            yield _without_blanks(lines, number)
            number += len(lines)
        pending.append(chunk[end + 1 :])
        if sum(map(len, pending)) > limit:
            long = TooLong(limit)
            for piece in pending:
                long.add(piece)
            pending = []
    if long is not None or b"".join(pending).strip():
        yield (number,), [_last_line(b"".join(pending), long, is_whole, f"{path}: line {number}")]


def _last_line(text: bytes, long: TooLong | None, is_whole: Callable[[bytes], bool], where: str) -> bytes:
    """Return the last line, which has no line end; it has to be a whole message."""
    if long is None and is_whole(text):
        return text
    if long is not None and long.last in {b"}", b"]"}:
        return long.kept_line()
    raise LandingError(f"{where}: the file ends inside a message (no line end, not a whole one); fetch the file again")


def _split_lines(text: bytes) -> list[bytes]:
    # A search for one byte is twenty times faster than a search for two.
    lines = (text.replace(b"\r\n", b"\n") if b"\r" in text else text).split(b"\n")
    lines.pop()
    return lines


def _without_blanks(lines: list[bytes], number: int) -> Group:
    values = [line for line in lines if line and not line.isspace()]
    if len(values) == len(lines):
        return range(number, number + len(lines)), values
    return [place for place, line in enumerate(lines, number) if line and not line.isspace()], values
