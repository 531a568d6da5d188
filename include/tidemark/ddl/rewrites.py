"""Tells whether a changed column keeps the values that its rows hold, or the database computes others.

The database writes what it computes into the rows that are there, and no row event shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.changes import Name
from tidemark.ddl.words import UnreadableError, Words, capitals, closing

_Tokens = Sequence[Token]


def type_and_expression(tokens: _Tokens) -> tuple[_Tokens, _Tokens | None]:
    """Return the type behind PostgreSQL's TYPE, and the expression behind USING; None where there is no USING."""
    return _divided(tokens, [capitals(token) == "USING" for token in tokens])


def keeps_values(expression: _Tokens, column: str, table: Name, type_: _Tokens) -> bool:
    """Return whether an expression behind USING is the column itself, as it is or cast to its new type.

    Such an expression does what PostgreSQL does without USING. A cast to ``text`` in between loses nothing.

    Args:
        expression: of PostgreSQL.
        column: the column that gets the type.
        table: its table.
        type_: the type that it gets.
    """
    inner, cast = _cast(_bare(expression))
    if cast is not None and [token.text.upper() for token in cast[:2]] == ["TEXT", "::"]:
        cast = cast[2:]  # the way from one enumeration to another, and to and from numbers
    reader = Words(_bare(inner), "postgres")
    try:
        named = reader.name().parts
        reader.ends()
    except UnreadableError:
        return False
    itself = named in {(column,), (table.parts[-1], column), (*table.parts, column)}
    return itself and (cast is None or _is_same(cast, type_))


def is_computed(definition: _Tokens) -> bool:
    """Return whether the definition of a column has the expression of its values: ``AS (a + b)``."""
    return any(
        capitals(token) == "AS" and following.token_type is TokenType.L_PAREN
        for token, following in itertools.pairwise(definition)
    )


def _bare(tokens: _Tokens) -> _Tokens:
    """Return an expression without the brackets around it."""
    for _ in range(_MOST_BRACKETS):
        if not tokens or tokens[0].token_type is not TokenType.L_PAREN or closing(tokens[1:]) != len(tokens) - 2:
            break
        tokens = tokens[1:-1]
    return tokens


_MOST_BRACKETS = 8
"""More brackets around a column are not looked into, so that a hostile text costs little."""


def _cast(tokens: _Tokens) -> tuple[_Tokens, _Tokens | None]:
    """Return what an expression casts, and the type to which it does; None where it is no cast."""
    if len(tokens) > 1 and capitals(tokens[0]) == "CAST" and tokens[1].token_type is TokenType.L_PAREN:
        inside = _bare(tokens[1:])
        return _divided(inside, [capitals(token) == "AS" for token in inside])
    return _divided(tokens, [token.token_type is TokenType.DCOLON for token in tokens])


def _divided(tokens: _Tokens, marks: Sequence[bool]) -> tuple[_Tokens, _Tokens | None]:
    """Return what stands before the first mark, and what stands behind it; None where there is none."""
    if True not in marks:
        return tokens, None
    place = marks.index(True)
    return tokens[:place], tokens[place + 1 :]


def _is_same(cast: _Tokens, type_: _Tokens) -> bool:
    """Return whether a cast is to the type that a column gets. A cast without a length leaves the length to the column.

    Any other cast may round or shorten values before they get the type.
    """
    type_ = _divided(type_, [capitals(token) == "COLLATE" for token in type_])[0]
    (to, length), (got, wanted) = _name_and_length(cast), _name_and_length(type_)
    if to in _SAME and length == "":
        return _SAME[to] == _SAME.get(got)
    return (_SAME.get(to, to), length) == (_SAME.get(got, got), wanted)


def _name_and_length(type_: _Tokens) -> tuple[str, str]:
    """Return the words of a type, and what stands in its brackets."""
    before, _, inside = " ".join(token.text.lower() for token in type_).partition(" ( ")
    length, _, behind = inside.partition(" )")
    return before + behind, length


_SAME: Mapping[str, str] = {
    **dict.fromkeys(("int", "integer", "int4"), "int"),
    **dict.fromkeys(("bigint", "int8"), "bigint"),
    **dict.fromkeys(("smallint", "int2"), "smallint"),
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("double precision", "float8"), "double"),
    **dict.fromkeys(("real", "float4"), "real"),
    **dict.fromkeys(("decimal", "numeric"), "numeric"),
    **dict.fromkeys(("timestamp", "timestamp without time zone"), "timestamp"),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), "timestamptz"),
    **dict.fromkeys(("varchar", "character varying"), "varchar"),
}
"""Names of PostgreSQL's types to one name of each. A type whose name alone has a length is left out: ``char`` has 1."""
