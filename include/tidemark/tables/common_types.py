"""The type that holds every value of two types of one column exactly, or what a person can do where there is none."""

from __future__ import annotations

from tidemark.errors import IncompatibleSchemaError
from tidemark.values.types import common_number, is_number


def common_type(old: str, new: str) -> str | None:
    """Return the type that holds every value of both, as its source writes it; None when a person has to choose.

    Text holds numbers and booleans with the digits and words that their messages have. It does not hold both for one
    column: a value that comes as ``true`` and as ``1`` would be two texts.

    >>> common_type("int", "decimal(8, 2)"), common_type("long", "string"), common_type("boolean", "string")
    ('decimal(12, 2)', 'string', 'string')
    >>> common_type("boolean", "int") is None, common_type("timestamp", "string") is None
    (True, True)
    """
    if number := common_number(old, new):
        return number
    holds_both = "string" in {old, new} and all(kind in {"string", "boolean"} or is_number(kind) for kind in (old, new))
    return "string" if holds_both else None


def agreed(column: str, old: str | None, new: str, *, source: str, table: str, is_declared: bool) -> str:
    """Return the type of a column that had a type and gets one.

    Args:
        column: its name today.
        old: the type so far; None where there is none.
        new: the type that the source file or the messages give.
        source: the source's name.
        table: as the source names it.
        is_declared: whether the source file gives ``new``.

    Raises:
        IncompatibleSchemaError: no type holds the values of both, or the source file gives another one than that.
    """
    if old is None:
        return new
    found = common_type(old, new)
    if found is not None and (found == new or not is_declared or is_number(found)):
        return found
    again = f"`tidemark rebuild {source} {table}`"
    if is_declared:
        raise IncompatibleSchemaError(
            f"{table}: column {column!r} is published as {old}, and the source file says {new}. The table stays as it "
            f"is; to have {new}, run {again}, which folds it from its change log."
        )
    raise IncompatibleSchemaError(
        f"{table}: column {column!r} changed from {old} to {new}, and neither holds what the other does. The table "
        f"stays as it is; give it one type for all of its rows in the source file (`columns: {{{column}: ...}}`): "
        f"{', '.join(_choices(old, new))}; then run {again}"
    )


def _choices(old: str, new: str) -> list[str]:
    """Return the types that a person can choose from, with what each does."""
    if all(kind == "boolean" or is_number(kind) for kind in (old, new)):
        return ["string (all values, as written)", *(f"{kind} (values that fit it)" for kind in (old, new))]
    if {old, new} <= {"date", "timestamp", "timestamptz"}:
        times = [f"{kind} (values that fit it)" for kind in (old, new)]
        return ["string (all values)", *times]
    kinds = [kind for kind in (old, new) if kind != "string"]
    return ["string (all values but bytes that are no text)", *(f"{kind} (values that fit it)" for kind in kinds)]
