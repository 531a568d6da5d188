"""The tables and the picture of the page about the architecture name what the tree has."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.ledger.schemas import NAMES
from tidemark.ledger.states import CutState

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PICTURE = (ROOT / "docs" / "architecture.svg").read_text("utf-8")
LIBRARY = ROOT / "include" / "tidemark"

BESIDE_THE_FLOW = {"rebuilds", "reconciliations", "erasures"}
"""Tables of the ledger for what is done beside the flow."""


def _first_cells(text: str) -> Iterator[list[str]]:
    """Yield what stands in code in the first cell of each row."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield re.findall(r"`([^`]+)`", line.split("|")[1])


def _modules() -> set[str]:
    """Return the modules that the tables of the stages name, as ``package/module``."""
    named = set()
    for cell in _first_cells(PAGE[: PAGE.index("## Beside the flow")]):
        package = ""
        for name in cell:
            package, _, module = name.rpartition("/") if "/" in name else (package, "", name)
            named.add(f"{package}/{module}")
    return named


def test_every_module_of_a_stage_is_there() -> None:
    """A module that was renamed or dropped is not named any more."""
    gone = {name for name in _modules() if "<" not in name and not (LIBRARY / f"{name}.py").is_file()}
    assert not gone


@pytest.mark.parametrize("package", ["compaction", "folding", "quality"])
def test_no_module_behind_compact_and_check_is_left_out(package: str) -> None:
    """Whoever adds a module to these packages says in a row what it does."""
    there = {f"{package}/{file.stem}" for file in (LIBRARY / package).glob("*.py") if file.stem != "__init__"}
    assert there - _modules() == set()


def _imported(module: str) -> set[str]:
    """Return what a module imports of the library: ``package/module``, and ``package/`` for each of their packages."""
    found = set[str]()
    for node in ast.walk(ast.parse((LIBRARY / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidemark."):
            base = str(node.module).removeprefix("tidemark.").replace(".", "/")
            found |= {base, *(f"{base}/{name.name}" for name in node.names)}
    modules = {name for name in found if (LIBRARY / f"{name}.py").is_file()}
    return modules | {f"{name.partition('/')[0]}/" for name in modules}


def _beside_the_flow() -> Iterator[tuple[str, set[str]]]:
    """Yield the stages of the table *Beside the flow*, each with the packages of its row."""
    table = PAGE[PAGE.index("## Beside the flow") :].partition("\n\n`queries/`")[0]
    for line in table.splitlines():
        if line.startswith("| `"):
            _, stage, _, packages, _ = line.split("|")
            yield stage.strip(" `"), set(re.findall(r"`([^`]+)`", packages))


@pytest.mark.parametrize(("stage", "packages"), _beside_the_flow())
def test_what_lies_beside_the_flow_is_done_by_the_named_packages(stage: str, packages: set[str]) -> None:
    """The stage imports each of them, or a module that it imports does."""
    direct = _imported(f"stages/{stage}")
    all_of_them = direct.union(*(_imported(name) for name in direct if not name.endswith("/")))
    assert packages
    assert packages - all_of_them == set()


def test_every_stage_is_on_the_page() -> None:
    """Each has its own part among the five, or a row beside the flow."""
    five = set(re.findall(r"(?m)^### (\w+)$", PAGE))
    there = {file.stem for file in (LIBRARY / "stages").glob("*.py")} - {"__init__"}
    assert five | {stage for stage, _ in _beside_the_flow()} == there


def test_the_picture_has_the_tables_of_the_ledger() -> None:
    """What stands in its column are tables, states of cuts, and nothing else; no table is left out."""
    column = " ".join(re.findall(r'<text x="812" [^>]*>([^<]+)<', PICTURE))
    words = set(re.findall(r"\w+", column))
    assert words - set(NAMES) - set(CutState) == {"verdict", "then", "or"}
    assert set(NAMES) - words == BESIDE_THE_FLOW


def test_the_picture_has_modules_that_the_tables_explain() -> None:
    """Each box lies in the frame of its package."""
    package, boxes = "", set()
    for kind, name in re.findall(r'class="(pkg|code)"[^>]*>([a-z_]+)/?<', PICTURE):
        package = name if kind == "pkg" else package
        boxes |= {f"{package}/{name}"} if kind == "code" else set()
    assert len(boxes) == 20
    assert boxes - _modules() == set()


def test_the_layers_are_those_of_the_contract() -> None:
    """The table of layers has the layers of ``pyproject.toml``, in their order."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["type"] == "layers")
    table = PAGE[PAGE.index("## The layers") :].partition("Three boundaries")[0]
    assert [set(cell) for cell in _first_cells(table)] == [set(layer.split(" | ")) for layer in layers]
