"""What the doctor found: one value for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    """Work can go on. A person should know it."""
    PROBLEM = "problem"
    """A command fails, or does what nobody wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    """The thing: ``java``, ``catalog``, ``source erp``."""
    found: str
    """What was found, and where."""
    do: str | None = None
    """What to do about it."""


def ok(what: str, found: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(level=Level.OK, what=what, found=found)


def warning(what: str, found: str, do: str) -> Finding:
    """Return a finding that a person should know."""
    return Finding(level=Level.WARNING, what=what, found=found, do=do)


def problem(what: str, found: str, do: str) -> Finding:
    """Return a finding that has to be mended."""
    return Finding(level=Level.PROBLEM, what=what, found=found, do=do)
