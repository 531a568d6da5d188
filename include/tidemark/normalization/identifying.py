"""Which format and container a dump file is: the decoders of all formats are tried on its first messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tidemark.dumps import containers
from tidemark.dumps.beyond_limit import MARK
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import LandingError
from tidemark.events import ChangeEvent, Event, Message, Quarantined, SchemaChange
from tidemark.formats import Format, gather, informed, names, resolve
from tidemark.normalization.decoding import decode_message, messages_of, metadata_of

_MESSAGES: Final = 200
"""Messages that are tried."""

_BYTES: Final = 32 << 20
"""Bytes of messages that are tried, and one message more."""

_RECOGNISED: Final = frozenset({"missing_table", "missing_metadata"})
"""Reasons of messages that are of the format, and need an option or another message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatReading:
    """What one format makes of the messages that were tried."""

    format: str
    events: int
    """Messages that are changes of rows or of schemas."""
    control: int
    """Messages that are control events, or none at all."""
    lacking: int
    """Messages of the format that need an option or another message."""
    tables: tuple[str, ...]
    """Tables of the changes, as the source names them."""
    marked: int
    """Messages with a mark that only this format has, less those without it; 0 of a format that has none."""
    reason: str | None
    """Why the first message that could not be read was set aside."""

    @property
    def rank(self) -> tuple[bool, int, int, int, int]:
        """Return what a better reading has more of."""
        return self.events > 0, self.events + self.lacking, self.events, self.marked, self.control


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """What a dump file is."""

    container: str
    """As ``containers.Inspection`` names it."""
    wrapping: Wrapping
    messages: int
    """Messages that were tried."""
    readings: tuple[FormatReading, ...]
    """Of the formats that read any change, the best first."""
    nearest: FormatReading | None
    """The best reading, if no format reads any change."""


def identify(path: str) -> Identified:
    """Try all formats, with their default options, on the first messages of a dump file.

    Raises:
        LandingError: the file cannot be read.
    """
    with containers.opened_content(path) as content:
        sample = list(_first(content.batches, path))
        container, wrapping = content.container, content.wrapping
    readings = sorted((_read(name, sample) for name in names()), key=lambda each: each.rank, reverse=True)
    found = tuple(each for each in readings if each.events + each.lacking)
    nearest = readings[0] if readings and not found and sample else None
    return Identified(container=container, wrapping=wrapping, messages=len(sample), readings=found, nearest=nearest)


def other_format(path: str, format_name: str) -> str | None:
    """Return the format that a dump file is in, if it is another one than ``format_name``.

    None also if no format reads a change in it, or the file cannot be read any more.
    """
    try:
        readings = identify(path).readings
    except (LandingError, OSError):
        return None
    best = readings[0] if readings else None
    return best.format if best is not None and best.events and best.format != format_name else None


def _first(batches: Iterator[pa.RecordBatch], path: str) -> Iterator[Message]:
    size = 0
    messages = itertools.chain.from_iterable(messages_of(batch, path) for batch in batches)
    for message in itertools.islice(messages, _MESSAGES):
        if message.value is not None and message.value.startswith(MARK):
            continue
        yield message
        size += len(message.value or b"")
        if size > _BYTES:
            return


def _read(name: str, sample: Sequence[Message]) -> FormatReading:
    module: Format = resolve(name)
    options = module.Options.model_validate({})
    with_metadata = informed(module)
    known = None if with_metadata is None else gather(metadata_of(with_metadata, sample, options))
    decoded = [decode_message(module, message, options, known) for message in sample]
    refused = [each for each in decoded if isinstance(each, Quarantined)]
    lacking = [
        each
        for message, each in zip(sample, decoded, strict=True)
        if isinstance(each, Quarantined) and each.reason in _RECOGNISED and _may_be(name, message)
    ]
    changes = [each for each in decoded if not isinstance(each, Quarantined) and _tables(each)]
    others = [each for each in refused if each not in lacking]
    tables = dict.fromkeys(itertools.chain.from_iterable(map(_tables, changes)))
    return FormatReading(
        format=name,
        events=len(changes),
        control=len(decoded) - len(refused) - len(changes),
        lacking=len(lacking),
        marked=_marked(name, sample),
        tables=tuple(table for table in tables if table),
        reason=next((each.detail for each in (*lacking, *others)), None),
    )


def _may_be(name: str, message: Message) -> bool:
    """Return whether a message may be of a format: a text that is JSON is no Avro, though Avro may read its bytes."""
    return not (name.endswith("_avro") and (message.value or b"").lstrip()[:1] == b"{")


_MARKS: Final = {"cdl_json": (b'"message_version"', b'"HEARTBEAT_IDENTIFIER"', b'"LOB_COLUMNS"')}
"""Fields that only messages of a format have, where another format reads the same envelope."""


def _marked(name: str, sample: Sequence[Message]) -> int:
    marks = _MARKS.get(name, ())
    found = sum(any(mark in (message.value or b"") for mark in marks) for message in sample)
    return 2 * found - len(sample) if marks else 0


def _tables(events: Sequence[Event]) -> list[str]:
    """Return the tables of the changes among events."""
    return [str(event.table or "") for event in events if isinstance(event, ChangeEvent | SchemaChange)]
