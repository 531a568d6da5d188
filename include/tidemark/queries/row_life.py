"""The life of one row: its events in the order of their positions, and what became of each.

Plain Python over the few events of one key. It says what ``folding.py`` does, event by event: every cell is a register
whose last writer, by position, wins; a whole image writes all cells of its row, a delete empties all of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.events import NEW_HALF
from tidemark.values.plain import Value

Key = Mapping[str, Value]


class Outcome(StrEnum):
    """What became of an event."""

    STANDS = "stands"
    """The published row is, in part at least, as this event left it; or it is gone because of this event."""
    SUPERSEDED = "superseded"
    """It took part, and nothing of it is left."""
    DUPLICATE = "duplicate"
    """A further copy of an event."""
    QUARANTINED = "quarantined"
    HELD = "held"
    """Of a stopped table, or of a transaction whose end has not landed."""
    ROLLED_BACK = "rolled_back"
    """Of a transaction that was undone."""
    WAITING = "waiting"
    """Not published yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one event of the change log does to one row."""

    operation: str
    position: str
    committed_at: str | None
    transaction: Mapping[str, object] | None
    file: str
    place: int
    row: int
    batch: int
    deletes: bool
    """It deletes the row: a DELETE, a TRUNCATE, the old half of an update, or a change of the key to another."""
    cells: Mapping[str, Value] = field(default_factory=dict)
    """Values that it writes, by column outside the key."""
    leaves: Mapping[str, Value] = field(default_factory=dict)
    """Where deletes are soft: what the deleted row shows as long as this is its newest event."""
    moved_from: Key | None = None
    moved_to: Key | None = None
    """The other key, where the event changed it."""
    aside: tuple[Outcome, str] | None = None
    """Why it takes no part, and a sentence about it."""
    half: bool = False
    """The old half of an update in two events."""
    partial: bool = False
    """Its image, or that of its other half, may lack columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell that an event wrote."""

    old: Value
    new: Value
    stands: bool


@dataclass(slots=True, kw_only=True)
class Chapter:
    """An event and what became of it."""

    number: int
    """Its place in the life, from 1."""
    step: Step
    outcome: Outcome = Outcome.SUPERSEDED
    detail: str = ""
    existed: bool = False
    """Whether the row was there before it."""
    cells: dict[str, Cell] = field(default_factory=dict)
    """What it wrote; a column that it left as it was has the same value in ``old`` and ``new``."""


def tell(steps: Iterable[Step], *, soft: bool = False) -> list[Chapter]:
    """Tell what became of each event of one row.

    Args:
        steps: all events that act on the row, and the TRUNCATEs of its table; copies among them, in any order.
        soft: whether a deleted row stays, marked.

    Returns:
        The same, in the order of position and place. The cells that stand are those of the published row; a column
        outside the key that is in none of them is null there. No row is published, or one that is marked, when the
        last chapter that stands deletes it.
    """
    chapters = _set_aside(steps)
    taking_part = [chapter for chapter in chapters if not chapter.detail]
    _replay(taking_part, soft=soft)
    return chapters


def _origin(step: Step) -> tuple[int, str, int, int]:
    return (step.batch, step.file, step.place, step.row)


def _set_aside(steps: Iterable[Step]) -> list[Chapter]:
    """Order the events, and say of those that take no part why: copies, quarantined, held, idle halves."""
    ordered = sorted(steps, key=lambda step: (step.position, *_origin(step)))
    chapters = [Chapter(number=number, step=step) for number, step in enumerate(ordered, start=1)]
    first: dict[str, Chapter] = {}
    for chapter in chapters:
        kept = first.get(chapter.step.position)
        # Of copies in one batch the fold keeps the one that stands last.
        if kept is None or kept.step.batch == chapter.step.batch:
            first[chapter.step.position] = chapter
    updates = {
        _update(chapter.step): chapter
        for chapter in first.values()
        if chapter.step.operation == "UPDATE" and not chapter.step.half and chapter.step.aside is None
    }
    for chapter in chapters:
        step = chapter.step
        original = first[step.position]
        if original is not chapter:
            chapter.outcome, chapter.detail = Outcome.DUPLICATE, f"a copy of event {original.number}"
        elif step.aside is not None:
            chapter.outcome, chapter.detail = step.aside
        elif step.half and (new := updates.get(_update(step))):
            chapter.detail = f"the old half of the update, event {new.number}"
    return chapters


def new_half(step: Step) -> str:
    """The position of the new half of an update, given its old one: they differ in the last part."""
    return f"{_update(step)}{NEW_HALF}"


def _update(step: Step) -> str:
    return step.position[: -len(NEW_HALF)]


def _replay(chapters: Sequence[Chapter], *, soft: bool) -> None:
    row: dict[str, tuple[Value, Chapter]] = {}
    exists = False
    ended_by: dict[int, Chapter] = {}
    open_chapters: list[Chapter] = []
    shown: dict[str, Cell] = {}
    for chapter in chapters:
        step = chapter.step
        chapter.existed = exists
        shown = {name: _cell(row, name, value) for name, value in step.leaves.items()}
        if step.deletes:
            ended_by.update((id(other), chapter) for other in open_chapters)
            open_chapters.clear()
            row.clear()
        else:
            chapter.cells = {name: _cell(row, name, value) for name, value in step.cells.items()}
            row.update((name, (value, chapter)) for name, value in step.cells.items())
        open_chapters.append(chapter)
        exists = not step.deletes
    for name, (value, writer) in row.items():
        writer.cells[name] = Cell(old=writer.cells[name].old, new=value, stands=True)
    newest = chapters[-1] if chapters else None
    if newest is not None and newest.step.deletes:
        newest.cells = {name: replace(cell, stands=True) for name, cell in shown.items()}
    for number, chapter in enumerate(chapters):
        stands = chapter is newest or any(cell.stands for cell in chapter.cells.values())
        chapter.outcome = Outcome.STANDS if stands else Outcome.SUPERSEDED
        chapter.detail = (
            _did(chapter, soft=soft) if stands else _lost(chapter, ended_by.get(id(chapter)), chapters[number + 1 :])
        )


def _cell(row: Mapping[str, tuple[Value, Chapter]], name: str, value: Value) -> Cell:
    return Cell(old=row[name][0] if name in row else None, new=value, stands=False)


def _did(chapter: Chapter, *, soft: bool) -> str:
    if chapter.step.deletes:
        if soft and chapter.existed and chapter.step.moved_to is None:
            return "the row is deleted, and stays marked"
        gone = "the row is gone" if chapter.step.moved_to is None else "the row went to the other key"
        return gone if chapter.existed else "there was no row to delete"
    standing = [name for name, cell in chapter.cells.items() if cell.stands]
    if len(standing) == len(chapter.cells):
        return "all that it wrote stands"
    return f"still standing: {', '.join(standing)}" if standing else "it is the row's newest event"


def _lost(chapter: Chapter, ended_by: Chapter | None, later: Sequence[Chapter]) -> str:
    if ended_by is not None:
        step = ended_by.step
        what = "the change of the key" if step.moved_to is not None else f"the {step.operation}"
        return f"below {what}, event {ended_by.number}"
    writer = next(
        other
        for other in (reversed(later) if chapter.cells else later)
        if not chapter.cells or other.cells.keys() & chapter.cells.keys()
    )
    return f"older than what stands: written again by event {writer.number}"


def tell_bag(steps: Iterable[Step], published: Container[str]) -> list[Chapter]:
    """Tell what became of the events of equal rows of a table without a key.

    Args:
        steps: all events that add such a row, or take one away, and the TRUNCATEs; copies among them, in any order.
        published: positions of the published rows: each is that of the event that added it.
    """
    chapters = _set_aside(steps)
    taking_part = [chapter for chapter in chapters if not chapter.detail]
    truncate = next((chapter for chapter in reversed(taking_part) if chapter.step.operation == "TRUNCATE"), None)
    truncated = truncate.step.position if truncate else ""
    for chapter in taking_part:
        step = chapter.step
        stands = step.position >= truncated if step.deletes else step.position in published
        chapter.outcome = Outcome.STANDS if stands else Outcome.SUPERSEDED
        chapter.cells = {name: Cell(old=None, new=value, stands=stands) for name, value in step.cells.items()}
        if truncate and step.position < truncated:
            chapter.detail = f"below the TRUNCATE, event {truncate.number}"
        elif step.deletes:
            chapter.detail = "it takes away one equal row, if there is one"
        else:
            chapter.detail = "a row that it added is published" if stands else "an equal row was taken away since"
    return chapters
