"""Folders of tests are named as the packages that they test."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]

LIBRARY = TESTS.parent / "include" / "tidemark"

OF_NO_PACKAGE = {"deployment", "documentation", "fixtures", "lab", "packaging", "support"}
"""Folders for what lies beside the library, and for what tests share."""


def _folders(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if each.is_dir() and each.name != "__pycache__"}


def test_each_folder_has_the_name_of_a_package() -> None:
    """A package that is renamed takes its tests with it."""
    assert _folders(TESTS) - OF_NO_PACKAGE - _folders(LIBRARY) == set()


def test_each_package_has_a_folder() -> None:
    """The tests of a stage lie with those of the packages behind it."""
    assert _folders(LIBRARY) - _folders(TESTS) == {"stages"}
