"""What a source file chooses between: the words and what they mean."""

from __future__ import annotations

from enum import StrEnum


class Deletes(StrEnum):
    """The effect of a delete on the row of the published table."""

    HARD = "hard"
    """The row goes."""
    SOFT = "soft"
    """The row stays, and is marked by ``_cdc_deleted``."""


class Files(StrEnum):
    """How the dump files of a source are written."""

    WHOLE = "whole"
    """A file is whole when it is first seen."""
    APPEND = "append"
    """A file is written to while it is read: a last line without its end waits for the next run."""


class Transactions(StrEnum):
    """Which events of the source's transactions are published."""

    WHOLE = "whole"
    """Whole transactions only, if the format marks their ends."""
    IGNORE = "ignore"
    """Every event, as soon as it has landed."""


class MaskAt(StrEnum):
    """Where masks of columns are applied."""

    TABLE = "table"
    """Where published rows are made. ``raw``, the change log and quarantine hold plain values."""
    LANDING = "landing"
    """Where events are made: the change log has masked values, and messages are kept encrypted."""


class Severity(StrEnum):
    """The effect of a failed check on the run."""

    BLOCK = "block"
    """Nothing of the cut is published."""
    WARN = "warn"
    """It is reported, and the cut is published."""


class OnFail(StrEnum):
    """The effect of a failed check on the run, or on the rows that fail it."""

    BLOCK = "block"
    """Nothing of the cut is published."""
    WARN = "warn"
    """It is reported, and the cut is published."""
    QUARANTINE = "quarantine"
    """A row that fails is not published; its event goes to quarantine, and so the row comes with its next event."""
    KEEP_LAST_GOOD = "keep_last_good"
    """As ``quarantine``, but the row stays published as its last event that passed left it."""


class Consequence(StrEnum):
    """What follows where a built-in check fails."""

    BLOCK = "block"
    """The cut is held back."""
    WARN = "warn"
    """It is reported, and the cut is published."""
    OFF = "off"
    """It is not looked for."""
