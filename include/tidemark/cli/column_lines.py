"""The columns of a table in a source file that ``tidemark init`` writes: types, encodings, and what was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tidemark.cli.guesses import Guess
from tidemark.text import printable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")

_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

_SHOWN = 60
"""Most characters of an example."""


def column_lines(
    columns: Mapping[str, str | None], guesses: Mapping[str, Guess], *, take_guesses: bool
) -> Iterator[str]:
    """Yield ``columns`` and ``encodings`` of a table, as comments; with ``take_guesses`` what is guessed is given.

    Args:
        columns: column -> type that the messages declare; None if they declare none.
        guesses: column without a type -> how its values can be read.
        take_guesses: whether guesses are given.
    """
    if not columns:
        return
    given = take_guesses and any(map(_is_taken, guesses.values()))
    mark = "" if given else "# "
    why = "from values, where the messages give no types" if guesses else "types of the messages"
    yield f"{mark}columns:                     # {why}; a type that is written here takes precedence"
    for name, kind in columns.items():
        if kind is not None:
            yield f"#   {scalar(name)}: {scalar(kind)}"
            continue
        found = guesses[name]
        line = f"  {scalar(name)}: {scalar(found.type)}  # {_seen(found)}"
        yield line if given and _is_taken(found) else f"# {line}"
    written = {name: found.encoding for name, found in guesses.items() if found.encoding is not None}
    if written:
        yield f"{mark}encodings:                   # how these values are written: docs/types.md"
        yield from (f"{mark}  {scalar(name)}: {encoding}" for name, encoding in written.items())


def _is_taken(found: Guess) -> bool:
    """Return whether a guess says more than what a run makes of the values by itself."""
    return bool(found.example and found.assumed)


def _seen(found: Guess) -> str:
    if not found.example:
        return "the sample has no value of it"
    example = _printable(found.example) + (f" reads {_printable(found.read_as)}" if found.read_as else "")
    return f"a guess: {found.assumed}; {example}" if found.assumed else f"as {example}; the values decide"


def _printable(text: str) -> str:
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...")


def scalar(text: str) -> str:
    """Return a text as a YAML scalar of one line, which YAML reads back unchanged, whatever is in it."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
