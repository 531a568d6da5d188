"""The Python API: what ``tidemark run`` and ``tidemark decode`` do, for programs.

    import tidemark

    for event in tidemark.decode("canal_json", "dumps/a.jsonl"):
        print(event["operation"], event["after"])

    reports = tidemark.run("erp", start="2026-01-01", end="2026-01-02")

Errors are of the classes in ``tidemark.errors``. The class says what to do about the error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.sources.files import find_source, load_source
from tidemark.sources.model import Source
from tidemark.values.iso8601 import interval_between

if TYPE_CHECKING:
    from tidemark.stages import StageReport

__all__ = ["Source", "decode", "run"]

Moment = str | date | None
"""A time: ISO 8601, a date or a datetime; UTC unless it has a zone. None: no bound."""


def run(
    source: str | Path | Source, start: Moment = None, end: Moment = None, *, reprocess: bool = False
) -> list[StageReport]:
    """Run all five stages for the interval ``[start, end)``, in this process, and return their reports.

    Without bounds, all that has not landed. If a check fails, its report is the last one, and nothing is published. A
    report's ``problems`` say what was held back: without any, ``tidemark run`` would end with status 0.

    Args:
        source: name of a source, path of a source file, or a ``Source``.
        start: start of the interval.
        end: first moment after the interval.
        reprocess: also decode again what landed in the interval before.

    Raises:
        ConfigurationError: the source, the interval or the environment is wrong.
        TidemarkError: as the stages.
    """
    from tidemark.ledger import writing  # noqa: PLC0415 - decode needs neither the lake nor Spark
    from tidemark.pipeline import turns  # noqa: PLC0415
    from tidemark.stages import STAGES  # noqa: PLC0415

    found, bounds = _source(source), interval_between(start, end)
    with writing.hold(found.source):
        return [turn.run() for turn in turns(STAGES, found, *bounds, options={"normalize": {"reprocess": reprocess}})]


def decode(
    format_name: str, *files: str | Path, options: Mapping[str, object] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the canonical events of dump files in the order of the dump, without Spark.

    Each is the object that ``tidemark decode`` prints as a line. Numbers beyond 64 bits and decimals are text, bytes
    are Base64, times are ISO 8601. A message that cannot be decoded is ``{"quarantined": {"reason": ..., ...}}``.

    Args:
        format_name: as ``canal_json``.
        files: dump files, in order.
        options: of the format.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: an option is unknown or wrong.
        LandingError: a file cannot be read to its end; ``UnopenedFileError``, one of these: it is not there.
    """
    from tidemark.normalization.decoding import decode_files  # noqa: PLC0415 - run alone does not need it

    for line in decode_files(format_name, [str(file) for file in files], options or {}):
        yield json.loads(line)


def _source(source: str | Path | Source) -> Source:
    if isinstance(source, Source):
        return source
    return load_source(source) if isinstance(source, Path) else find_source(source)
