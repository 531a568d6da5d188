"""Modules and functions of the library are as small as CONTRIBUTING.md promises."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "include" / "tidemark"
MODULES = {str(path.relative_to(LIBRARY)): path.read_text("utf-8") for path in sorted(LIBRARY.rglob("*.py"))}

OPTIONS_OF_COMMANDS = {"cli/erase_command.py erase", "cli/jobs.py command", "stages/erase.py run"}
"""Functions with more parameters: each is an option of a command line."""


@cache
def _functions() -> Sequence[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{module} {node.name}", node)
        for module, text in MODULES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_modules_have_up_to_300_lines() -> None:
    """A module of the library has up to 300 lines."""
    assert {module: size for module, text in MODULES.items() if (size := len(text.splitlines())) > 300} == {}


def test_functions_have_up_to_60_lines() -> None:
    """A function of the library has up to 60 lines, decorators and docstring included, and most have up to 10."""
    sizes = []
    for name, node in _functions():
        begin = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        sizes.append(((node.end_lineno or begin) - begin + 1, name))
    assert [each for each in sizes if each[0] > 60] == []
    assert sum(size <= 10 for size, _ in sizes) > len(sizes) / 2


def test_functions_have_up_to_6_parameters() -> None:
    """A function of the library has up to 6 parameters, but where each one is an option of a command line."""
    found = []
    for name, node in _functions():
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found.append((len([each for each in given if each.arg not in {"self", "cls"}]), name))
    assert {name for count, name in found if count > 6} == OPTIONS_OF_COMMANDS
