"""Types of columns for which only values speak: guessed from the values of one run, and outgrown by a later one.

A guess that is outgrown is no change at the source. What does not fit is set aside by the fold, as any value that its
column cannot hold; only then are guesses looked at, so that runs in which all fits pay nothing for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared
from tidemark.compaction.run import Run
from tidemark.errors import RebuildNeededError
from tidemark.lake import names
from tidemark.tables import columns as table_columns
from tidemark.tables import evolving
from tidemark.tables.plan import Found, Plan
from tidemark.tables.reasons import MISFIT, UNREADABLE_VALUE
from tidemark.values import inferred_types, rounded_numbers
from tidemark.values.images import by_table_name
from tidemark.values.inferred_types import DOUBLE


def types_seen(
    events: DataFrame, found: Found, columns: Collection[str], *, of_numbers: bool = False
) -> dict[str, str]:
    """Return the types of columns by the values seen; images whose columns have other names are looked at apart.

    Numbers that need a ``double``, one of which it would round, give ``string``.

    Args:
        events: row changes of one table; their shapes by epoch where ``found`` has names by them.
        found: what is known of the table.
        columns: by the names of today.
        of_numbers: whether values of other kinds are passed over.
    """
    types: dict[str, str] = {}
    for then, wanted in _by_names(events, found, columns):
        seen = inferred_types.types_of(then, sorted(wanted), of_numbers=of_numbers)
        for old, new in wanted.items():
            if old in seen:
                types[new] = inferred_types.joint_guess(types.get(new, seen[old]), seen[old])
    return types | dict.fromkeys(_rounded(events, found, {name for name in types if types[name] == DOUBLE}), "string")


def _by_names(
    events: DataFrame, found: Found, columns: Collection[str]
) -> Iterator[tuple[DataFrame, Mapping[str, str]]]:
    """Yield events whose images have the same names for columns, with the names of today by those names."""
    if not found.names:
        yield events, {name: name for name in columns}
        return
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for shape, renamed in found.names.items():
        if wanted := tuple(sorted((old, new) for old, new in renamed.items() if new in columns)):
            alike[wanted].append(shape)
    for wanted, shapes in alike.items():
        yield events.where(F.col("shape").isin(*shapes)), dict(wanted)


def _rounded(events: DataFrame, found: Found, columns: Collection[str]) -> set[str]:
    """Return the columns, by the names of today, with a number that a ``double`` would round."""
    names: set[str] = set()
    for then, wanted in _by_names(events, found, columns) if columns else ():
        images = then.select(F.coalesce("after", "before"))
        rows = images.mapInArrow(partial(rounded_numbers.columns_of, columns=sorted(wanted)), "name string")
        names |= {wanted[row["name"]] for row in rows.distinct().collect()}
    return names


def refuse_rounding(run: Run, plan: Plan, events: Callable[[], DataFrame]) -> None:
    """Refuse to read a number as a ``double`` that would round it, if values alone gave the column this type.

    Args:
        run: the run.
        plan: of a table that is published.
        events: returns the row changes that it takes in; their shapes by epoch where the plan has names by them.

    Raises:
        RebuildNeededError: there is such a number.
    """
    doubles = {column.name for column in plan.columns if column.type == DOUBLE}
    untyped = doubles.intersection(table_columns.untyped(plan.found, run.source, None)) if doubles else set()
    guessed = untyped & _guessed(run, plan.found) if untyped else set()
    if rounded := _rounded(events(), plan.found, guessed) if guessed else set():
        raise RebuildNeededError(
            f"{plan.found.object}: numbers in {', '.join(sorted(rounded))} have more digits than a double holds, the "
            "type that was guessed from earlier values"
        )


def types_again(
    events: DataFrame, found: Found, columns: Collection[str], published: Mapping[str, str]
) -> dict[str, str]:
    """Return the types of columns by all values, for a table that is built anew though nobody asked.

    What readers know as a number, or as true and false, becomes no text by the values that were set aside for it. It
    does by numbers that no type of numbers holds.

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
    numbers = {name: kind for name, kind in seen.items() if types[name] in inferred_types.NUMBERS}
    return any(kind == "string" or inferred_types.outgrows(kind, types[name]) for name, kind in numbers.items())


def _beginnings(name: str) -> tuple[str, str]:
    """Return how the detail of a value that does not fit may begin, for a column of this name."""
    return (MISFIT + name).partition("': ")[0], f"column '{name}".partition("': ")[0]


def _guessed(run: Run, found: Found) -> set[str]:
    """Return the columns for which nothing ever declared a type: no source file, no message, no DDL."""
    every = replace(found, shapes=run.ledger.shapes_of(*found.objects))
    names_of_columns = evolving.names_of(every, None)
    typed = (addition for addition in found.history.additions if addition.type is not None)
    declared = {names_of_columns.today(each.name, names_of_columns.behind(each)) for each in typed}
    return {name for name in table_columns.untyped(every, run.source, None) if name not in declared}
