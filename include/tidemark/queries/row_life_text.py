"""The output of ``tidemark explain``: the life of a row as JSON lines or as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import msgspec

from tidemark.ledger.tally import log_of
from tidemark.queries import sql
from tidemark.queries.explain import Life
from tidemark.queries.row_life import Chapter
from tidemark.text import harmless


class Origin(TypedDict):
    """Where an event was delivered."""

    file: str
    position: int
    """Place of its message in the file."""


class CellChange(TypedDict):
    """What an event says of one column. Values are texts, as ``tidemark decode`` prints them."""

    old: Any
    new: Any
    stands: bool
    """Whether the published row has this value from this event."""


class LifeEvent(TypedDict):
    """An event of the row."""

    event: int
    """Its number in this answer."""
    operation: str
    position: str
    """As in ``_cdc_position``."""
    log: int
    """1, and one more for each moment of ``log_restarts`` and ``reloads`` before the event. A later log outranks."""
    committed_at: str | None
    transaction: Mapping[str, object] | None
    """``id``, ``number`` of the event in it, ``last``: whether it ends there."""
    origin: Origin
    batch: int
    """Batch that landed it."""
    outcome: str
    """``stands``, ``superseded``, ``duplicate``, ``held``, ``quarantined``, ...: what became of it."""
    detail: str
    """Why."""
    existed: bool
    """Whether the row was there before."""
    deletes: bool
    """Whether the event deletes the row."""
    cells: dict[str, CellChange]
    """By column."""
    moved_from: Any
    """The other key, where the event changed the key."""
    moved_to: Any
    """Likewise."""


def as_json_lines(life_of: Life) -> Iterator[bytes]:
    """Yield one object for each event, in the order of position."""
    for chapter in life_of.chapters:
        step = chapter.step
        members: LifeEvent = {
            "event": chapter.number,
            "operation": step.operation,
            "position": step.position,
            "log": log_of(step.position),
            "committed_at": step.committed_at,
            "transaction": step.transaction,
            "origin": {"file": step.file, "position": step.place},
            "batch": step.batch,
            "outcome": chapter.outcome,
            "detail": chapter.detail,
            "existed": chapter.existed,
            "deletes": step.deletes,
            "cells": {
                name: {"old": cell.old, "new": cell.new, "stands": cell.stands} for name, cell in chapter.cells.items()
            },
            "moved_from": step.moved_from,
            "moved_to": step.moved_to,
        }
        yield msgspec.json.encode(members) + b"\n"


def as_text(life_of: Life) -> Iterator[str]:
    """Yield lines for people, with only those cells that an event changed or that still stand."""
    yield f"{life_of.table} {_key(life_of.key)}"
    for chapter in life_of.chapters:
        yield ""
        yield from _chapter_lines(chapter)
    yield ""
    left_out = f" (`where` leaves out: {harmless(life_of.left_out)})" if life_of.left_out else ""
    yield f"published rows: {life_of.rows.num_rows}{left_out}"
    for number, line in enumerate(sql.as_json_lines(life_of.rows), start=1):
        if life_of.rows.num_rows > 1:
            yield f"-- {number} --"
        yield from (f"  {harmless(name)}: {_whole(value)}" for name, value in msgspec.json.decode(line).items())


def _chapter_lines(chapter: Chapter) -> Iterator[str]:
    step = chapter.step
    yield f"{chapter.number} {step.operation} {chapter.outcome}: {harmless(chapter.detail)}"
    transaction = f", transaction {_whole(step.transaction['id'])}" if step.transaction else ""
    yield f"  committed {step.committed_at or 'at an unknown time'}{transaction}"
    yield f"  {harmless(step.file)}:{step.place}, batch {step.batch}"
    log = log_of(step.position)
    yield f"  position {harmless(step.position)}{f', in log {log} of the source' if log > 1 else ''}"
    for word, other in (("from", step.moved_from), ("to", step.moved_to)):
        if other is not None:
            yield f"  the key changed, {word} {_key(other)}"
    for name, cell in chapter.cells.items():
        if cell.stands or cell.old != cell.new or not chapter.existed:
            old = f"{_shown(cell.old)} -> " if chapter.existed else ""
            yield f"  {harmless(name)}: {old}{_shown(cell.new)}{'  (stands)' if cell.stands else ''}"


_SHOWN = 80
"""How many characters of a value are printed for people; JSON has all."""


def _key(values: Mapping[str, object]) -> str:
    """Return the values of a key, whole: they tell which row it is."""
    return " ".join(f"{harmless(name)}={_whole(value)}" for name, value in values.items())


def _whole(value: object) -> str:
    return harmless(json.dumps(value, ensure_ascii=False))


def _shown(value: object) -> str:
    text = _whole(value)
    more = len(text) - _SHOWN
    return text if more <= 0 else f"{text[:_SHOWN]}... (and {more} more characters; --json shows them)"
