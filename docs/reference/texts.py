"""Texts that stand under constants and members in the code: what an editor shows of them."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable

from tidemark import PACKAGE


def texts_of(module: str) -> dict[str, str]:
    """Return the texts that stand under the constants of a module, by constant."""
    return texts_in(ast.parse((PACKAGE / module).read_text("utf-8")).body)


def texts_in(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Return the texts that stand under the names of a module or a class, by name."""
    found = {}
    for statement, after in itertools.pairwise(body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and is_text:
            found[statement.targets[0].id] = str(ast.literal_eval(after.value))  # type: ignore[attr-defined]
    return found
