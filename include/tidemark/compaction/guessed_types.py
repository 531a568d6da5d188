"""Types of columns for which only values speak: guessed from the values of one run, and outgrown by a later one.

A guess that is outgrown is no change at the source. What does not fit is set aside by the fold, as any value that its
column cannot hold; only then are guesses looked at, so that runs in which all fits pay nothing for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared
from tidemark.compaction.run import Run
from tidemark.lake import names
from tidemark.tables import columns as table_columns
from tidemark.tables import evolving
from tidemark.tables.plan import Found
from tidemark.tables.reasons import MISFIT, UNREADABLE_VALUE
from tidemark.values import inferred_types
from tidemark.values.images import by_table_name


def types_seen(
    events: DataFrame, found: Found, columns: Collection[str], *, of_numbers: bool = False
) -> dict[str, str]:
    """Return the types of columns by the values seen; images whose columns have other names are looked at apart.

    Args:
        events: row changes of one table; their shapes by epoch where ``found`` has names by them.
        found: what is known of the table.
        columns: by the names of today.
        of_numbers: whether values of other kinds are passed over.
    """
    if not found.names:
        return inferred_types.types_of(events, sorted(columns), of_numbers=of_numbers)
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for shape, renamed in found.names.items():
        if wanted := tuple(sorted((old, new) for old, new in renamed.items() if new in columns)):
            alike[wanted].append(shape)
    types: dict[str, str] = {}
    for wanted, shapes in alike.items():
        then, names_then = events.where(F.col("shape").isin(*shapes)), [old for old, _ in wanted]
        seen = inferred_types.types_of(then, names_then, of_numbers=of_numbers)
        for old, new in wanted:
            if old in seen:
                types[new] = inferred_types.common_type(types.get(new, seen[old]), seen[old])
    return types


def types_again(
    events: DataFrame, found: Found, columns: Collection[str], published: Mapping[str, str]
) -> dict[str, str]:
    """Return the types of columns by all values, for a table that is built anew though nobody asked.

    What readers know as a number, or as true and false, becomes no text by the values that were set aside for it.

    Args:
        events: row changes of one table; their shapes by epoch where ``found`` has names by them.
        found: what is known of the table.
        columns: by the names of today.
        published: types of the columns that the table has.
    """
    seen = types_seen(events, found, columns)
    texts = {name: published[name] for name, kind in seen.items() if kind == "string" and name in published}
    numbers = {name for name, kind in texts.items() if kind in inferred_types.NUMBERS}
    truths = {name: kind for name, kind in texts.items() if kind == "boolean"}
    return seen | truths | (types_seen(events, found, numbers, of_numbers=True) if numbers else {})


def are_outgrown(prepared: Prepared) -> bool:
    """Return whether a number was set aside only because the type of its column was guessed without it.

    Args:
        prepared: a table that was built; some of its events were set aside.
    """
    run, found = prepared.run, prepared.plan.found
    aside = run.read(names.quarantine(run.source.source))
    aside = aside.where((F.col("object") == found.object) & (F.col("reason") == UNREADABLE_VALUE))
    # A name may contain what ends it here. Then more columns are looked at than need be.
    beginnings = aside.select(F.substring_index("detail", "': ", 1).alias("detail")).distinct().collect()
    misfits = {row["detail"] for row in beginnings}
    columns = (each for shape in found.shapes.items() for each in by_table_name(*shape, found.names))
    suspects = {name for name, column in columns if not misfits.isdisjoint(_beginnings(column.name))}
    guessed = suspects & _guessed(run, found) if suspects else set()
    seen = types_seen(prepared.log.changes(), found, guessed, of_numbers=True) if guessed else {}
    types = dict(prepared.plan.columns)
    return any(inferred_types.outgrows(kind, types[name]) for name, kind in seen.items())


def _beginnings(name: str) -> tuple[str, str]:
    """Return how the detail of a value that does not fit may begin, for a column of this name."""
    return (MISFIT + name).partition("': ")[0], f"column '{name}".partition("': ")[0]


def _guessed(run: Run, found: Found) -> set[str]:
    """Return the columns for which nothing ever declared a type: no source file, no message, no DDL."""
    every = replace(found, shapes=run.ledger.shapes_of(*found.objects))
    names_of_columns = evolving.names_of(every, None)
    typed = (addition for addition in found.history.additions if addition.type is not None)
    declared = {names_of_columns.today(each.name, names_of_columns.epoch(each.position, after=True)) for each in typed}
    return {name for name in table_columns.untyped(every, run.source, None) if name not in declared}
