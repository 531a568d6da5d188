"""Expressions over one row, as source files write them (``where``, ``derive``): SQL text to a closed set of functions.

What is in no table of this module is refused, so an expression sees nothing but the row: it has no subquery, clock,
random number or function that a user made. ``expression_types`` types it, ``computed_columns`` hands it to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tidemark.values.expression_literals import literal

if TYPE_CHECKING:
    from sqlglot import exp

COLUMN: Final = "column"
LITERAL: Final = "literal"

LONGEST: Final = 4000
"""Characters of an expression."""

_DEEPEST: Final = 40
"""Functions in functions."""

FUNCTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "EQ": ("=", ("this", "expression")),
    "NEQ": ("<>", ("this", "expression")),
    "LT": ("<", ("this", "expression")),
    "LTE": ("<=", ("this", "expression")),
    "GT": (">", ("this", "expression")),
    "GTE": (">=", ("this", "expression")),
    "NullSafeEQ": ("is not distinct from", ("this", "expression")),
    "And": ("and", ("this", "expression")),
    "Or": ("or", ("this", "expression")),
    "Not": ("not", ("this",)),
    "Is": ("is not distinct from", ("this", "expression")),
    "In": ("in", ("this", "expressions")),
    "Like": ("like", ("this", "expression")),
    "ILike": ("ilike", ("this", "expression")),
    "Add": ("+", ("this", "expression")),
    "Sub": ("-", ("this", "expression")),
    "Mul": ("*", ("this", "expression")),
    "Div": ("/", ("this", "expression")),
    "Mod": ("%", ("this", "expression")),
    "DPipe": ("||", ("this", "expression")),
    "Concat": ("||", ("expressions",)),
    "Coalesce": ("coalesce", ("this", "expressions")),
    "Greatest": ("greatest", ("this", "expressions")),
    "Least": ("least", ("this", "expressions")),
    "Nullif": ("nullif", ("this", "expression")),
    "Upper": ("upper", ("this",)),
    "Lower": ("lower", ("this",)),
    "Trim": ("trim", ("this",)),
    "Length": ("length", ("this",)),
    "Substring": ("substr", ("this", "start", "length")),
    "Left": ("left", ("this", "expression")),
    "Right": ("right", ("this", "expression")),
    "Replace": ("replace", ("this", "expression", "replacement")),
    "Round": ("round", ("this", "decimals")),
    "Year": ("year", ("this",)),
    "Month": ("month", ("this",)),
    "Day": ("day", ("this",)),
    "Hour": ("hour", ("this",)),
}
"""Node of sqlglot -> function, and the node's parts that are its arguments. Any other part is refused."""

_HARMLESS: Final = frozenset({"safe", "coalesce", "is_nvl", "ignore_nulls", "typed"})
"""Parts of nodes that say how other databases call the same."""

_TYPES: Final[Mapping[str, str]] = {
    "BOOLEAN": "boolean", "INT": "int", "BIGINT": "long", "DOUBLE": "double", "DATE": "date", "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp", "TIMESTAMPTZ": "timestamptz", "TEXT": "string", "VARCHAR": "string",
}  # fmt: skip
"""Type in ``cast`` -> Iceberg type; ``decimal(p, s)`` beside them."""

ALLOWED: Final = (
    "columns, texts, numbers, true, false, null, date '2026-01-31', timestamp '...', and, or, not, = <> < <= > >=, "
    "is null, is not distinct from, in, between, like, ilike, + - * / %, ||, case, cast, coalesce, nullif, greatest, "
    "least, upper, lower, trim, length, substr, left, right, replace, round, year, month, day, hour"
)
"""What an expression may use, for people."""


class ExpressionError(ValueError):
    """An expression is wrong; the text says what, and at which character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A function with its arguments, a column, or a literal."""

    function: str
    """A function of ``FUNCTIONS``, ``case`` or ``cast``; ``COLUMN`` or ``LITERAL``."""
    arguments: tuple[Term, ...] = ()
    text: str | None = None
    """Name of the column, or value of the literal; None in a literal: null."""
    type: str = ""
    """Iceberg type of the value; of a literal and of ``cast`` from the beginning. Empty: not known yet, or null."""
    place: int = 0
    """Character of the expression, from 1; 0: not known."""

    def columns(self) -> Iterator[Term]:
        """Yield the columns that it names."""
        if self.function == COLUMN:
            yield self
        for each in self.arguments:
            yield from each.columns()


def wrong_at(message: str, place: int = 0) -> ExpressionError:
    """Return the error of an expression at a character of it."""
    return ExpressionError(f"at character {place}: {message}" if place else message)


@lru_cache(maxsize=256)
def parsed(text: str) -> Term:
    """Return an expression.

    Raises:
        ExpressionError: it is no expression, or uses what is not allowed.
    """
    import sqlglot  # noqa: PLC0415  a source file without an expression does not pay for it
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    if len(text) > LONGEST:
        raise wrong_at(f"it is longer than {LONGEST} characters.")
    try:
        tree = sqlglot.parse_one(text, into=exp.Condition)
    except RecursionError:
        raise wrong_at("it is nested too deeply.") from None
    except SqlglotError as error:
        details: dict[str, Any] = (getattr(error, "errors", None) or [{}])[0]
        near = str(details.get("highlight") or "")
        place = len(str(details.get("start_context") or "")) + 1 if near and len(text) <= _SHOWN else 0
        raise wrong_at(f"it cannot be read{f' near {near!r}' if near else ''}. Allowed: {ALLOWED}.", place) from None
    return _term(tree, 0)


_SHOWN: Final = 100
"""Characters before an error that sqlglot shows."""


def _term(node: exp.Expr, depth: int) -> Term:
    """Return what a node of sqlglot's tree stands for."""
    if depth > _DEEPEST:
        raise wrong_at("it is nested too deeply.", _place(node))
    kind = type(node).__name__
    if kind == "Paren":
        return _term(node.this, depth)
    if kind in {"Literal", "Boolean", "Null", "Neg"}:
        return _literal(node, depth)
    if kind == "Column":
        return _column(node)
    if kind in _SPECIAL:
        return _SPECIAL[kind](node, depth)
    if kind not in FUNCTIONS:
        raise wrong_at(f"{_shown(node)} is not allowed. Allowed: {ALLOWED}.", _place(node))
    function, parts = FUNCTIONS[kind]
    negated = bool(node.args.get("negate"))
    _refuse_parts(node, {*parts, *({"negate"} if function in {"like", "ilike"} else ())})
    operands = [each for part in parts for each in _nodes(node.args.get(part))]
    if kind in _CHAINS:  # a long chain is one function, not as many levels
        operands = list(node.flatten())
    found = Term(function=function, arguments=tuple(_term(each, depth + 1) for each in operands), place=_place(node))
    return Term(function="not", arguments=(found,), place=found.place) if negated else found


_CHAINS: Final = frozenset({"And", "Or", "DPipe"})


def _literal(node: exp.Expr, depth: int) -> Term:
    kind, place = type(node).__name__, _place(node)
    if kind == "Null":
        return Term(function=LITERAL, place=place)
    if kind == "Boolean":
        return Term(function=LITERAL, text=str(node.this).lower(), type="boolean", place=place)
    if kind == "Neg":
        inner = _term(node.this, depth + 1)
        if inner.function == LITERAL and inner.text is not None and inner.text[0].isdigit():
            return Term(function=LITERAL, text=f"-{inner.text}", type=inner.type, place=inner.place)
        zero = Term(function=LITERAL, text="0", type="long", place=inner.place)
        return Term(function="-", arguments=(zero, inner), place=inner.place)
    if node.is_string:
        return Term(function=LITERAL, text=node.name, type="string", place=place)
    return Term(function=LITERAL, text=node.name, type=_number_type(node.name, place), place=place)


def _number_type(text: str, place: int) -> str:
    if "e" in text.lower():
        return "double"
    number = Decimal(text)
    if number == number.to_integral_value() and "." not in text and abs(number) < 1 << 63:
        return "long"
    scale = max(0, -int(number.as_tuple().exponent))
    digits = max(len(number.as_tuple().digits), scale + 1)
    if digits > 38:
        raise wrong_at(f"{text} has more than 38 digits.", place)
    return f"decimal({digits}, {scale})"


def _column(node: exp.Expr) -> Term:
    place = _place(node)
    if node.args.get("table") or type(node.this).__name__ != "Identifier":
        raise wrong_at(f"{_shown(node)} is no column of the row: write its name alone.", place)
    return Term(function=COLUMN, text=node.name, place=place)


def _case(node: exp.Expr, depth: int) -> Term:
    _refuse_parts(node, {"this", "ifs", "default"})
    arguments: list[Term] = []
    subject = node.args.get("this")
    for branch in node.args["ifs"]:
        condition = _term(branch.this, depth + 1)
        if subject is not None:
            condition = Term(function="=", arguments=(_term(subject, depth + 1), condition), place=condition.place)
        arguments += [condition, _term(branch.args["true"], depth + 1)]
    default = node.args.get("default")
    arguments.append(Term(function=LITERAL) if default is None else _term(default, depth + 1))
    return Term(function="case", arguments=tuple(arguments), place=_place(node))


def _between(node: exp.Expr, depth: int) -> Term:
    _refuse_parts(node, {"this", "low", "high"})
    value, low, high = (_term(node.args[part], depth + 1) for part in ("this", "low", "high"))
    sides = [("<=", low, value), ("<=", value, high)]
    both = tuple(Term(function=name, arguments=(one, other), place=one.place) for name, one, other in sides)
    return Term(function="and", arguments=both, place=value.place)


def _cast(node: exp.Expr, depth: int) -> Term:
    _refuse_parts(node, {"this", "to", "_type"})
    inner, place = _term(node.this, depth + 1), _place(node)
    kind = _type_of(node.args["to"], place)
    if inner.function == LITERAL and inner.type == "string" and kind != "string":
        return Term(function=LITERAL, text=_value_of(inner.text or "", kind, inner.place), type=kind, place=inner.place)
    return Term(function="cast", arguments=(inner,), type=kind, place=place or inner.place)


def _date(node: exp.Expr, depth: int) -> Term:
    _refuse_parts(node, {"this"})
    return Term(function="cast", arguments=(_term(node.this, depth + 1),), type="date", place=_place(node))


_SPECIAL: Final = {"Case": _case, "Between": _between, "Cast": _cast, "Date": _date}


def _type_of(to: exp.Expr, place: int) -> str:
    name, parts = to.this.name, [int(each.name) for each in to.expressions if each.name.isdecimal()]
    if name == "DECIMAL" and parts and len(parts) <= 2:
        precision, scale = parts[0], parts[1] if len(parts) > 1 else 0
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision}, {scale})"
        raise wrong_at("decimal(p, s) needs 1 <= p <= 38 and s <= p.", place)
    if name not in _TYPES or to.expressions:
        allowed = "boolean, int, bigint, double, decimal(p, s), date, timestamp, timestamptz, text"
        raise wrong_at(f"cast to {to.sql().lower()} is not allowed. Allowed: {allowed}.", place)
    return _TYPES[name]


def _value_of(text: str, kind: str, place: int) -> str:
    """Return a text that is cast as a literal of the type: it is known to hold a value, so no row decides."""
    try:
        return literal(text, kind)
    except (ValueError, KeyError, ArithmeticError):
        zone = " with a zone (Z)" if kind == "timestamptz" else " without a zone" if kind == "timestamp" else ""
        raise wrong_at(f"'{text}' is no {kind}{zone}.", place) from None


def _nodes(part: Any) -> list[Any]:  # noqa: ANN401  a part of sqlglot's tree
    return [] if part is None else part if isinstance(part, list) else [part]


def _refuse_parts(node: exp.Expr, known: set[str]) -> None:
    for name, part in node.args.items():
        if part and name not in known and name not in _HARMLESS:
            raise wrong_at(f"{_shown(node)} is not allowed in this form. Allowed: {ALLOWED}.", _place(node))


def _place(node: exp.Expr) -> int:
    starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    return min(starts) + 1 if starts else 0


def _shown(node: exp.Expr) -> str:
    text = node.sql()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
