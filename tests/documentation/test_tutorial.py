"""The tutorial: each command shows on a terminal what the page shows, in a folder of its own."""

from __future__ import annotations

import re
import runpy
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

CAPTURES: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "captures" / "generate.py"))

STEPS = CAPTURES["steps"](CAPTURES["TUTORIAL"].read_text("utf-8"))

_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\d+d(?: \d+h)?"), "LAG"),
    (re.compile(r"\(\d+ s\)"), "SECONDS"),
    (re.compile(r"/\S*/"), "FOLDER/"),
    (re.compile(r"0\d\d\.\d[\w.%~]+"), "POSITION"),
    (re.compile(r"\s+"), " "),
)
"""What is another each time: when it ran, for how long, where the folder is, and where lines with these are broken."""


def alike(text: str) -> str:
    """Return an output without what is another each time."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text.strip()


def follow(folder: Path, steps: list[Any]) -> None:
    """Run commands in a folder with the examples, and compare what they show."""
    made = CAPTURES["followed"](folder, [step.command for step in steps])
    for step, now in zip(steps, made, strict=True):
        assert alike(now.output) == alike(step.output), step.command


def test_it_begins_as_shown(tmp_path: Path) -> None:
    """The steps up to the first run, which need no Spark."""
    begins = list(takewhile(lambda step: not step.command.startswith("tidemark run"), STEPS))
    assert len(begins) == 4
    follow(tmp_path, begins)


@pytest.mark.prove
@pytest.mark.slow
def test_it_goes_on_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps."""
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)  # each JVM would print it
    assert len(STEPS) >= 12
    follow(tmp_path, STEPS)
