"""Where the rows of a subject are: events of the change log, messages of raw and of the quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyiceberg.expressions import AlwaysTrue

from tidemark.erasure import undecoded as undecoded_messages
from tidemark.erasure.subject import ErasedRow, Place, events_of
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import inputs, tasks
from tidemark.normalization.derivation import decoding_of
from tidemark.normalization.erased_keys import ErasedKeys, Erasure
from tidemark.queries.row_life_scan import LogRow
from tidemark.sources.model import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the rows of a subject were found."""

    events: frozenset[Place]
    """In the change log."""
    newer: int
    """Events of the key in the change log that the erasure does not cover, because they came after it."""
    messages: frozenset[tuple[str, int]]
    """Files and places of the messages in ``raw`` that have such events."""
    unread: Sequence[tuple[str, int]]
    """Messages in quarantine that could not be decoded, and whose text has the table's name and the key."""
    unsearched: Mapping[str, int] = field(default_factory=dict)
    """By file, how many messages could not be decoded, and do not show whether they have the key."""
    newest: int | None = None
    """The newest commit time of the events (epoch µs)."""

    @property
    def erasable(self) -> frozenset[tuple[str, int]]:
        """Files and places of all messages that were decoded, and have a row of the subject."""
        return self.messages | {(file, place) for file, place, _ in self.events}

    def taken(self, *, unread: bool) -> frozenset[tuple[str, int]]:
        """Return the messages that an erasure takes; ``unread``: also those that could not be decoded."""
        return self.erasable | (frozenset(self.unread) if unread else frozenset())


def search(
    lake: Lake, ledger: Ledger, source: Source, subject: ErasedRow, secret: bytes, erasures: tuple[Erasure, ...]
) -> Places:
    """Return where the rows are: by reading the change log, and by decoding every message of ``raw`` again.

    Args:
        lake: the lake.
        ledger: of the source.
        source: the source.
        subject: whose rows.
        secret: of the keyed hashes.
        erasures: of the subject; an event that none of them covers is not found.
    """

    def covers(row: LogRow) -> bool:
        return any(each.covers(row.committed_at, row.position) for each in erasures)

    events, newer = events_of(subject, covers)
    raw, log = lake.load(names.raw(source.source)), lake.load(names.change_log(source.source))
    read_from = lake.folder_of(raw, RAW)
    parts = list(inputs.parts(raw, AlwaysTrue()))
    decoding = replace(
        decoding_of(ledger, source, parts, read_from, log, ledger.files()),
        erased=ErasedKeys(secret=secret, erasures=erasures, declared=source.written()),
    )
    done = inputs.run(parts, partial(tasks.search, decoding=decoding, raw=read_from))
    undecoded = undecoded_messages.search(lake, subject, decoding.keys)
    decoded = {(file, place, row) for task in done for file, place, row in task.erased}
    times = [*events.values(), *(task.newest_erased for task in done)]
    return Places(
        events=frozenset(events.keys() | decoded),
        newer=newer,
        messages=frozenset((file, place) for file, place, _ in decoded),
        unread=undecoded.unread,
        unsearched=undecoded.unsearched,
        newest=max((at for at in times if at is not None), default=None),
    )


def dumps(places: Places) -> dict[str, list[int]]:
    """Return the dump files that hold the rows, and the places in them."""
    return by_file(places.taken(unread=True))


def by_file(messages: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return places by file."""
    found: dict[str, list[int]] = {}
    for file, place in sorted(messages):
        found.setdefault(file, []).append(place)
    return found
