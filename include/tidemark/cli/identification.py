"""``tidemark identify``: what a dump file is, and the first lines of a source file for it. It needs no Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tidemark.cli.landing_pattern import ending_of
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import ConfigurationError, LandingError
from tidemark.normalization.identifying import Identified, identify
from tidemark.text import listed, printable

_CONTAINERS = {
    "json_lines": "JSON lines",
    "json_array": "a JSON array",
    "json_values": "JSON values one after another",
    "csv": "CSV",
    "console": "lines",
    "parquet": "Parquet",
    "avro": "Avro",
}


_WRAPPINGS = {
    Wrapping.PLAIN: "",
    Wrapping.KAFKA: " of Kafka records",
    Wrapping.KCAT: " of Kafka records, as kcat writes them",
    Wrapping.CONSOLE: " of Kafka records, as the console consumer writes them",
}


def described(path: str, found: Identified) -> list[str]:
    """Return lines that say what a file is, with the first lines of a source file for it where its format is known.

    All lines together are YAML: what is not of the source file is a comment.
    """
    container = _CONTAINERS[found.container] + _WRAPPINGS[found.wrapping]
    return [f"# {_shown(path)}: {container}", *(_source_lines(path, found) if found.readings else _unknown(found))]


def _source_lines(path: str, found: Identified) -> Iterator[str]:
    best, *others = found.readings
    yield (
        f"# {best.format} reads {best.events} of the first {found.messages} messages as changes"
        + (f" of {_shown(listed(best.tables, 3))}" if best.tables else "")
        + (f", {best.control} as control events" if best.control else "")
    )
    if best.lacking:
        yield f"# {best.lacking} messages need more: {_shown(best.reason or '')}"
    if equal := [each.format for each in others if each.rank == best.rank]:
        yield f"# {' and '.join(equal)} read as many: choose by the tool that wrote the file"
    place = PurePosixPath(path)
    yield f"source: {_name(place)}"
    yield f"format: {best.format}"
    yield "options: {}"
    yield f"landing: {_quoted(str(place.parent / f'*{ending_of(place)}'))}"
    yield ""


def _unknown(found: Identified) -> Iterator[str]:
    yield f"# no format reads a change in the first {found.messages} messages"
    if found.nearest is not None and found.nearest.control:
        yield f"# {found.nearest.format} reads {found.nearest.control} of them as control events"


def _name(place: PurePosixPath) -> str:
    word = re.sub(r"[^a-z0-9]+", "_", place.name.lower().partition(".")[0]).strip("_")
    return word if word[:1].isalpha() else "my_source"


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar of one line; a percent sign of a landing path is written twice."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{printable(escaped)}"'


def _shown(text: str) -> str:
    return printable(text[:400])


def format_of(samples: Sequence[str]) -> tuple[str, list[str]]:
    """Return the format that a sample is in, and others that read as much of it.

    Raises:
        ConfigurationError: there is no sample.
        LandingError: no format reads a change in it, or it cannot be read.
    """
    if not samples:
        raise ConfigurationError("name the format (`--format`, see `tidemark formats`), or a sample to tell it from")
    found = identify(samples[0])
    if not found.readings:
        raise LandingError("\n".join(line.removeprefix("# ") for line in described(samples[0], found)))
    best, *others = found.readings
    return best.format, [each.format for each in others if each.rank == best.rank]


def hint(format_name: str, paths: Sequence[str]) -> str | None:
    """Return a hint if dump files in which ``format_name`` reads no change look like another format; else None."""
    for path in paths:
        try:
            found = identify(path)
        except LandingError:
            continue
        if found.readings and found.readings[0].format != format_name:
            best = found.readings[0]
            return (
                f"{format_name} reads no change in these files. {_shown(path)} looks like {best.format}, which knows "
                f"{best.events + best.lacking} of its first {found.messages} messages: `tidemark decode {best.format}`"
            )
    return None
