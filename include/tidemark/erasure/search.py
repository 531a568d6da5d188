"""Where the rows of a subject are: events of the change log, messages of raw and of the quarantine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue

from tidemark.erasure.subject import ErasedRow, Place, events_of
from tidemark.lake import names
from tidemark.lake.filters import unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE, RAW
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import inputs, tasks
from tidemark.normalization.derivation import decoding_of
from tidemark.normalization.erased_keys import ErasedKeys, Erasure
from tidemark.normalization.parts import messages_in
from tidemark.queries.row_events import Identity
from tidemark.queries.row_life_scan import LogRow
from tidemark.sources.model import Source
from tidemark.tables.eras import names_of
from tidemark.values.sealed_messages import SEALED
from tidemark.values.sealing import Keys


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
        return any(each.covers(row["committed_at"], row["position"]) for each in erasures)

    events, newer = events_of(subject, covers)
    raw, log = lake.load(names.raw(source.source)), lake.load(names.change_log(source.source))
    read_from = lake.target(raw, RAW)
    parts = list(inputs.parts(raw, AlwaysTrue()))
    decoding = replace(
        decoding_of(ledger, source, parts, read_from, log, ledger.files()),
        erased=ErasedKeys(secret=secret, erasures=erasures, declared=source.written()),
    )
    done = inputs.run(parts, partial(tasks.search, decoding=decoding, raw=read_from))
    decoded = {(file, place, row) for task in done for file, place, row in task.erased}
    times = [*events.values(), *(task.newest_erased for task in done)]
    return Places(
        events=frozenset(events.keys() | decoded),
        newer=newer,
        messages=frozenset((file, place) for file, place, _ in decoded),
        unread=_unread(lake, subject, decoding.keys),
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


def _unread(lake: Lake, subject: ErasedRow, keys: Keys | None) -> list[tuple[str, int]]:
    """Return the undecoded messages whose text has the name of the table and the columns of a key with its values."""
    quarantine = lake.find(names.quarantine(subject.source))
    if quarantine is None:
        return []
    patterns = [
        [re.escape(name.rpartition(".")[2].encode()), *_patterns(subject, identity)]
        for identity in subject.identities
        for name in names_of(identity.era.segments)
    ]
    found: Counter[tuple[str, int]] = Counter()
    parts = inputs.quarantined(quarantine, unset("object"), lake.load(names.raw(subject.source)))
    read_from, fields = lake.target(quarantine, QUARANTINE), ["file", "place", "value", SEALED]
    for rows in (rows for part, _ in parts for rows in messages_in(part, read_from, keys, fields)):
        texts = rows.column("value")
        hit = pa.repeat(pa.scalar(value=False), rows.num_rows)
        for all_of in patterns:
            one = pa.repeat(pa.scalar(value=True), rows.num_rows)
            for pattern in all_of:
                matches = pc.match_substring_regex(texts.cast(pa.binary()), pattern.decode())
                one = pc.and_(one, pc.fill_null(matches, False))  # noqa: FBT003
            hit = pc.or_(hit, one)
        kept = rows.filter(hit)
        found.update(zip(kept.column("file").to_pylist(), kept.column("place").to_pylist(), strict=True))
    return sorted(found)


def _patterns(subject: ErasedRow, identity: Identity) -> list[bytes]:
    """Return a pattern for each column of a key: one of its names, a few signs, and the value as a word of its own."""
    found = []
    for column in subject.key_columns(identity.era.key):
        called = b"|".join(re.escape(name.encode()) for name in column.called)
        value = re.escape(str(identity.key[column.name]).encode())
        found.append(b"(?:" + called + rb")\W{1,8}0*" + value + rb"(?:\W|$)")
    return found
