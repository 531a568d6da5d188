"""The life of one row: its events in the order of their positions, and what became of each.

Plain Python over the few events of one key. It explains, event by event, what the package ``folding`` does: every cell
is a register, and of its writers the one with the highest position wins. A whole image writes all cells of its row, and
a delete empties all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.positions import DELIVERY, NEW_HALF, identity
from tidemark.values.plain_types import Value

Key = Mapping[str, Value]


class Outcome(StrEnum):
    """What became of an event."""

    STANDS = "stands"
    """The published row is, at least in part, as this event left it; or it is gone because of this event."""
    SUPERSEDED = "superseded"
    """The event took part, and nothing of it is left."""
    DUPLICATE = "duplicate"
    """The event is a further copy of another event."""
    QUARANTINED = "quarantined"
    """Compact set the event aside."""
    HELD = "held"
    """The event's table is stopped, or the end of its transaction has not landed."""
    ROLLED_BACK = "rolled_back"
    """The event's transaction was rolled back."""
    WAITING = "waiting"
    """The event is not published yet."""


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
    """Whether it deletes the row: a DELETE, a TRUNCATE, the old half of an update, or a change to another key."""
    cells: Mapping[str, Value] = field(default_factory=dict)
    """Values that it writes, by column outside the key."""
    leaves: Mapping[str, Value] = field(default_factory=dict)
    """With soft deletes: the values that it has of the row that it deletes."""
    moved_from: Key | None = None
    moved_to: Key | None = None
    """The other key, if the event changed the key."""
    aside: tuple[Outcome, str] | None = None
    """Why it takes no part, with a sentence for people."""
    kept_back: str | None = None
    """Why compact took the row out instead of publishing what it writes."""
    half: bool = False
    """Whether it is the old half of an update in two events."""
    partial: bool = False
    """Whether its image, or the image of its other half, may lack columns."""
    replaces: bool = False
    """Of a table without a key: whether it takes such a row away, and adds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCell:
    """A cell that an event wrote: the values before and after it, and whether the published row has the new one."""

    old: Value
    new: Value
    stands: bool


@dataclass(slots=True, kw_only=True)
class Chapter:
    """An event, and what became of it."""

    number: int
    """Its number in the life, from 1."""
    step: Step
    outcome: Outcome = Outcome.SUPERSEDED
    detail: str = ""
    existed: bool = False
    """Whether the row was there before it."""
    cells: dict[str, WrittenCell] = field(default_factory=dict)
    """The cells that it wrote, by column; ``old`` and ``new`` are equal if it wrote the value that was there."""


def tell(steps: Iterable[Step], *, soft: bool = False) -> list[Chapter]:
    """Return what became of each event of one row.

    Args:
        steps: all events that act on the row, and the TRUNCATEs of its table, with copies, in any order.
        soft: whether a deleted row stays, marked.

    Returns:
        One chapter for each step, in the order of position and place. The cells that stand are the cells of the
        published row; any other column outside the key is null there. If the last chapter that stands deletes the row,
        no row is published, or with soft deletes a marked one.
    """
    chapters = _set_aside(steps)
    _tell_sent_again(chapters)
    taking_part = [chapter for chapter in chapters if not chapter.detail]
    _replay(taking_part, soft=soft)
    return chapters


def _origin(step: Step) -> tuple[int, str, int, int]:
    return (step.batch, step.file, step.place, step.row)


def _set_aside(steps: Iterable[Step]) -> list[Chapter]:
    """Return the events in order. One that takes no part (a copy, quarantined, held, an idle half) has the reason."""
    ordered = sorted(steps, key=lambda step: (step.position, *_origin(step)))
    chapters = [Chapter(number=number, step=step) for number, step in enumerate(ordered, start=1)]
    first: dict[str, Chapter] = {}
    for chapter in chapters:
        kept = first.get(chapter.step.position)
        # Of copies in one batch, the fold keeps the one with the last place.
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


def _tell_sent_again(chapters: Sequence[Chapter]) -> None:
    """Tell the events that were sent again with another position; see ``folding.versions`` for which of them stay."""
    for of_place in _by_log_place(chapters):
        firsts: dict[object, Chapter] = {}
        for chapter in of_place:
            firsts.setdefault(_content(chapter.step), chapter)
        *_, newest = firsts.values()
        last = of_place[-1]
        for chapter in of_place[:-1]:
            original = firsts[_content(chapter.step)]
            if original is newest and _content(last.step) == _content(chapter.step):
                original = last
            if original is not chapter:
                chapter.outcome, chapter.detail = Outcome.DUPLICATE, f"a copy of event {original.number}"


def _by_log_place(chapters: Iterable[Chapter]) -> list[list[Chapter]]:
    """Return the events that take part, by place in the log, where several share one; each list is in order."""
    places: dict[str, list[Chapter]] = defaultdict(list)
    for chapter in chapters:
        place, has_delivery, _ = chapter.step.position.partition(DELIVERY)
        if has_delivery and not chapter.detail:
            places[place].append(chapter)
    return [found for found in places.values() if len(found) > 1]


def _content(step: Step) -> object:
    """Return what the copies of an event have in common."""
    return (identity(step.position), step.deletes, repr((step.cells, step.moved_from, step.moved_to)))


def new_half(step: Step) -> str:
    """Return the position of an update's new half, given its old half: they differ in the last part."""
    return f"{_update(step)}{NEW_HALF}"


def _update(step: Step) -> str:
    return step.position[: -len(NEW_HALF)]


def _replay(chapters: Sequence[Chapter], *, soft: bool) -> None:
    """Apply the events one after another, and write into each chapter what became of its event."""
    row: dict[str, tuple[Value, Chapter]] = {}
    exists = False
    ended_by: dict[int, Chapter] = {}
    open_chapters: list[Chapter] = []
    shown: dict[str, tuple[WrittenCell, Chapter]] = {}
    for chapter in chapters:
        step = chapter.step
        chapter.existed = exists
        if step.deletes:
            ended_by.update((id(other), chapter) for other in open_chapters)
            open_chapters.clear()
            values = {name: value for name, value in step.leaves.items() if value is not None}
            leaves = {name: (_cell(row, name, value), chapter) for name, value in values.items()}
            shown |= {name: (writer.cells[name], writer) for name, (_, writer) in row.items()} | leaves
            row.clear()
        else:
            shown.clear()
            chapter.cells = {name: _cell(row, name, value) for name, value in step.cells.items()}
            row.update((name, (value, chapter)) for name, value in step.cells.items())
        open_chapters.append(chapter)
        exists = not step.deletes
    standing = {name: (writer.cells[name], writer) for name, (_, writer) in row.items()}
    for name, (cell, writer) in (shown if soft and not exists else standing).items():
        writer.cells[name] = replace(cell, stands=True)
    newest = chapters[-1] if chapters else None
    for number, chapter in enumerate(chapters):
        stands = chapter is newest or any(cell.stands for cell in chapter.cells.values())
        chapter.outcome = Outcome.STANDS if stands else Outcome.SUPERSEDED
        chapter.detail = (
            _did(chapter, soft=soft) if stands else _lost(chapter, ended_by.get(id(chapter)), chapters[number + 1 :])
        )
        if chapter.step.kept_back:
            chapter.outcome = Outcome.QUARANTINED
            chapter.detail = f"{chapter.step.kept_back}; until a later event, the row is not published"


def _cell(row: Mapping[str, tuple[Value, Chapter]], name: str, value: Value) -> WrittenCell:
    return WrittenCell(old=row[name][0] if name in row else None, new=value, stands=False)


def _did(chapter: Chapter, *, soft: bool) -> str:
    """Return a sentence about what an event that stands did."""
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
    """Return a sentence about what superseded an event."""
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
    """Return what became of the events of equal rows in a table without a key.

    Args:
        steps: all events that add such a row or take one away, and the TRUNCATEs of the table, with copies, in any
            order.
        published: positions of the published rows; a row has the position of the event that added it.
    """
    chapters = _set_aside(steps)
    for of_place in _by_log_place(chapters):
        firsts: dict[object, Chapter] = {}
        for chapter in of_place:
            original = firsts.setdefault(_content(chapter.step), chapter)
            if original is not chapter and chapter.step.position not in published:
                # The other events of the place could tell more, but they are of other rows.
                detail = f"a copy of event {original.number}, or an equal row that was taken away since"
                chapter.outcome, chapter.detail = Outcome.DUPLICATE, detail
    taking_part = [chapter for chapter in chapters if not chapter.detail]
    truncate = next((chapter for chapter in reversed(taking_part) if chapter.step.operation == "TRUNCATE"), None)
    truncated = truncate.step.position if truncate else ""
    for chapter in taking_part:
        step = chapter.step
        stands = step.position >= truncated if step.deletes else step.position in published
        chapter.outcome = Outcome.STANDS if stands else Outcome.SUPERSEDED
        chapter.cells = {name: WrittenCell(old=None, new=value, stands=stands) for name, value in step.cells.items()}
        if truncate and step.position < truncated:
            chapter.detail = f"below the TRUNCATE, event {truncate.number}"
        elif step.deletes:
            chapter.detail = "it takes away one equal row, if there is one"
        else:
            chapter.detail = "a row that it added is published" if stands else "an equal row was taken away since"
    return chapters
