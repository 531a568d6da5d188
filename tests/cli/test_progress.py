"""What a command does is shown while it does it on a terminal, and nothing of that is left there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark import up
from tidemark.cli import running
from tidemark.cli.progress import so_far, under_way
from tidemark.stages import StageReport

PROGRAM = """
import sys, time
from tidemark.cli.progress import under_way
with under_way("erp compact", quiet=sys.argv[1] == "quiet"):
    time.sleep(0.6)
    sys.stderr.write("a warning\\n")
    time.sleep(0.6)
print("result")
"""


def on_a_terminal(word: str) -> bytes:
    """Run the program with a terminal as standard error; return what the terminal got."""
    terminal, error = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, word], stdout=subprocess.PIPE, stderr=error, check=True, env=environment
    )
    os.close(error)
    assert done.stdout == b"result\n"
    written = b""
    try:
        while part := os.read(terminal, 65536):
            written += part
    except OSError:  # the end of a terminal that nobody writes to
        pass
    finally:
        os.close(terminal)
    return written


def test_a_terminal_shows_what_is_done_and_for_how_long() -> None:
    """The line goes at the end, and a warning stands above it; with --json there is none."""
    written = on_a_terminal("loud")
    assert b"erp compact, 0 s" in written
    assert b"erp compact, 1 s" in written
    assert b"a warning" in written
    assert written.rstrip().endswith(b"\x1b[2K")
    assert on_a_terminal("quiet").split() == [b"a", b"warning"]


def test_what_is_no_terminal_gets_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither on standard output nor on standard error."""
    with under_way("erp compact"):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_stage_is_shown_with_what_the_stages_before_it_counted() -> None:
    """The counts that a person knows, without those that are zero."""
    reports = [
        StageReport(stage="land", source="erp", summary={"files": 1, "messages": 51, "refused": 0, "batch": 3}),
        StageReport(stage="normalize", source="erp", summary={"decoded": 50, "events": 0, "batch": 3}),
    ]
    assert so_far("erp", "compact", reports) == "erp compact (1 files, 51 messages so far)"
    assert so_far("erp", "land", []) == "erp land"


def test_a_report_fits_the_terminal_and_cuts_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary is broken between words; counts that are zero in all tables are left out if others are not."""
    name = "shop.a_table_with_a_rather_long_name_for_a_narrow_terminal"
    counts = {"events": 5, "applied": 5, "superseded": 0, "duplicate": 0, "held": 0, "quarantined": 0}
    report = StageReport(stage="compact", source="erp", summary={"tables": 1, **counts}, details={name: counts})
    monkeypatch.setattr("tidemark.cli.printing.width", lambda: 60)
    running.print_report(report, took=12.3)
    assert capsys.readouterr().out.splitlines() == [
        "erp compact: tables=1 events=5 applied=5 superseded=0",
        "    duplicate=0 held=0 quarantined=0",
        "  -- 1 --",
        f"    table    {name}",
        "    events   5",
        "    applied  5",
    ]
    same = StageReport(
        stage="difference", source="erp", summary={"added": 0}, details={"erp.a": {"added": 0, "removed": 0}}
    )
    running.print_report(same)
    assert capsys.readouterr().out.splitlines()[1:] == ["  table  added  removed", "  erp.a      0        0"]


def test_make_up_tells_the_password_once(tmp_path: Path) -> None:
    """The first time itself, then the file that holds it."""
    first, second = (up._greeting("http://127.0.0.1:8080", "s3cret", tmp_path) for _ in range(2))
    assert first.splitlines()[:3] == ["Airflow is at http://127.0.0.1:8080", "  user      admin", "  password  s3cret"]
    assert f"  password  in {tmp_path / 'passwords.json'}\n" in second
    assert "s3cret" not in second
