"""Formats are found by their module's name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemark import formats
from tidemark.errors import UnknownNameError


def test_names_are_the_modules_without_underscore() -> None:
    """Helpers that formats share are no formats."""
    assert {"canal_json", "debezium_json"} <= set(formats.names())
    assert not [name for name in formats.names() if name.startswith("_")]


def test_listing_names_imports_no_format() -> None:
    """Names can be listed where a DAG is parsed, at no cost."""
    script = (
        "import sys; from tidemark import formats; formats.names(); print([m for m in sys.modules if '_json' in m])"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert "tidemark.formats" not in result.stdout


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """The error names what was probably meant, and all that there is."""
    with pytest.raises(
        UnknownNameError, match=r"Unknown format 'canl_json'\. Did you mean 'canal_json'\?.*debezium_json"
    ):
        formats.resolve("canl_json")


def test_a_helper_module_cannot_be_resolved() -> None:
    """A name with an underscore in front is not imported, nor is a path."""
    for name in ("_json", "..events", "", "canal_json.decode"):
        with pytest.raises(UnknownNameError):
            formats.resolve(name)


@pytest.mark.parametrize("name", formats.names())
def test_every_format_says_who_writes_it_and_what_each_option_means(name: str) -> None:
    """The command ``formats`` has no other place to read it from."""
    module = formats.resolve(name)
    assert all(module.TOOLS)
    assert module.TOOLS
    assert module.UNTOLD
    assert isinstance(module.TRAITS, formats.Traits)
    for field in module.Options.model_fields.values():
        assert field.description
