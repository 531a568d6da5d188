"""The plan of a source, as people read it and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from tidemark.normalization.source_changes import Need
from tidemark.queries.source_plan import PlannedChange, SourcePlan
from tidemark.text import harmless

_FILES_SHOWN: Final = 20

_WORDS: Final = {
    Need.NOTHING: "nothing; it counts from the next run on",
    Need.RUN: "the next run that has new events of the table",
    Need.REBUILD: "`tidemark rebuild`: the table is built again from its change log",
    Need.RETRY: "`tidemark quarantine retry`: what was set aside is read again",
    Need.REPROCESS: "`tidemark run --reprocess`: all messages are decoded again, and the tables built again",
}


def as_json(plan: SourcePlan) -> dict[str, Any]:
    """Return the plan as one object; the docs describe the keys."""
    return {
        "source": plan.source,
        "cut": plan.cut or None,
        "next_tag": f"cut_{plan.cut + 1}",
        "files": [
            {"path": file.path, "bytes": file.size, "landed_before": file.path in plan.files.landed}
            for file in plan.files.fresh
        ],
        "files_matching": plan.files.listed,
        "changes": [_change(each) for each in plan.changes],
        "needs_a_command": plan.needs_a_command,
        "commands": plan.commands,
    }


def _change(each: PlannedChange) -> dict[str, Any]:
    change = each.change
    return {
        "place": change.place,
        "part": change.part,
        "before": change.before,
        "after": change.after,
        "need": each.need.value,
        "touches": [{**asdict(touch), "columns": list(touch.columns)} for touch in each.touches],
    }


def as_text(plan: SourcePlan) -> Iterator[str]:
    """Yield the plan line by line."""
    yield from map(harmless, _lines(plan))


def _lines(plan: SourcePlan) -> Iterator[str]:
    files = plan.files.fresh
    size = sum(file.size for file in files)
    yield f"{plan.source}: {len(files)} of {plan.files.listed} files that match would land ({size} bytes)"
    for file in files[:_FILES_SHOWN]:
        before = " (changed or grown since it landed)" if file.path in plan.files.landed else ""
        yield f"  {file.path}  {file.size} bytes{before}"
    if len(files) > _FILES_SHOWN:
        yield f"  and {len(files) - _FILES_SHOWN} more; --json lists all"
    since = f"since cut {plan.cut}" if plan.cut else "and nothing was published yet"
    yield f"{plan.source}: {len(plan.changes)} changes in the source file {since}"
    for each in plan.changes:
        yield f"  {each.change}"
        for touch in each.touches:
            columns = f"column {', '.join(touch.columns)} of " if touch.columns else ""
            yield f"    touches {columns}{touch.table}: {touch.rows} rows, {touch.events} events"
        yield f"    needs {_WORDS[each.need]}"
    if plan.commands:
        yield f"to do, which makes the tag cut_{plan.cut + 1}:"
        yield from (f"  {command}" for command in plan.commands)
    else:
        yield "nothing to do"
