"""The tutorial: each command prints what the page shows, in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

TUTORIAL = ROOT / "docs" / "tutorial.md"

_BLOCK = re.compile(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", re.MULTILINE)

_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00"), "TIME"),
    (re.compile(r"\d+d \d+h"), "LAG"),
    (re.compile(r"docs=\S+"), "docs=SITE"),
    (re.compile(r"0\d\d\.\d[\w.%~]+"), "POSITION"),
    (re.compile(r" +"), " "),
)
"""What is another each time: when it ran, where the folder is, and how wide a column is with these."""


class Shown(NamedTuple):
    """A command of the page and its output."""

    command: str
    output: str


def shown() -> list[Shown]:
    """Return the commands of the page in their order."""
    return [Shown(*found.groups()) for found in _BLOCK.finditer(TUTORIAL.read_text("utf-8"))]


def alike(text: str, folder: Path) -> str:
    """Return an output without what is another each time."""
    text = text.replace(f"{folder}/", "")
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text.strip()


def follow(folder: Path, steps: list[Shown]) -> None:
    """Run commands in a folder with the examples, and compare what they print."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEMARK_", "PYICEBERG_"))}
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    environment = {**kept, "PATH": path, "TIDEMARK_SOURCES": "mine", "COLUMNS": "100"}
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (step.command, done.stderr)
        assert alike(done.stdout, folder) == alike(step.output, folder), step.command


def test_it_begins_as_shown(tmp_path: Path) -> None:
    """The steps up to the first run, which need no Spark."""
    steps = [step for step in shown() if not step.command.startswith("export ")]
    begins = list(takewhile(lambda step: not step.command.startswith("tidemark run"), steps))
    assert len(begins) == 4
    follow(tmp_path, begins)


@pytest.mark.prove
@pytest.mark.slow
def test_it_goes_on_as_shown(tmp_path: Path) -> None:
    """All steps."""
    steps = [step for step in shown() if not step.command.startswith("export ")]
    assert len(steps) >= 12
    follow(tmp_path, steps)
