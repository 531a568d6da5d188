"""Types of expressions over one row: Iceberg's, with the casts that make the operands of a function alike.

Numbers stay exact: whole numbers and decimals mix, and a result that may need more than 38 digits is refused, as is an
exact number beside a double. So no value is rounded unless the expression says ``cast``, ``round`` or ``/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from tidemark.values.expressions import COLUMN, LITERAL, Term, wrong_at
from tidemark.values.types import decimal_parts

_DIGITS: Final[Mapping[str, int]] = {"int": 10, "long": 19}

_MOST_DIGITS: Final = 38

_DATES: Final = ("date", "timestamp", "timestamptz")


def typed(term: Term, types: Mapping[str, str]) -> Term:
    """Return an expression with the types of all its parts; operands that differ are cast.

    Args:
        term: the expression; its columns have the names of ``types``.
        types: Iceberg types by column.

    Raises:
        ExpressionError: a function cannot take the types of its operands.
    """
    if term.function == COLUMN:
        return replace(term, type=types[term.text or ""])
    if term.function == LITERAL:
        return term
    arguments = [typed(each, types) for each in term.arguments]
    return _RULES[term.function](replace(term, arguments=tuple(arguments)))


def _type_name(term: Term) -> str:
    return term.type or "null"


def _exact(term: Term) -> tuple[int, int] | None:
    """Return the precision and scale that hold every value of an exact number; None for anything else."""
    if term.function == LITERAL and (term.type == "long" or decimal_parts(term.type)):
        number = Decimal(term.text or "0").as_tuple()
        scale = max(0, -int(number.exponent))
        return max(len(number.digits), scale + 1), scale
    return (_DIGITS[term.type], 0) if term.type in _DIGITS else decimal_parts(term.type)


def _decimal(precision: int, scale: int, term: Term) -> str:
    if precision > _MOST_DIGITS:
        raise wrong_at(
            f"the result of {term.function} may need {precision} digits, and 38 is the most: cast to fewer.", term.place
        )
    return f"decimal({precision}, {scale})"


def _common(term: Term, terms: Sequence[Term]) -> str:
    """Return the type that holds the values of all terms; empty where all are null."""
    known = [each for each in terms if each.type]
    kinds = dict.fromkeys(each.type for each in known)
    if len(kinds) < 2:
        return next(iter(kinds), "")
    if set(kinds) == {"int", "long"}:
        return "long"
    if set(kinds) <= {"float", "double"}:
        return "double"
    parts = [_exact(each) for each in known]
    floats = [each for each in known if each.type in {"float", "double"}]
    if floats and all(
        part is not None and each.function == LITERAL
        for part, each in zip(parts, known, strict=True)
        if each not in floats
    ):
        return "double"
    exact = [part for part in parts if part is not None]
    if len(exact) == len(parts):
        scale = max(part[1] for part in exact)
        return _decimal(max(part[0] - part[1] for part in exact) + scale, scale, term)
    names = " and ".join(dict.fromkeys(map(_type_name, known)))
    hint = " An exact number beside a double needs a cast of one." if floats and exact else ""
    hint = " A date stands as date '2026-01-31'." if {"string"} < set(kinds) <= {"string", *_DATES} else hint
    raise wrong_at(f"{term.function} needs values of one type, not {names}.{hint}", term.place)


def cast(term: Term, kind: str) -> Term:
    """Return a term as a value of a type that holds its values."""
    if term.type == kind or not kind:
        return term
    if term.function == LITERAL and (not term.type or _exact(term)):
        return replace(term, type=kind)
    return Term(function="cast", arguments=(term,), type=kind, place=term.place)


def _alike(term: Term) -> Term:
    kind = _common(term, term.arguments)
    return replace(term, arguments=tuple(cast(each, kind) for each in term.arguments), type=kind)


def _compared(term: Term) -> Term:
    null = any(each.function == LITERAL and not each.type for each in term.arguments)
    if null and term.function != "is not distinct from":
        raise wrong_at(f"{term.function} null is true for no row: write `is null` or `is not null`.", term.place)
    return replace(_alike(term), type="boolean")


def _listed(term: Term) -> Term:
    null = next((each for each in term.arguments[1:] if each.function == LITERAL and not each.type), None)
    if null is not None:
        raise wrong_at(
            "a null in a list equals nothing, and `not in` would be true for no row: leave it out.", null.place
        )
    return replace(_alike(term), type="boolean")


def _logic(term: Term) -> Term:
    return _of(("boolean",), "a condition", "boolean")(term)


def _of(kinds: Sequence[str], wording: str, result: str | None, texts: int = 1) -> Callable[[Term], Term]:
    """Return a rule: all operands, or the first ``texts``, are of some types; the others are whole literals."""

    def rule(term: Term) -> Term:
        every = term.function in {"and", "or", "not", "||", "like", "ilike", "replace"}
        for number, each in enumerate(term.arguments):
            if every or number < texts:
                if each.type and each.type not in kinds:
                    raise wrong_at(
                        f"{term.function} needs {wording}, not {_type_name(each)}.{_HINT.get(term.function, '')}",
                        each.place,
                    )
            elif not (each.function == LITERAL and each.type == "long" and int(each.text or 0) >= (number == 1)):
                raise wrong_at(f"{term.function} needs whole numbers from 1 on behind its first argument.", each.place)
        arguments = tuple(each if each.type else cast(each, kinds[0]) for each in term.arguments)
        return replace(term, arguments=arguments, type=result or arguments[0].type)

    return rule


_HINT: Final = {"||": " Write cast(... as text)."}

_TEXT: Final = _of(("string",), "text", "string")


def _like(term: Term) -> Term:
    pattern = term.arguments[1]
    if pattern.function != LITERAL or pattern.type != "string":
        raise wrong_at(f"{term.function} needs its pattern as a text.", pattern.place)
    if "\\" in (pattern.text or "").replace("\\\\", "").replace("\\%", "").replace("\\_", ""):
        raise wrong_at(r"a backslash in a pattern stands before %, _ or another backslash.", pattern.place)
    return replace(_TEXT(term), type="boolean")


def _sum(term: Term) -> Term:
    """Return ``+``, ``-`` or ``*`` with its type: whole numbers give a long, decimals grow, and no digit is lost."""
    for each in term.arguments:
        if each.type and not (_exact(each) or each.type in {"float", "double"}):
            raise wrong_at(f"{term.function} needs numbers, not {_type_name(each)}.", each.place)
    if not any(decimal_parts(each.type) for each in term.arguments) or any(
        each.type in {"float", "double"} for each in term.arguments
    ):
        kind = "double" if _common(term, term.arguments) in {"float", "double"} else "long"
        return replace(term, arguments=tuple(cast(each, kind) for each in term.arguments), type=kind)
    known = [_exact(each) or (1, 0) for each in term.arguments]
    (one, scale), (other, other_scale) = known
    if term.function == "*":  # Spark would drop digits of the fraction from a precision of 39 on
        result = _decimal(one + other + 1, scale + other_scale, term)
    else:
        wide = max(scale, other_scale)
        result = _decimal(max(one - scale, other - other_scale) + wide + 1, wide, term)
    arguments = (cast(each, f"decimal({part[0]}, {part[1]})") for each, part in zip(term.arguments, known, strict=True))
    return replace(term, arguments=tuple(arguments), type=result)


def _quotient(term: Term) -> Term:
    whole = term.function == "%"
    for each in term.arguments:
        fits = each.type in {"int", "long"} if whole else _exact(each) or each.type in {"float", "double"}
        if each.type and not fits:
            raise wrong_at(
                f"{term.function} needs {'whole ' if whole else ''}numbers, not {_type_name(each)}.", each.place
            )
    kind = "long" if whole else "double"
    return replace(term, arguments=tuple(cast(each, kind) for each in term.arguments), type=kind)


def _round(term: Term) -> Term:
    value, places = term.arguments[0], term.arguments[1] if len(term.arguments) > 1 else None
    digits = int(places.text or 0) if places is not None and places.function == LITERAL and places.type == "long" else 0
    if places is not None and (places.type != "long" or places.function != LITERAL or not 0 <= digits <= _MOST_DIGITS):
        raise wrong_at("round needs a whole number of digits from 0 on.", places.place)
    parts = decimal_parts(value.type)
    if value.type not in {"float", "double"} and not parts:
        raise wrong_at(f"round needs a decimal or a double, not {_type_name(value)}.", value.place)
    if not parts:
        return replace(term, type="double", arguments=(cast(value, "double"), *term.arguments[1:]))
    scale = min(parts[1], digits)
    return replace(term, type=_decimal(min(parts[0] - parts[1] + 1 + scale, _MOST_DIGITS), scale, term))


def _case(term: Term) -> Term:
    branches, default = term.arguments[:-1], term.arguments[-1]
    conditions, values = branches[::2], [*branches[1::2], default]
    for each in conditions:
        if each.type not in {"", "boolean"}:
            raise wrong_at(f"case needs a condition behind `when`, not {_type_name(each)}.", each.place)
    kind = _common(term, values)
    cells = [cast(each, kind) for each in values]
    pairs = [part for pair in zip(conditions, cells, strict=False) for part in (cast(pair[0], "boolean"), pair[1])]
    return replace(term, arguments=(*pairs, cells[-1]), type=kind)


def _cast(term: Term) -> Term:
    value, kind = term.arguments[0], term.type
    if value.type and kind not in _CASTS["decimal" if decimal_parts(value.type) else value.type]:
        allowed = _CASTS["decimal" if decimal_parts(value.type) else value.type]
        if not (decimal_parts(kind) and "decimal" in allowed):
            raise wrong_at(
                f"a {value.type} cannot be cast to {kind}. Allowed: {', '.join(allowed) or 'nothing'}.", term.place
            )
    return term


_NUMBERS: Final = ("int", "long", "decimal", "double", "string")

_CASTS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": (*_NUMBERS, "boolean", "date"),
    **dict.fromkeys(("int", "long", "decimal", "float", "double"), _NUMBERS),
    "boolean": ("boolean", "string"),
    "date": ("date", "timestamp", "string"),
    "timestamp": ("timestamp", "date", "string"),
    "timestamptz": ("timestamptz", "date", "string"),
    "binary": (),
}
"""Type -> types that ``cast`` makes of it. A value that the type cannot hold becomes null."""

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "is not distinct from")

_RULES: Final[Mapping[str, Callable[[Term], Term]]] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    "in": _listed,
    **dict.fromkeys(("and", "or", "not"), _logic),
    **dict.fromkeys(("coalesce", "nullif", "greatest", "least"), _alike),
    **dict.fromkeys(("+", "-", "*"), _sum),
    **dict.fromkeys(("/", "%"), _quotient),
    **dict.fromkeys(("||", "upper", "lower", "trim", "replace", "substr", "left", "right"), _TEXT),
    **dict.fromkeys(("like", "ilike"), _like),
    "length": _of(("string",), "text", "int"),
    **dict.fromkeys(("year", "month", "day"), _of(_DATES, "a date or timestamp", "int")),
    "hour": _of(("timestamp", "timestamptz"), "a timestamp", "int"),
    "round": _round,
    "case": _case,
    "cast": _cast,
}
"""Function -> what types it; each is a function of ``expressions``."""
