"""Formats that other packages bring, by an entry point.

What becomes of the local scheduler where one cannot be imported is in ``orchestration/test_preloaded.py``.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.plug_ins import plug_in
from tidemark import formats
from tidemark.errors import ConfigurationError
from tidemark.sources.files import load_source

PAGE = Path(__file__).parents[2] / "docs" / "format-plugins.md"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of modules; afterwards no plug-in is remembered."""
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield tmp_path
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]
    forget()


def forget() -> None:
    """Let the next question look for plug-ins again."""
    importlib.invalidate_caches()
    for cached in (formats.names, formats.own, formats._plugged_in):
        cached.cache_clear()


def install(site: Path, package: str, name: str, code: str) -> None:
    """Put a package with one format there, and look for plug-ins again."""
    plug_in(site, package, name, code)
    forget()


def test_a_package_brings_a_format(site: Path) -> None:
    """The module of the page is found by its name, and a source file may name it."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    install(site, "acme_cdc", "acme_json", code)
    assert "acme_json" in formats.names()
    module = formats.resolve("acme_json")
    assert module.TOOLS == ("Acme Replicator",)
    file = site / "shop.yaml"
    file.write_text(f"source: shop\nformat: acme_json\nlanding: {site}/*.json\n")
    source = load_source(file)
    assert source.format == "acme_json"
    assert isinstance(source.options, module.Options)


@pytest.mark.parametrize(
    ("name", "code", "problem"),
    [
        ("canal_json", "", "the package acme_cdc brings a format 'canal_json', and Tidemark has one of that name"),
        (
            "acme_json",
            "import no_such_module",
            "format 'acme_json' of the package acme_cdc cannot be imported: No module",
        ),
        ("acme_json", "TOOLS = UNTOLD = ()", "acme_cdc has no Options, decode"),
    ],
)
def test_a_format_that_cannot_be_used_is_named(site: Path, name: str, code: str, problem: str) -> None:
    """With its package, and what is wrong with it."""
    install(site, "acme_cdc", name, code)
    with pytest.raises(ConfigurationError, match=problem):
        formats.resolve(name)


NEEDED = """
from pydantic import BaseModel as Options
from tidemark.formats import Placing, Traits
TOOLS = UNTOLD = ()
def decode(message, options): return []
"""


def test_a_format_says_what_its_messages_are_in_one_value(site: Path) -> None:
    """A format that leaves it out has the defaults."""
    install(site, "acme_cdc", "acme_json", NEEDED + "TRAITS = Traits(pairs_updates=True, moves_rows=False)")
    install(site, "acme_other", "acme_avro", NEEDED)
    assert formats.traits_of("acme_json") == formats.Traits(pairs_updates=True, moves_rows=False)
    assert formats.traits_of("acme_avro") == formats.Traits()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("TRAITS = Traits(rank_copies=True)", "cannot be imported: .*unexpected keyword argument 'rank_copies'"),
        ("TRAITS = {'ranks_copies': True}", "TRAITS of acme_cdc is no `Traits`"),
        (
            "RANKS_COPIES = True\nMOVES_ROWS = False",
            (
                "acme_cdc has RANKS_COPIES and MOVES_ROWS, which Tidemark no longer reads.*"
                r"`TRAITS = Traits\(ranks_copies=True, moves_rows=False\)`"
            ),
        ),
        (
            "def ranks_by_commit(parts): return True\nTRAITS = Traits(pairs_updates=True)",
            r"acme_cdc has ranks_by_commit, .*`TRAITS = Traits\(ranks_by_commit=ranks_by_commit\)`",
        ),
    ],
)
def test_what_a_format_says_elsewhere_is_not_left_unread(site: Path, code: str, problem: str) -> None:
    """A misspelt name, and a name of earlier versions: stages would take the format for another kind."""
    install(site, "acme_cdc", "acme_json", NEEDED + code)
    with pytest.raises(ConfigurationError, match=problem):
        formats.resolve("acme_json")


def test_two_packages_may_not_bring_one_name(site: Path) -> None:
    """Which of them reads a source would depend on how they were installed."""
    install(site, "acme_one", "acme_json", "")
    install(site, "acme_two", "acme_json", "")
    with pytest.raises(
        ConfigurationError, match=r"the package acme_\w+ brings a format 'acme_json', and the package acme_"
    ):
        formats.names()
