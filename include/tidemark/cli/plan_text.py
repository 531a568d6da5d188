"""The plan of a source, as people read it and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypedDict

from tidemark.lake.names import cut_tag
from tidemark.normalization.source_changes import Need
from tidemark.queries.source_plan import PlannedChange, SourcePlan
from tidemark.text import counted, harmless

_FILES_SHOWN: Final = 20

_WORDS: Final = {
    Need.NOTHING: "nothing; it counts from the next run on",
    Need.RUN: "the next run that has new events of the table",
    Need.REBUILD: "`tidemark rebuild`: the table is built again from its change log",
    Need.RETRY: "`tidemark quarantine retry`: what was set aside is read again",
    Need.REPROCESS: "`tidemark run --reprocess`: all messages are decoded again, and the tables built again",
}


class PendingFile(TypedDict):
    """A dump file that a run would land."""

    path: str
    bytes: int
    landed_before: bool
    """It landed, and has grown since."""


class Touched(TypedDict):
    """What a change touches of one table."""

    table: str
    """As it is published, else as the source names it."""
    columns: list[str]
    """Empty: all columns."""
    rows: int
    """Published rows."""
    events: int
    """Events in the change log."""


class ChangedPart(TypedDict):
    """One thing that the source file says otherwise than when messages were last read."""

    place: str
    """Where it stands: ``tables.shop.orders.columns.total``."""
    part: str
    """Key of the source file, or of an entry of ``tables``."""
    before: Any
    """Null: it was not given, and the default counted."""
    after: Any
    """Null: it is not given."""
    need: str
    """``nothing``, ``run``, ``rebuild``, ``retry`` or ``reprocess``: what applies it to what landed before."""
    touches: list[Touched]


class PlanAnswer(TypedDict):
    """The plan of a source."""

    source: str
    cut: int | None
    """Number of the newest cut; null before the first."""
    next_tag: str
    """Tag that the next cut gets."""
    files: list[PendingFile]
    files_matching: int
    """Files that match the landing path, landed or not."""
    remarks: list[str]
    """What is remarked of files that match and would not land."""
    changes: list[ChangedPart]
    needs_a_command: bool
    """Whether a change has no effect on what landed before until a command is given; the status is 1 then."""
    commands: list[str]
    """What to do, in order."""


def as_json(plan: SourcePlan) -> PlanAnswer:
    """Return the plan as one object."""
    return {
        "source": plan.source,
        "cut": plan.cut or None,
        "next_tag": cut_tag(plan.next_cut),
        "files": [
            {"path": file.path, "bytes": file.size, "landed_before": file.path in plan.files.landed}
            for file in plan.files.fresh
        ],
        "files_matching": plan.files.listed,
        "remarks": list(plan.remarks),
        "changes": [_change(each) for each in plan.changes],
        "needs_a_command": plan.needs_a_command,
        "commands": list(plan.commands),
    }


def _change(each: PlannedChange) -> ChangedPart:
    change = each.change
    return {
        "place": change.place,
        "part": change.part,
        "before": change.before,
        "after": change.after,
        "need": each.need.value,
        "touches": [
            {"table": touch.table, "columns": list(touch.columns), "rows": touch.rows, "events": touch.events}
            for touch in each.touches
        ],
    }


def as_text(plan: SourcePlan) -> Iterator[str]:
    """Yield the plan line by line."""
    yield from map(harmless, _lines(plan))


def _lines(plan: SourcePlan) -> Iterator[str]:
    files = plan.files.fresh
    if plan.nothing_new:
        yield f"{plan.source}: {plan.nothing_new}"
    else:
        size = sum(file.size for file in files)
        yield f"{plan.source}: {len(files)} of {plan.files.listed} files that match would land ({size} bytes)"
    for file in files[:_FILES_SHOWN]:
        before = " (changed or grown since it landed)" if file.path in plan.files.landed else ""
        yield f"  {file.path}  {file.size} bytes{before}"
    if len(files) > _FILES_SHOWN:
        yield f"  and {len(files) - _FILES_SHOWN} more; --json lists all"
    yield from (f"  note: {remark}" for remark in plan.remarks)
    since = f" since cut {plan.cut}" if plan.cut else "; nothing was published yet"
    if plan.cut or plan.changes:
        yield f"{plan.source}: {counted(len(plan.changes), 'change')} in the source file{since}"
    else:
        yield f"{plan.source}: nothing was published yet"
    for each in plan.changes:
        yield f"  {each.change}"
        for touch in each.touches:
            columns = f"column {', '.join(touch.columns)} of " if touch.columns else ""
            yield f"    touches {columns}{touch.table}: {touch.rows} rows, {touch.events} events"
        yield f"    needs {_WORDS[each.need]}"
    if plan.commands:
        yield f"to do, which makes the tag {cut_tag(plan.next_cut)}:"
        yield from (f"  {command}" for command in plan.commands)
    else:
        yield "nothing to do"
