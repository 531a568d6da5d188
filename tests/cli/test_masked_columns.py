"""What the command line shows of a source that masks columns: plain messages to who says so, masked events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.debezium_log import Log
from support.histories import deliver
from tidemark.cli.app import app
from tidemark.normalization.masked_events import HIDDEN_DETAIL

SOURCE = """\
source: hidden
format: canal_json
landing: landing/*
tables:
  shop.people: {mask: {name: redact}}
"""


@pytest.mark.usefixtures("lake")
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


def test_decode_masks_as_a_source_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows under any name of a column, statements and reasons show no plain value; other values stay."""
    people, plain = Log("people"), "a plain value"
    messages = [
        people.put(1, id=1, name=plain, note=plain),
        people.ddl(2, f"RENAME COLUMN name TO called, ADD COLUMN mail VARCHAR(9) DEFAULT '{plain}'"),
        people.put(3, {"id": 1, "called": plain, "note": "b"}, id=1, called=plain, note="c"),
        f'{{"op": "c", "after": "{plain}'.encode(),
    ]
    deliver(tmp_path, "dump", messages)
    (tmp_path / "hidden.yaml").write_text(SOURCE.replace("{name: redact}", "{name: redact, note: last4}"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    done = CliRunner().invoke(
        app, ["decode", "debezium_json", str(tmp_path / "dump.json"), "--masks-of", "hidden"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert plain not in done.output
    first, statement, second, refused = map(json.loads, done.stdout.splitlines())
    assert first["after"] == {"id": "1", "name": "****", "note": "****alue"}
    assert statement["schema_change"]["statement"].endswith("ADD COLUMN mail VARCHAR(9) DEFAULT '...'")
    assert (second["before"]["called"], second["after"]) == ("****", {"id": "1", "called": "****", "note": "****"})
    assert refused["quarantined"] == {"reason": "malformed", "detail": HIDDEN_DETAIL}
