"""Output that nobody reads to its end: what only shows ends, and what works goes on and says how it ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark import INCLUDE

SCRIPT = """\
import sys, typer
from pathlib import Path
from tidemark.cli import running
from tidemark.cli.printing import print_words, tell
from tidemark.errors import ConfigurationError

kind, end = sys.argv[1:]

@getattr(running, kind)
def command():
    for stage in ("land", "check", "publish"):
        print_words(f"erp {stage}:", ["a=1"] * 5000)
        tell(f"note: {stage}")
        with Path("done").open("a") as file:
            file.write(f"{stage} ")
    if end == "wrong":
        raise ConfigurationError("nothing of it is right")
    if end == "broken":
        raise BrokenPipeError("the store went away")
    raise typer.Exit(1)

app = typer.Typer()
app.command()(command)
app(args=[])
"""


def run(folder: Path, kind: str, *closed: str, end: str = "held", buffer: str = "") -> tuple[int, list[str], str]:
    """Run a command, readers of which are gone; return its status, the stages that it did, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, end],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(INCLUDE), "PYTHONUNBUFFERED": buffer},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        for name in closed:
            getattr(running, name).close()
        said = running.communicate()[1] if not closed else "" if "stderr" in closed else running.stderr.read()  # type: ignore[union-attr]
    done = folder / "done"
    return running.returncode, done.read_text().split() if done.exists() else [], said


@pytest.mark.parametrize(
    ("closed", "buffer"),
    [
        (("stdout",), ""),
        (("stderr",), "1"),
        (("stdout", "stderr"), ""),
        pytest.param(("stdout",), "1", marks=pytest.mark.prove),
        pytest.param(("stderr",), "", marks=pytest.mark.prove),
        pytest.param(("stdout", "stderr"), "1", marks=pytest.mark.prove),
    ],
)
def test_a_command_that_works_goes_on_and_ends_with_its_own_status(
    tmp_path: Path, closed: tuple[str, ...], buffer: str
) -> None:
    """``tidemark run erp | head -1`` does every stage, and a held cut is no success."""
    status, done, said = run(tmp_path, "works", *closed, buffer=buffer)
    assert (status, done) == (1, ["land", "check", "publish"])
    assert "Traceback" not in said
    assert ("note: publish" in said) == ("stderr" not in closed)


@pytest.mark.parametrize(
    ("closed", "buffer"),
    [
        ("stdout", "1"),
        ("stderr", ""),
        pytest.param("stdout", "", marks=pytest.mark.prove),
        pytest.param("stderr", "1", marks=pytest.mark.prove),
    ],
)
def test_a_command_that_only_shows_ends_and_is_no_success(tmp_path: Path, closed: str, buffer: str) -> None:
    """It ends as other programs do that write to a closed pipe: with status 141, and without a traceback."""
    status, done, said = run(tmp_path, "exits", closed, buffer=buffer)
    assert (status, done) == (141, [])
    assert "Traceback" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize("end", ["held", "wrong"])
def test_the_end_of_a_command_is_told_to_nobody_without_a_traceback(tmp_path: Path, end: str) -> None:
    """What is in the buffer when the command ends, and its error, need no reader."""
    assert run(tmp_path, "exits", "stdout", "stderr", end=end)[0] == 141
    assert run(tmp_path, "works", "stdout", "stderr", end=end)[0] == {"held": 1, "wrong": 2}[end]


@pytest.mark.parametrize("kind", ["exits", "works"])
def test_a_broken_pipe_to_the_store_is_no_closed_output(tmp_path: Path, kind: str) -> None:
    """It is a failure of the store like others, with status 3."""
    status, done, said = run(tmp_path, kind, end="broken")
    assert (status, done) == (3, ["land", "check", "publish"])
    assert "the store went away" in said
