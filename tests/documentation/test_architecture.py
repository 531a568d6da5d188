"""The tables of the page about the architecture name what the tree has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LIBRARY = ROOT / "include" / "tidemark"


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


def test_the_layers_are_those_of_the_contract() -> None:
    """The table of layers has the layers of ``pyproject.toml``, in their order."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["type"] == "layers")
    table = PAGE[PAGE.index("## The layers") :].partition("Three boundaries")[0]
    assert [set(cell) for cell in _first_cells(table)] == [set(layer.split(" | ")) for layer in layers]
