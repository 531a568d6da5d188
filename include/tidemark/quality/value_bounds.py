"""Values that the source's own types rule out, as far as messages declare them: a sign that they were misread.

The files that a cut wrote are read one by one, where possible without Spark (``beyond_bounds``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from pyiceberg.table import Table
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.ddl.history import histories
from tidemark.ddl.stated_bounds import stated_bounds
from tidemark.ddl.stated_tables import with_events
from tidemark.events import Shape
from tidemark.lake import changed_files
from tidemark.lake.filters import among
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality import beyond_bounds
from tidemark.quality.beyond_bounds import Beyond, First
from tidemark.quality.candidates import Candidate
from tidemark.quality.places import first_place
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.spark import on_workers, spread
from tidemark.tables.column_rules import masks_recorded
from tidemark.tables.schemas import POSITION
from tidemark.text import harmless, key_text
from tidemark.values.bounds import Bounds, widest
from tidemark.values.types import is_number

VALUE_BOUNDS = "values beyond the bounds of their types"
"""Name of the invariant."""


def bounds_of(ledger: Ledger, source: Source, rows: Sequence[TableRow]) -> dict[str, dict[str, Bounds]]:
    """Return by object what the types of its columns allow, for tables whose columns have the source's names of today.

    A column has bounds if every message that ever had it declared some, because its rows may be of any of them; or if
    none did, and a statement that added the column declares some (``stated_bounds``).
    """
    renamed = {name for name, history in histories(ledger, [row.object for row in rows]).items() if history.renamings}
    judged = [row.object for row in rows if row.object not in renamed and not source.table_for(row.object).rename]
    if not judged:
        return {}
    # Reprocessing leaves shapes in the ledger that no event has any more.
    used = {(row.object, row.shape) for row in ledger.contents(among("object", judged))}
    stated = stated_bounds(ledger.ddl(), with_events(ledger))
    return {
        name: _agreed((shape for number, shape in shapes.items() if (name, number) in used), stated.get(name, {}))
        for name, shapes in ledger.shapes_by_object(judged).items()
    }


def _agreed(shapes: Iterable[Shape], stated: Mapping[str, Bounds]) -> dict[str, Bounds]:
    declared: dict[str, list[Any]] = {}
    for shape in shapes:
        for column in shape.columns:
            declared.setdefault(column.name, []).append(column.bounds)
    found = {name: widest(texts) if any(texts) else stated.get(name.casefold()) for name, texts in declared.items()}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def fitting(bounds: Mapping[str, Bounds], candidate: Candidate) -> dict[str, Bounds]:
    """Return the bounds that the published columns can be compared with: neither masked nor of another kind."""
    masked = masks_recorded(candidate.table).kinds
    kinds = {name: str(field.field_type) for name, field in candidate.fields.items() if name not in masked}
    return {name: each for name, each in bounds.items() if name in kinds and _is_of(kinds[name], each)}


def _is_of(kind: str, bounds: Bounds) -> bool:
    return kind == "string" if bounds.low is None else is_number(kind)


def judged(
    candidate: Candidate, bounds: Mapping[str, Bounds], severity: Severity, changelog: Table | None
) -> tuple[Invariant, str]:
    """Return the invariant about the rows that a cut wrote, and where the first wrong value is; empty if there is none.

    Args:
        candidate: of the table.
        bounds: by column (``fitting``).
        severity: of the invariant.
        changelog: of the source: it has the places of messages.
    """
    found = _found(candidate, list(bounds), list(bounds.values()))
    counted_columns = zip(bounds.items(), found.counts, strict=True)
    columns = tuple(f"{name}: {count} {_beyond(each)}" for (name, each), count in counted_columns if count)
    first = "" if found.first is None else _first(found.first, candidate.key, changelog)
    return Invariant(value=sum(found.counts), severity=severity, columns=columns, approvable=True), first


def _found(candidate: Candidate, names: Sequence[str], bounds: Sequence[Bounds]) -> Beyond:
    """Return what is found in the files that the cut wrote; others were judged when they were written."""
    columns = dict(zip(beyond_bounds.bounded_columns(bounds), names, strict=True)) | candidate.key_columns
    columns[beyond_bounds.PLACE] = POSITION
    if candidate.is_parquet:
        parts = [(file, file.size) for file in changed_files.whole(candidate.written)]
        work = partial(beyond_bounds.in_files, reading=candidate.reading(columns), bounds=bounds)
        found = spread.run(parts, work, Beyond)
    else:
        find = partial(beyond_bounds.in_rows, bounds=bounds)
        rows = candidate.rows(columns, written=True).mapInArrow(find, from_arrow_schema(on_workers.DONE))
        found = [msgspec.json.decode(bytes(row["done"]), type=Beyond) for row in rows.collect()]
    return beyond_bounds.merged(found, len(bounds))


def _beyond(bounds: Bounds) -> str:
    if bounds.length is not None:
        return f"longer than {bounds.length} characters"
    if bounds.labels is not None:
        return "no label of the enum"
    return f"outside {bounds.low} to {bounds.high}"


def _first(first: First, key: Sequence[str], changelog: Table | None) -> str:
    """Return where a row is: its key as published, its position, and the place of its message."""
    named = key_text(key, first.key)
    row = f"row {named}, " if named else ""
    return harmless(f"the first is {row}{first_place(first.position or None, changelog)}")
