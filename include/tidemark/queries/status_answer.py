"""The answer of ``tidemark status`` for one source. The reference page of JSON output is made from these texts."""

from __future__ import annotations

from typing import TypedDict


class NewestCut(TypedDict):
    """The newest cut."""

    number: int
    state: str
    """``published``, ``held`` or ``failed``; ``candidate``: it is not checked yet."""


class LogState(TypedDict):
    """The log that the newest events are in, after the source's log began anew or a table was loaded anew."""

    number: int
    """2 or more: 1, and one more for each moment of ``log_restarts`` and ``reloads`` that events have reached."""
    since: str | None
    """The moment that opened it, in commit time; null: the source file does not list it any more."""
    opened_by: str | None
    """``log_restarts`` or ``reloads``: where the source file lists that moment."""


class MessageCounts(TypedDict):
    """Messages of all batches: ``landed`` equals the sum of the others."""

    landed: int
    """Messages in the dump files."""
    decoded: int
    """Read as change events or schema changes."""
    control: int
    """Heartbeats, ends of transactions and the like: they hold no change."""
    quarantined: int
    """Set aside, as they could not be read."""


class MissingEvents(TypedDict):
    """Events of a transaction that have not landed."""

    collection: str | None
    """As the end of the transaction names it; null: the messages do not say whose events they are."""
    landed: int
    """How many landed."""
    counted: int | None
    """How many there are; null if no message says so."""


class OpenTransactionAnswer(TypedDict):
    """A transaction whose end, or one of whose events, has not landed."""

    id: str
    since: str
    """When its first event was normalized."""
    committed_at: str | None
    """Commit time of its earliest event."""
    events: int
    """Events that are held."""
    tables: dict[str, int]
    """Table to its held events."""
    ended: bool
    """Whether its end has landed."""
    missing: list[MissingEvents]
    """What has not landed, as far as the messages show."""
    why: str
    """The same as a sentence."""


class SourceTransactions(TypedDict):
    """Transactions of the source, where its format marks them."""

    open: list[OpenTransactionAnswer]
    """The oldest first."""
    given_up: int
    """How many were published although they were open (`transactions: ignore`)."""
    rolled_back: int
    """How many were undone."""
    not_awaited: dict[str, str | None]
    """Collections that ends of transactions count and that never landed, to the commit time of the newest such end."""


class TableStatus(TypedDict):
    """A table. Counts of events are totals over its published cuts and the newest cut; each event is counted once."""

    object: str
    """The table as the source names it."""
    state: str
    """``published``; ``candidate``: its newest cut is not published; ``unmoved``: all its new events are held;
    ``waiting`` or ``stopped``, both with a reason."""
    reason: str | None
    """Why it waits or is stopped."""
    verdict: str | None
    """``passed``, ``warned``, ``failed``, ``held`` or ``approved``; null: not checked."""
    rows: int | None
    """Rows after its newest cut."""
    rows_before: int | None
    """Rows before it."""
    deleted: int | None
    """Rows that its newest cut deletes."""
    committed_at: str | None
    """When the source committed the newest published event; null where the format does not say."""
    lag_seconds: int | None
    """Seconds since then."""
    events: int
    """Events in the change log."""
    applied: int
    """They changed a row."""
    superseded: int
    """A newer event, a TRUNCATE or a rollback left nothing of them."""
    duplicate: int
    """Further copies of an event."""
    held: int
    """They wait for the end of their transaction, or for their table."""
    quarantined: int
    """Set aside, as a value, a key or an image could not be taken in."""
    erased: int
    """Their row was erased."""
    closes: bool
    """Whether ``events`` is the sum of the six others."""
    reconciled: str | None
    """How the table last compared with the source database; null: never."""
    verified_through: str | None
    """Up to this commit time the table is known to be right."""
    verified_place: str | None
    """The same as a place in the log of the source."""
    feed: str | None
    """Name of its feed; null without one."""
    log: LogState | None
    """Null while it is in the first log."""


class Status(TypedDict):
    """A source. Times are ISO 8601, UTC."""

    source: str
    cut: NewestCut | None
    """Null before the first."""
    published_cut: int | None
    """Number of the newest published cut."""
    published_at: str | None
    """When it was published."""
    lag_seconds: int | None
    """Seconds since then."""
    log: LogState | None
    """The log of the source, which ``log_restarts`` alone counts; null while it is the first one."""
    messages: MessageCounts
    closes: bool
    """Whether ``landed`` is the sum of ``decoded``, ``control`` and ``quarantined``."""
    refused: dict[str, str]
    """Path of a refused file to the reason."""
    disorders: dict[str, str]
    """Tables whose files were in disorder in a run of the last seven days."""
    ddl_not_followed: dict[str, list[str]]
    """Table to notes about statements that were not followed."""
    rename_signs: dict[str, str]
    """Tables that may be other tables under a new name, although no message says so."""
    transactions: SourceTransactions
    tables: dict[str, TableStatus]
    """By published name, or by the source's name where a table was never published."""
