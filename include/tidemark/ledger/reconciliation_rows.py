"""The rows of the ledger that say how the lake compared with the source database."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from tidemark.ledger.rows import LedgerRow


class Result(StrEnum):
    """How a published table compared with its table at the source."""

    EQUAL = "equal"
    BEHIND = "behind"
    """It lacks changes that had not been published; nothing else differs."""
    DIFFERS = "differs"
    NOT_COMPARED = "not_compared"
    """``reason`` says why. The numbers of rows may be known."""


class Class(StrEnum):
    """Why a key differs."""

    BEHIND = "behind"
    """A change of it has landed and is not published, or the source is further than what has landed."""
    LOST = "lost"
    """The source has it and the lake does not."""
    EXTRA = "extra"
    """The lake has it and the source does not."""
    DIFFERENT = "different"
    """Both have it, and a column differs."""


class DifferingKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key that differs: what the ledger keeps of it, as JSON. No value outside the key is in it."""

    why: Class
    kind: Class
    """What the two tables show: ``lost``, ``extra`` or ``different``, whatever the reason."""
    key: dict[str, str]
    """Key column -> its value as text, as ``tidemark explain`` takes it; bytes as Base64."""
    columns: list[str] = []
    """Of some keys that are different: the columns that differ."""
    pending: bool = False
    """Whether a change of it has landed and is not published."""


class ReconciliationRow(LedgerRow, frozen=True, kw_only=True):
    """How one published table compared with the source database in one run of ``tidemark reconcile``.

    The report shows: ``object``, ``target``, ``result``, ``reason``, ``source_rows``, ``lake_rows``, the four counts,
    ``keys``, ``verified_through``, and ``written_at``, the time of the comparison. The newest row of an ``object`` is
    the row of the highest ``run``; fifty runs of a source are kept.
    """

    TABLE = "reconciliations"
    run: int
    """Number of the run, from 1 within the source. A run may compare some of the tables only."""
    object: str
    """The table as the source names it."""
    target: str
    """The published table."""
    result: str
    """A ``Result``."""
    reason: str | None = None
    cut: int
    """The cut that published what was compared."""
    batch: int
    """The last batch that it holds."""
    source_rows: int | None = None
    lake_rows: int | None = None
    """Without rows that soft deletes mark."""
    columns: int = 0
    """How many columns were compared."""
    left_out: str = "{}"
    """Column -> why it was not compared (JSON)."""
    behind: int = 0
    """How many keys differ for this reason (``Class``); without a key, how many rows. So are the next three."""
    lost: int = 0
    extra: int = 0
    different: int = 0
    keys: str = "[]"
    """Up to five hundred of the keys (JSON, ``DifferingKey``), those that are behind last."""
    read_at: datetime | None = None
    """When the source was read, by its own clock."""
    place: str | None = None
    """Place in the source's log by then, as the source writes it; None if it gives none."""
    sequence: str = "[]"
    """The same as numbers that rise (JSON)."""
    shown_through: datetime | None = None
    """All that the source had committed up to then was read; None if a copy that does not tell was read."""
    verified_through: datetime | None = None
    """Everything that the source committed up to this time of its clock is known to be right in the lake."""
    verified_place: str | None = None
    """The same as a place in the source's log."""
    written_at: datetime | None = None

    @property
    def differing(self) -> list[DifferingKey]:
        """The keys that are kept."""
        return msgspec.json.decode(self.keys, type=list[DifferingKey])

    @property
    def differing_count(self) -> int:
        """How many keys differ, kept or not."""
        return self.behind + self.lost + self.extra + self.different

    @property
    def places(self) -> tuple[int, ...]:
        """The place in the source's log as numbers; empty if the source gives none."""
        return msgspec.json.decode(self.sequence, type=tuple[int, ...])
