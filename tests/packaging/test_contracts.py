"""The import contracts that list modules one by one list all of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "include" / "tidemark"


@pytest.mark.parametrize(
    ("contract", "list_", "package", "is_listed"),
    [
        ("Formats are independent of each other", "modules", "formats", lambda name: name[0] != "_"),
        ("What formats share stays among them", "protected_modules", "formats", lambda name: name[0] == "_"),
        ("Stages are independent of each other", "modules", "stages", lambda name: True),  # noqa: ARG005
    ],
)
def test_no_module_is_left_out(contract: str, list_: str, package: str, is_listed: Callable[[str], bool]) -> None:
    """Whoever adds a format or a stage adds it to its contract."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (listed,) = (each[list_] for each in contracts if each["name"] == contract)
    there = {path.stem for path in (LIBRARY / package).iterdir() if not path.name.startswith("__")}
    assert set(listed) == {f"tidemark.{package}.{name}" for name in there if is_listed(name)}
