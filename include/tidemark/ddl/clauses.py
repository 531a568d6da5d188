"""Where the clauses of ALTER TABLE begin: not every comma stands between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.words import capitals, split


def clauses_of(tokens: Sequence[Token], dialect: str) -> Iterator[Sequence[Token]]:
    """Yield the clauses of ALTER TABLE, each with its words.

    Args:
        tokens: behind the name of the table.
        dialect: of the statement.
    """
    parts = split(tokens, TokenType.COMMA)
    return _of_one_action(parts) if dialect == "tsql" else _with_lists(parts)


def _with_lists(clauses: Iterator[Sequence[Token]]) -> Iterator[Sequence[Token]]:
    """Yield the clauses, without the further names of a list of partitions or of columns to order by."""
    in_list = False
    for tokens in clauses:
        words = [capitals(token) for token in tokens[:2]]
        if in_list and (len(tokens) == 1 or words[1] in {"ASC", "DESC", "INTO", "TABLESPACE"}):
            continue
        in_list = words[1:] in (["PARTITION"], ["PARTITIONS"]) or words == ["ORDER", "BY"] or words[:1] == ["ORDER BY"]
        yield tokens


def _of_one_action(clauses: Iterator[Sequence[Token]]) -> Iterator[Sequence[Token]]:
    """Yield the clauses of SQL Server, where one ADD or DROP is followed by several columns, each with its words."""
    first = next(clauses, ())
    yield first
    action = first[:1]
    kind = first[1:2] if action and action[0].text.upper() == "DROP" else ()
    for tokens in clauses:
        if kind and tokens[0].text.upper() in {"COLUMN", "CONSTRAINT"}:
            kind, tokens = tokens[:1], tokens[1:]  # noqa: PLW2901
        yield [*action, *kind, *tokens]
