"""Values that the source's own types rule out, as far as messages declare them: a sign that they were misread.

The values that a cut wrote are counted in the query that counts keys. Only where one is beyond its bounds are they read
again, to tell which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.history import histories
from tidemark.events import Shape
from tidemark.lake.filters import among, equals
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.tables.column_rules import masks_recorded
from tidemark.tables.schemas import POSITION
from tidemark.text import harmless, quoted
from tidemark.values.bounds import Bounds, widest
from tidemark.values.types import is_number

VALUE_BOUNDS = "values beyond the bounds of their types"
"""Name of the invariant."""


def bounds_of(ledger: Ledger, source: Source, rows: Sequence[TableRow]) -> dict[str, dict[str, Bounds]]:
    """Return by object what the types of its columns allow, for tables whose columns have the source's names of today.

    A column has bounds if every message that ever had it declared some, because its rows may be of any of them.
    """
    renamed = {name for name, history in histories(ledger, [row.object for row in rows]).items() if history.renamings}
    judged = [row.object for row in rows if row.object not in renamed and not source.table_for(row.object).rename]
    if not judged:
        return {}
    # Reprocessing leaves shapes in the ledger that no event has any more.
    used = {(row.object, row.shape) for row in ledger.contents(among("object", judged))}
    return {
        name: _agreed(shape for number, shape in shapes.items() if (name, number) in used)
        for name, shapes in ledger.shapes_by_object(judged).items()
    }


def _agreed(shapes: Iterable[Shape]) -> dict[str, Bounds]:
    declared: dict[str, list[Any]] = {}
    for shape in shapes:
        for column in shape.columns:
            declared.setdefault(column.name, []).append(column.bounds)
    return {name: found for name, texts in declared.items() if (found := widest(texts)) is not None}


def fitting(bounds: Mapping[str, Bounds], table: Table, frame: DataFrame) -> dict[str, Bounds]:
    """Return the bounds that the published columns can be compared with: neither masked nor of another kind."""
    masked, kinds = masks_recorded(table).kinds, dict(frame.dtypes)
    return {
        name: each
        for name, each in bounds.items()
        if name in kinds and name not in masked and _is_number(kinds[name]) == (each.low is not None)
    }


def _is_number(kind: str) -> bool:
    return kind.startswith("decimal(") or is_number(kind.replace("bigint", "long"))


def outside(name: str, bounds: Bounds) -> Expression:
    """Return whether a value is beyond its bounds; null is not."""
    value = F.col(quoted(name))
    if bounds.length is not None:
        return F.char_length(value) > bounds.length
    if bounds.labels is not None:
        labels = [label.lower() for label in bounds.labels]
        numbers = [str(number) for number in range(len(labels) + 1)]
        return ~F.lower(value).isin(["", *labels, *numbers])
    low, high = (F.lit(str(bound)).cast("decimal(20)") for bound in (bounds.low, bounds.high))
    return (value < low) | (value > high)


def in_row(bounds: Mapping[str, Bounds]) -> Expression:
    """Return the number of values of a row that are beyond their bounds."""
    each = [F.coalesce(outside(*entry), F.lit(False)).cast("bigint") for entry in bounds.items()]
    return reduce(lambda one, other: one + other, each)


def invariant(written: DataFrame, bounds: Mapping[str, Bounds], severity: Severity) -> Invariant:
    """Return the invariant for rows of which some have values beyond their bounds, with a few words for each column."""
    counts = [F.count(F.when(outside(*entry), 1)).alias(f"c{number}") for number, entry in enumerate(bounds.items())]
    (row,) = written.agg(*counts).collect()
    found = {name: int(row[f"c{number}"]) for number, name in enumerate(bounds)}
    told = tuple(f"{name}: {count} {_beyond(bounds[name])}" for name, count in found.items() if count)
    return Invariant(value=sum(found.values()), severity=severity, columns=told)


def _beyond(bounds: Bounds) -> str:
    if bounds.length is not None:
        return f"longer than {bounds.length} characters"
    if bounds.labels is not None:
        return "no label of the enum"
    return f"outside {bounds.low} to {bounds.high}"


def first(written: DataFrame, bounds: Mapping[str, Bounds], key: Sequence[str], changelog: Table | None) -> str:
    """Return where the first of such rows is: its key as published, its position, and the place of its message."""
    each = [F.coalesce(outside(*entry), F.lit(False)) for entry in bounds.items()]
    any_of = reduce(lambda one, other: one | other, each)
    keys = [F.col(quoted(name)).cast("string").alias(f"k{number}") for number, name in enumerate(key)]
    row = written.where(any_of).orderBy(POSITION).select(POSITION, *keys).first()
    if row is None:
        return ""
    position = str(row[POSITION])
    named = ", ".join(f"{name}={row[f'k{number}']}" for number, name in enumerate(key))
    return harmless(f"the first is {f'row {named}, ' if named else ''}position {position}{_place(changelog, position)}")


def _place(changelog: Table | None, position: str) -> str:
    if changelog is None:
        return ""
    scan = changelog.scan(row_filter=equals("position", position), selected_fields=("file", "place"), limit=1)
    return "".join(f", message {each['place']} of {each['file']}" for each in scan.to_arrow().to_pylist())
