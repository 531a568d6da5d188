"""What a person does where the log of a source began anew: the line of the source file, and the command."""

from __future__ import annotations

from datetime import datetime

from tidemark.sources.model import Source

_DAYS, _MONTHS = frozenset("djHMS"), frozenset("m")
"""``strftime`` letters of a landing path that give the day, or the month (``sources.fields.LANDING_FIELDS``)."""


def line_and_command(source: Source, began: datetime) -> str:
    """Return what to write and to run, for a new log that began at a moment; moments that are there already stay."""
    line = ", ".join(map(written, sorted({*source.log_restarts, began})))
    command = f"`log_restarts: [{line}]` into the source file and run `tidemark run {source.source} --reprocess`"
    since = _interval(source, began)
    return command if since is None else f"{command} (`--start {since}` leaves out the files of earlier intervals)"


def written(at: datetime) -> str:
    """Return a moment as a source file has it."""
    return at.isoformat().replace("+00:00", "Z")


def _interval(source: Source, began: datetime) -> str | None:
    """Return the start of the day, month or year that files of a moment are in; None if their paths have no time."""
    letters = {part[0] for part in source.landing.split("%")[1:] if part}
    if not letters:
        return None
    start = began.astimezone(source.zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if not letters & _DAYS:
        start = start.replace(day=1) if letters & _MONTHS else start.replace(month=1, day=1)
    return written(start.astimezone(began.tzinfo)).removesuffix("T00:00:00Z")
