"""The pages that are made from the code say what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that makes them."""
    spec = importlib.util.spec_from_file_location("generate", REFERENCE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_current(generator: ModuleType) -> None:
    """Whoever adds a key, a command or a column makes them again: `python docs/reference/generate.py`."""
    pages = generator.pages()
    assert {file.name for file in REFERENCE.glob("*.md")} == pages.keys()
    for name, text in pages.items():
        assert (REFERENCE / name).read_text("utf-8") == text, f"{name}: run `python docs/reference/generate.py`"


def test_every_key_and_option_has_a_meaning(generator: ModuleType) -> None:
    """No row of the source file and of the command line ends without a word."""
    for name in ("source-file.md", "command-line.md"):
        rows = [line for line in generator.pages()[name].splitlines() if line.startswith("|")]
        assert len(rows) > 80
        assert not [row for row in rows if row.endswith("|  |")], name
