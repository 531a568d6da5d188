"""Functions that Spark's workers run lie in modules that are light to import.

Spark pickles a function by the name of its module, so its workers import that module with all that it imports. The
contract of ``pyproject.toml`` names the modules for which that is cheap; these tests look for what it leaves out.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "include" / "tidemark"
HANDED_OVER = {"mapInArrow", "arrow_udf"}
"""What takes a function for the workers, as its first argument."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _light() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (light,) = (each for each in contracts if each["name"] == "What workers import knows neither Spark nor Iceberg")
    return set(light["source_modules"])


def _modules(tree: ast.Module, own: str) -> dict[str, str]:
    """Return the module of each name that a module imports from the library, and of each function of its own."""
    found = {node.name: own for node in tree.body if isinstance(node, Function)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidemark"):
            folder = ROOT / "include" / Path(*str(node.module).split("."))
            for alias in node.names:
                is_module = (folder / f"{alias.name}.py").is_file()
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}" if is_module else str(node.module)
    return found


def _named(node: ast.AST) -> Iterator[str]:
    """Yield the names in an expression, but for those of functions that are called here, not on workers."""
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Call) and child is node.func):
            yield from _named(child)


def _of_workers(given: ast.expr, within: Function) -> set[str]:
    """Return the names that workers need for a function, through what the function around it assigns and defines."""
    needed, left = set[str](), set(_named(given))
    while left:
        needed |= left
        behind = set[str]()
        for node in ast.walk(within):
            if isinstance(node, ast.Assign) and {each.id for each in node.targets if isinstance(each, ast.Name)} & left:
                behind |= set(_named(node.value))
            if isinstance(node, Function) and node is not within and node.name in left:
                behind |= {each.id for line in node.body for each in ast.walk(line) if isinstance(each, ast.Name)}
        left = behind - needed
    return needed


def _imported_by_workers() -> Iterator[tuple[str, str, str]]:
    """Yield a module that hands a function to workers, a name that they need, and the module it comes from."""
    texts = {path: path.read_text("utf-8") for path in sorted(LIBRARY.rglob("*.py"))}
    for path, text in texts.items():
        if not any(f"{name}(" in text for name in HANDED_OVER):
            continue
        tree = ast.parse(text)
        own = ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts)
        known = _modules(tree, own)
        for within in (node for node in ast.walk(tree) if isinstance(node, Function)):
            for call in (node for node in ast.walk(within) if isinstance(node, ast.Call)):
                called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if called in HANDED_OVER:
                    yield from ((own, name, known[name]) for name in _of_workers(call.args[0], within) & {*known})


def test_what_workers_run_is_light_to_import() -> None:
    """Each function that is handed to Spark's workers is in a module that the contract names."""
    light = _light()
    assert {
        each for each in _imported_by_workers() if not any(f"{each[2]}.".startswith(f"{name}.") for name in light)
    } == set()


def test_the_functions_are_found() -> None:
    """One that is given by name, one in a partial, and one that a function of the driver defines."""
    found = set(_imported_by_workers())
    assert {
        ("tidemark.folding.bag_copies", "redelivery", "tidemark.folding.redelivery"),
        ("tidemark.spark.changed_frames", "read_task", "tidemark.lake.changed_rows"),
        ("tidemark.values.masked_columns", "keyed", "tidemark.values.masking"),
    } <= found
