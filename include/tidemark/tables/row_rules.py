"""Which rows of a table are published, and which columns expressions add, as the source file says.

An expression may name a column by any name that it ever had, as all options do. It sees the values that the fold sees.
A masked column has no plain value there, so no expression may name one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.sources import model
from tidemark.tables import reserved_names
from tidemark.tables.column_rules import ColumnRules, names_recorded
from tidemark.tables.evolving import Evolving
from tidemark.tables.plan import Found
from tidemark.tables.schemas import columns_of, unsettled_columns
from tidemark.tables.stored_names import names_then
from tidemark.text import suggestion
from tidemark.values.expression_types import cast, typed
from tidemark.values.expressions import COLUMN, LITERAL, ExpressionError, Term, wrong_at
from tidemark.values.table_columns import TableColumn
from tidemark.values.types import wider


class RowRules(NamedTuple):
    """``where`` and ``derive`` of a table, with the names and types of today's columns."""

    where: Term | None = None
    derived: dict[str, Term] = {}  # noqa: RUF012  nobody writes to it

    def tracked(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """Return the columns that make versions, with those on which it depends whether a row is published.

        Args:
            columns: that make versions by themselves; None: all do.
        """
        if columns is None or self.where is None:
            return columns
        return columns | {column.text or "" for column in self.where.columns()}


NO_RULES = RowRules()


def planned(evolving: Evolving, promised: model.Table, columns: Sequence[TableColumn], *, goes_on: bool) -> RowRules:
    """Return the expressions of a table.

    Args:
        evolving: the table.
        promised: what the source file says of it.
        columns: its columns, as they are folded.
        goes_on: whether published rows stay.

    Raises:
        IncompatibleSchemaError: an expression names a column that the table does not have, or that is masked; a type
            does not fit; or a derived column has a name that is taken.
        RebuildNeededError: a derived column gets a type that its old values cannot have, or an expression names another
            column than the published rows were made by.
    """
    if not promised.keeps_whole:
        return NO_RULES
    found = evolving.found
    types = dict(columns)
    _refuse_names(found, promised, {*types, *evolving.named(), *evolving.left_out()})
    terms: dict[tuple[str, ...], Term] = {}
    for place, expression in promised.expressions():
        try:
            term = _of_today(expression, evolving, types)
            _refuse_parts(term, evolving.rules, types)
            terms[place] = _finished(place, typed(term, types))
        except ExpressionError as error:
            raise IncompatibleSchemaError(f"{found.object}: {'.'.join(place)}: {error}") from None
    rules = RowRules(terms.get(("where",)), {name: terms["derive", name] for name in promised.derive})
    if goes_on:
        _refuse_other_columns(evolving, promised, types)
        _refuse_types(found, rules)
    return rules


def _refuse_names(found: Found, promised: model.Table, taken: Collection[str]) -> None:
    spelled = {name.casefold() for name in taken}
    for name in promised.derive:
        if name.casefold() in spelled:
            raise IncompatibleSchemaError(
                f"{found.object}: `derive` makes a column {name!r}, and the source has a column of that name: choose "
                "another"
            )
    reserved_names.refuse_names(found, promised.derive, promised)


def _finished(place: tuple[str, ...], term: Term) -> Term:
    """Return a typed expression, if it gives a condition where one is needed, and a value with a type elsewhere."""
    if place == ("where",):
        if term.type not in {"boolean", ""}:
            raise wrong_at(f"it gives a {term.type}, and a condition is needed: a comparison, for instance.")
        return cast(term, "boolean")
    if not term.type:
        raise wrong_at("it is always null: give it a type, as in cast(null as text).")
    return term


def _of_today(term: Term, evolving: Evolving, columns: Collection[str]) -> Term:
    """Return an expression with today's names of the columns.

    If the source file gives the type of a column that no message has brought yet, the column is null in all rows.
    """
    if term.function != COLUMN:
        return replace(term, arguments=tuple(_of_today(each, evolving, columns) for each in term.arguments))
    name = _name_today(term, evolving.rules, columns)
    if name is not None:
        return replace(term, text=name)
    name = term.text or ""
    gone = (*evolving.before, *evolving.left_out(), *(each.old for each in evolving.names.renamings))
    were = {each.casefold() for each in gone}
    if name in evolving.promised and name.casefold() not in were:
        return replace(term, function=LITERAL, text=None, type=evolving.promised[name])
    hint = " A text stands in single quotation marks, and the type of a column to come in `columns`."
    hint = " It was dropped, has another name now, or is left out." if name.casefold() in were else hint
    raise wrong_at(f"the table has no column '{name}'.{hint}{suggestion(name, columns)}", term.place)


def _name_today(term: Term, rules: ColumnRules, columns: Collection[str]) -> str | None:
    name, named = term.text or "", _named(term, rules, columns)
    if len(named) > 1:
        raise wrong_at(f"'{name}' may be any of {', '.join(map(repr, named))}: write the name of today.", term.place)
    if named and rules.mask_of(named[0]) is not None:
        raise wrong_at(f"'{name}' is masked, so the expression would see the mask.", term.place)
    return named[0] if named else None


def _named(term: Term, rules: ColumnRules, columns: Collection[str]) -> list[str]:
    """Return the columns that a term may name: the one of its name, else those that ever had it."""
    name = term.text or ""
    if name in columns:
        return [name]
    return [each for each in columns if name.casefold() in {called.casefold() for called in rules.called(each)}]


def _refuse_other_columns(evolving: Evolving, promised: model.Table, columns: Collection[str]) -> None:
    """Refuse to go on with rows that an expression judged by a column whose name another column has now.

    Renames and drops change no file, so the rows would not be judged again. A column that comes is null in them, as
    what it stands for was. A column without a value changes nothing either.
    """
    found, table = evolving.found, evolving.found.table
    stored, empty = [name for name, _ in columns_of(table)], unsettled_columns(table)
    then = names_then(found, stored, evolving.rules.names.renamings, names_recorded(table))
    rules = replace(evolving.rules, names=then)
    for _, expression in promised.expressions():
        for term in expression.columns():
            now = _named(term, evolving.rules, columns)
            holding = [name for name in stored if evolving.before[name] in now]
            if {*_named(term, rules, stored)} - empty != {*holding} - empty:
                raise RebuildNeededError(
                    f"{found.object}: an expression names {term.text!r}, which was the name of another column, or of "
                    "none, when its rows were published"
                )


def _refuse_parts(term: Term, rules: ColumnRules, columns: Collection[str]) -> None:
    """Refuse an expression that names some of the columns in which the values of one column of the source stand."""
    named = {column.text or "": column for column in term.columns()}
    for name, column in named.items():
        if others := [each for each in rules.elsewhere(name, columns) if each not in named]:
            raise wrong_at(
                f"'{name}' is called {' or '.join(map(repr, others))} in other rows, by a rename that the table as a "
                f"whole does not follow. Name all of them, as in coalesce({', '.join([name, *others])})",
                column.place,
            )


def _refuse_types(found: Found, rules: RowRules) -> None:
    """Refuse to go on with stored values that a derived column's new type cannot have."""
    stored = dict(columns_of(found.published_beside))
    for name, term in rules.derived.items():
        was = stored.get(name)
        if was is not None and wider(was, term.type) != term.type:
            raise RebuildNeededError(f"{found.object}: derived column {name!r} was {was}, and is {term.type} now")
