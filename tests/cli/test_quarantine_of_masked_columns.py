"""Messages in quarantine hold plain values: a source that masks columns shows them to who says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidemark.cli.app import app

SOURCE = """\
source: hidden
format: canal_json
landing: landing/*
tables:
  shop.people: {mask: {name: redact}}
"""


def test_messages_of_a_source_with_masks_are_shown_by_plain_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names both ways out; the list of reasons and places needs no option."""
    (tmp_path / "hidden.yaml").write_text(SOURCE)
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    refused = CliRunner().invoke(app, ["quarantine", "show", "hidden"])
    assert refused.exit_code == 2
    assert "quarantine list" in refused.output
    assert "--plain" in refused.output
    for arguments in (["show", "hidden", "--plain"], ["list", "hidden"]):
        assert CliRunner().invoke(app, ["quarantine", *arguments]).exit_code == 0
