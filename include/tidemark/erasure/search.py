"""Where the rows of a subject are: events of the change log, messages of raw and of the quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from pyiceberg.expressions import AlwaysTrue, And

from tidemark.erasure import copies
from tidemark.erasure import undecoded as undecoded_messages
from tidemark.erasure.copies import InCopies
from tidemark.erasure.subject import ErasedRow, Place, events_of
from tidemark.lake import names
from tidemark.lake.filters import among, unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import inputs, tasks
from tidemark.normalization.derivation import decoding_of
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, ErasedKeys, Erasure
from tidemark.queries.row_life_scan import LogRow
from tidemark.sources.model import Source
from tidemark.values.sealing import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the rows of a subject were found."""

    events: frozenset[Place]
    """In the change log."""
    newer: int
    """Events of the key in the change log that the erasure does not cover, because they came after it."""
    messages: frozenset[tuple[str, int]]
    """Files and places of the messages in ``raw`` that have such events, but for those in ``retriable``."""
    unread: Sequence[tuple[str, int]]
    """Messages in quarantine that could not be decoded, and whose text has the table's name and the key."""
    retriable: frozenset[tuple[str, int]] = frozenset()
    """Messages that stand undecoded in quarantine, can be decoded now, and have such events.

    No erasure takes them: what else is in them is in no change log. A retry leaves the events out, and keeps the rest.
    """
    unsearched: Mapping[str, int] = field(default_factory=dict)
    """By file, how many messages could not be decoded, and do not show whether they have the key."""
    newest: int | None = None
    """The newest commit time of the events (epoch µs)."""
    in_copies: InCopies = field(default_factory=InCopies)
    """What the change log has under the names of tables that tools made of the row's table."""

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
    own = copies.apart(erasures, subject.names)

    def covers(row: LogRow) -> bool:
        return any(each.covers(row.committed_at, row.position) for each in own)

    events, newer = events_of(subject, covers)
    published = subject.in_published_copies(secret, EVER, EVERYWHERE)
    keys = ErasedKeys(secret=secret, erasures=(*erasures, *published), declared=source.written())
    in_copies = copies.search(lake, ledger, source.source, subject.copies, keys)
    decoded = decode(lake, ledger, source, ErasedKeys(secret=secret, erasures=erasures, declared=source.written()))
    undecoded = undecoded_messages.search(lake, subject, decoded.keys)
    times = [*events.values(), *in_copies.events.values(), decoded.newest]
    return Places(
        events=frozenset(events.keys() | in_copies.events.keys() | decoded.events),
        newer=newer + in_copies.newer,
        in_copies=in_copies,
        messages=frozenset((file, place) for file, place, _ in decoded.events),
        unread=[each for each in undecoded.unread if each not in decoded.retriable],
        retriable=decoded.retriable,
        unsearched=undecoded.unsearched,
        newest=max((at for at in times if at is not None), default=None),
    )


class Decoded(NamedTuple):
    """What the messages of ``raw`` show as they are decoded now."""

    events: frozenset[Place]
    """Those of erased rows, but for messages that stand undecoded in quarantine."""
    retriable: frozenset[tuple[str, int]]
    """Files and places of messages that stand undecoded in quarantine, and have such events."""
    newest: int | None
    """The newest commit time of the events (epoch µs)."""
    keys: Keys | None
    """By which messages are encrypted."""


def decode(lake: Lake, ledger: Ledger, source: Source, erased: ErasedKeys) -> Decoded:
    """Return where the events of erased rows are, by decoding every message of ``raw`` again."""
    raw, log = lake.load(names.raw(source.source)), lake.load(names.change_log(source.source))
    read_from = lake.folder_of(raw, RAW)
    parts = list(inputs.parts(raw, AlwaysTrue()))
    decoding = replace(decoding_of(ledger, source, parts, read_from, log, ledger.files()), erased=erased)
    done = inputs.run(parts, partial(tasks.search, decoding=decoding, raw=read_from))
    found = {(file, place, row) for task in done for file, place, row in task.erased}
    retriable = _quarantined(lake, source.source, {(file, place) for file, place, _ in found})
    return Decoded(
        events=frozenset((file, place, row) for file, place, row in found if (file, place) not in retriable),
        retriable=retriable,
        newest=max((task.newest_erased for task in done if task.newest_erased is not None), default=None),
        keys=decoding.keys,
    )


def _quarantined(lake: Lake, source: str, messages: AbstractSet[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    """Return those of some messages that stand undecoded in quarantine."""
    quarantine = lake.find(names.quarantine(source))
    if quarantine is None or not messages:
        return frozenset()
    where = And(unset("object"), among("file", {file for file, _ in messages}))
    rows = quarantine.scan(row_filter=where, selected_fields=("file", "place")).to_arrow()
    standing = zip(rows.column("file").to_pylist(), rows.column("place").to_pylist(), strict=True)
    return frozenset(messages & set(standing))


def dumps(places: Places) -> dict[str, list[int]]:
    """Return the dump files that hold the rows, and the places in them."""
    return by_file(places.taken(unread=True) | places.retriable)


def by_file(messages: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return places by file."""
    found: dict[str, list[int]] = {}
    for file, place in sorted(messages):
        found.setdefault(file, []).append(place)
    return found
