"""What a table's entry says of its columns and rows: what is published, and how (docs/table-options.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import InitErrorDetails

from tidemark.sources import fields
from tidemark.sources.fields import wrong
from tidemark.text import matches
from tidemark.values.expressions import ExpressionError, Term, parsed
from tidemark.values.masking import Mask

_NOT_SOFTLY: Final = (
    "`deletes: soft` would have to show rows that left the filter, which nothing keeps: take one of them out. A "
    "history tells until when a row was inside."
)
"""Why a table with soft deletes has no filter."""

Names = Annotated[tuple[str, ...], AfterValidator(fields.unique_names)]


def _word(given: object) -> object:
    """Return the word of a mask: in YAML, ``null`` is no text."""
    return Mask.NULL.value if given is None else given


def _one_each(names: dict[str, str]) -> dict[str, str]:
    """Return new names by column: no two are equal, and none is a name that is given away."""
    new = [name.casefold() for name in names.values()]
    for name, given in names.items():
        if not given.strip():
            raise wrong(f"'{name}' gets an empty name.")
        if new.count(given.casefold()) > 1:
            raise wrong(f"two columns would be called '{given}'.")
        if given.casefold() in {other.casefold() for other in names}:
            raise wrong(f"'{given}' is renamed itself: choose another name for '{name}'.")
    return names


def _expression(text: str) -> str:
    """Return an expression over one row, which must use what is allowed alone."""
    try:
        parsed(text)
    except ExpressionError as error:
        raise wrong(str(error)) from None
    return text


def _filter(text: str) -> str:
    """Return an expression that is true for some rows, so it names a column."""
    if not any(parsed(_expression(text)).columns()):
        raise wrong("it names no column, so it is the same for every row.")
    return text


class ColumnOptions(BaseModel):
    """Options of a table's columns. Names are the source's, of any time; ``*`` and ``?`` are allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    select: Names | None = None
    """Columns that are published. None: all."""
    exclude: Names = ()
    """Columns that are not published; it counts before ``select``."""
    rename: Annotated[dict[str, str], AfterValidator(_one_each)] = Field(default_factory=dict)
    """Column -> the name that it is published under."""
    mask: dict[str, Annotated[Mask, BeforeValidator(_word)]] = Field(default_factory=dict)
    """Column -> what is published in place of its values. Where several entries fit, the first counts."""
    where: Annotated[str, AfterValidator(_filter)] | None = None
    """Condition on a row, in SQL: rows for which it is true are published. None: all."""
    derive: dict[str, Annotated[str, AfterValidator(_expression)]] = Field(default_factory=dict)
    """New column -> its value, an expression over the row in SQL: ``first || ' ' || last``, ``'eu'``."""

    @property
    def keeps_whole(self) -> bool:
        """Whether published rows are made from whole rows, which are kept beside them."""
        return self.where is not None or bool(self.derive)

    def expressions(self) -> Iterator[tuple[tuple[str, ...], Term]]:
        """Yield the expressions over the row, each with its place in the entry."""
        if self.where is not None:
            yield ("where",), parsed(self.where)
        for name, text in self.derive.items():
            yield ("derive", name), parsed(text)


def problems(
    options: ColumnOptions, key: tuple[str, ...], types: Mapping[str, str], *, soft: bool
) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with the options of a table, as far as the source file alone shows it.

    Args:
        options: the options.
        key: the key that the source file gives; empty for none.
        types: the types that it gives, by column.
        soft: whether deleted rows stay, marked.
    """
    if options.select == ():
        yield fields.error_at(("select",), "empty: no column would be published. Leave it out to publish all.")
    for place, name in enumerate(options.exclude):
        if name in key:
            yield fields.error_at(("exclude", place), f"{name} is part of the key, so it cannot be left out.")
    for name, mask in options.mask.items():
        if name in key and mask is not Mask.HMAC:
            yield fields.error_at(("mask", name), f"{name} is part of the key; only hmac keeps rows apart.")
        if name in types:
            text = f"{name} is masked, and a mask is text. Leave its type out of `columns`."
            yield fields.error_at(("columns", name), text)
    yield from _derived_problems(options, key, types)
    yield from _expression_problems(options, soft=soft)


def _expression_problems(options: ColumnOptions, *, soft: bool) -> Iterator[InitErrorDetails]:
    if soft and options.where is not None:
        yield fields.error_at(("where",), _NOT_SOFTLY)
    for where, expression in options.expressions():
        for column in expression.columns():
            if problem := _not_seen(options, column.text or ""):
                yield fields.error_at(where, f"at character {column.place}: {problem}")


def _derived_problems(
    options: ColumnOptions, key: tuple[str, ...], types: Mapping[str, str]
) -> Iterator[InitErrorDetails]:
    spelled = [name.casefold() for name in options.derive]
    for name in options.derive:
        if not name.strip() or name.casefold().startswith(("_", "tidemark ")):
            text = f"'{name}' is no name for a derived column: such names are Tidemark's and Iceberg's own."
            yield fields.error_at(("derive", name), text)
        if spelled.count(name.casefold()) > 1 or name in options.rename.values():
            yield fields.error_at(("derive", name), f"two columns would be called '{name}'.")
        if name in key:
            text = f"{name} is part of the key, and a derived column cannot be: rows are told apart before it is made."
            yield fields.error_at(("derive", name), text)
        if name in types:
            yield fields.error_at(("columns", name), f"{name} is derived: `cast(... as type)` gives it another type.")


def _not_seen(options: ColumnOptions, name: str) -> str | None:
    """Return why an expression cannot see a column, as far as the source file shows it; None if it may."""
    if name in options.derive:
        return f"{name} is derived itself, and an expression sees the columns of the source alone."
    called = [name, *(new for old, new in options.rename.items() if old == name)]
    called += [old for old, new in options.rename.items() if new == name]
    if any(matches(called, [pattern]) for pattern in options.mask):
        return f"{name} is masked, so the expression would see the mask."
    if matches(called, options.exclude) or not (options.select is None or matches(called, options.select)):
        return f"{name} is left out, so the table does not have it."
    return None
