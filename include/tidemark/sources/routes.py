"""Routes: where the source file publishes a table, and which tables it folds into one (docs/table-options.md).

An entry *folds* the tables that it matches and that get the same target: each of them is a *shard* of one published
table. All of them have one name together, ``<entry> -> <target>``, which stands where a table's own name would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tidemark.events import TableId
from tidemark.text import suggestion
from tidemark.values.declared_types import entry_name_for, is_pattern, matched

if TYPE_CHECKING:
    from tidemark.sources.model import Source, Table

SHARD_COLUMN = "_cdc_table"
"""Column of a table that others are folded into: the source's name of the table that a row is from."""

FIELDS = ("source", "database", "schema", "table")

_CASES: Mapping[str, Callable[[str], str]] = {"": str, "lower": str.lower, "upper": str.upper}

_FOLDED = " -> "

_PART = re.compile(r"\$(?P<group>[0-9]+)|\{(?P<field>[^{}:]*)(?::(?P<case>[^{}]*))?\}|(?P<stray>[${}])")


class Target(NamedTuple):
    """The name of a published table, which may not be allowed there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What the source file says of where one table is published."""

    target: Target
    folded: str | None = None
    """The name that it has together with the tables of the same target; None: it is a table of its own."""
    added: Mapping[str, str] = field(default_factory=dict)
    """Columns with one value in all rows of the table."""


def route_of(source: Source, table: TableId) -> Route:
    """Return where a table is published."""
    entry_name = entry_name_for(source.tables, str(table))
    entry = source.tables[entry_name] if entry_name is not None else None
    template = _template(source, entry)
    match = matched(entry_name, str(table)) if entry_name is not None else None
    groups = match.groups(default="") if match is not None else ()
    target = _target(rendered(template, source.source, table, groups))
    if entry is None or entry_name is None or not folds(entry_name, entry):
        return Route(target=target)
    added = {column: rendered(text, source.source, table, groups) for column, text in entry.add.items()}
    return Route(target=target, folded=f"{entry_name}{_FOLDED}{target.namespace}.{target.name}", added=added)


def foreseen(source: Source) -> list[Target]:
    """Return where the entries of a source file publish, if that is known before any message lands.

    A name alone does not say which of its parts are a database or a schema, nor does a pattern name its tables.
    """
    found = []
    for name, entry in source.tables.items():
        template = _template(source, entry)
        foreseen_fields = {"source"} if is_pattern(name) else {"source", "table"}
        if "$" not in template and foreseen_fields.issuperset(fields_in(template)):
            table = TableId(database=None, schema=None, name=name.rpartition(".")[2])
            found.append(_target(rendered(template, source.source, table)))
    return list(dict.fromkeys(found))


def _template(source: Source, entry: Table | None) -> str:
    if entry is None or entry.target is None:
        return source.target
    return entry.target if "." in entry.target else f"{{source}}.{entry.target}"


def _target(text: str) -> Target:
    namespace, _, name = text.partition(".")
    return Target(namespace, name)


def folds(name: str, entry: Table) -> bool:
    """Return whether an entry folds the tables that it matches: a pattern with ``target``, or columns are added."""
    return bool(entry.add) or (entry.target is not None and is_pattern(name))


def folds_any(source: Source) -> bool:
    """Return whether a source file folds any tables."""
    return any(folds(name, entry) for name, entry in source.tables.items())


def entry_of(name: str) -> str:
    """Return the entry of the source file that a name of folded tables contains; for another table its own name."""
    return name.rpartition(_FOLDED)[0] or name


def target_in(name: str) -> str:
    """Return where folded tables are published, which their name contains; for another table its own name."""
    return name.rpartition(_FOLDED)[2]


def is_folded(name: str) -> bool:
    """Return whether a name is that of folded tables."""
    return _FOLDED in name


def rendered(template: str, source: str, table: TableId, groups: Sequence[str] = ()) -> str:
    """Return a template with its fields replaced: ``$1``, ``{table}``, ``{database:lower}``."""
    parts = {"source": source, "database": table.database or "", "schema": table.schema or "", "table": table.name}

    def part(match: re.Match[str]) -> str:
        if match["group"]:
            return groups[int(match["group"]) - 1]
        return _CASES[match["case"] or ""](parts[match["field"]])

    return _PART.sub(part, template)


def problems(template: str, groups: int) -> Iterator[str]:
    """Yield what is wrong with a template.

    Args:
        template: of a target, or of an added column.
        groups: how many groups the entry's name has.
    """
    for match in _PART.finditer(template):
        number, name, case = match["group"], match["field"], match["case"]
        if number is not None and not 1 <= int(number) <= groups:
            has = f"the entry's name has {groups} group{'s' * (groups != 1)}" if groups else "the entry's name has none"
            yield f"${number} is no group: {has}. Groups are parts in parentheses, as in 'shop_(\\d+).orders'."
        elif name is not None and name not in FIELDS:
            yield f"unknown field '{{{name}}}'.{suggestion(name, FIELDS)}"
        elif name is not None and (case or "") not in _CASES:
            yield f"'{{{name}:{case}}}': a field may be followed by lower or upper."
        elif match["stray"]:
            yield f"'{match['stray']}' alone: write $1 for a group, or a field in braces, as {{table}}."


def plain(template: str) -> str:
    """Return a template with a letter in the place of each field."""
    return _PART.sub("x", template)


def fields_in(template: str) -> list[str]:
    """Return the names of the fields in a template."""
    return [match["field"] for match in _PART.finditer(template) if match["field"] is not None]
