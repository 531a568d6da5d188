"""Names in the source file that fit nothing that has landed: what is said there has no effect, and nobody would see it.

A table or a column may be declared before its first message comes. So such a name is only a warning. An entry that
hides something holds the cut if its name differs from that of a table in the case of letters alone: the table is there,
and it would be published with all that the entry hides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tidemark.ddl.history import histories
from tidemark.ledger.ledger import Ledger
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source, Table
from tidemark.text import harmless, matches, nearest
from tidemark.values.declared_types import entry_name_for, is_expression, matched

UNFIT_TABLES: Final = "entries of the source file that fit no table"
"""Name of the check of tables."""

UNFIT_COLUMNS: Final = "names in the source file that fit no column"
"""Name of the check of columns."""

_HIDING: Final = ("mask", "exclude", "select", "where")

_NAMING: Final = ("mask", "exclude", "select", "rename", "encodings")
"""Options with names of columns, but for those that name others themselves, or stop the table."""


def judged(ledger: Ledger, source: Source) -> Iterator[SourceResult]:
    """Yield a finding for entries of ``tables`` that fit no table with events, and one for names of their columns.

    Yields nothing where every name fits. A table that was renamed keeps its earlier name among those that fit.
    """
    if not source.tables:
        return
    objects = {row.object for row in ledger.contents()}
    unfit = [name for name in source.tables if not any(name == each or matched(name, each) for each in objects)]
    alike = {name: other for name in unfit if (other := _spelled_otherwise(source, name, objects))}
    for severity, names in (
        (Severity.BLOCK, [name for name in unfit if name in alike]),
        (Severity.WARN, [name for name in unfit if name not in alike]),
    ):
        if names:
            sentences = [_of_table(source, name, alike.get(name), objects) for name in names]
            yield _finding(UNFIT_TABLES, severity, names, sentences)
    if columns := dict(_columns(ledger, source, objects)):
        yield _finding(UNFIT_COLUMNS, Severity.WARN, list(columns), list(columns.values()))


def _finding(check: str, severity: Severity, names: Sequence[str], sentences: Iterable[str]) -> SourceResult:
    result = CheckResult.of_findings(check, severity, len(names), columns=tuple(names))
    return SourceResult(result, tuple(map(harmless, sentences)))


def _hides(entry: Table) -> list[str]:
    """Return the options of an entry that keep values or rows from readers."""
    return [option for option in _HIDING if getattr(entry, option)]


def _spelled_otherwise(source: Source, name: str, objects: Iterable[str]) -> str | None:
    """Return a table that an entry which hides something would fit, but for the case of letters; None for none."""
    if not _hides(source.tables[name]) or is_expression(name):
        return None
    fitting = (each for each in sorted(objects) if matched(name.casefold(), each.casefold()))
    return next((each for each in fitting if each not in source.tables), None)


def _of_table(source: Source, name: str, other: str | None, objects: Iterable[str]) -> str:
    """Return what is wrong with an entry that fits no table."""
    options = ", ".join(f"`{option}`" for option in _hides(source.tables[name]))
    effect = f", so nothing is hidden by its {options}" if options else " yet"
    hint = f" Is it {other}?" if other else nearest(name, objects)
    return f"{source.source}: the entry {name} of `tables` fits no table that has events{effect}.{hint}"


def _columns(ledger: Ledger, source: Source, objects: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns that no table of their entry ever had, each with what is wrong."""
    tables = defaultdict[str, list[str]](list)
    for each in sorted(objects):
        entry = entry_name_for(source.tables, each)
        if entry is not None and any(getattr(source.tables[entry], option) for option in _NAMING):
            tables[entry].append(each)
    known = _known_columns(ledger, [each for found in tables.values() for each in found])
    for entry, found in tables.items():
        declared = source.tables[entry]
        columns = {column for each in found for column in known.get(each, ())}
        published = {*columns, *declared.rename.values(), *declared.add}
        named = [(option, name) for option in _NAMING for name in getattr(declared, option) or ()]
        for option, name in named if columns else ():
            if not matches(published, [name]):
                text = f"`{option}` of {entry} names the column {name}, which no table of the entry has"
                yield f"{entry}.{name}", f"{source.source}: {text}.{nearest(name, columns)}"


def _known_columns(ledger: Ledger, objects: Sequence[str]) -> Mapping[str, set[str]]:
    """Return by table the columns that its messages and statements ever named."""
    if not objects:
        return {}
    known = {
        name: {column.name for shape in shapes.values() for column in shape.columns}
        for name, shapes in ledger.shapes_by_object(objects).items()
    }
    for name, history in histories(ledger, objects).items():
        stated = {*(each.name for each in history.additions), *(each.old for each in history.renamings)}
        known.setdefault(name, set()).update(stated, (each.new for each in history.renamings if each.new is not None))
    return known
