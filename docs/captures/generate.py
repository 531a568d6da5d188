"""Writes the outputs of the tutorial: ``python docs/captures/generate.py``, a few minutes, after ``make setup``.

Each command of the page runs on a terminal of 100 columns, in a folder with the examples alone. A test runs them too,
and compares what they print.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

TUTORIAL = ROOT / "docs" / "tutorial.md"

COLUMNS = 100

_SHOWN = "/home/you/tidemark"
"""The folder of the reader, in place of the one in which the commands ran."""

_BLOCK = re.compile(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", re.MULTILINE)


class Shown(NamedTuple):
    """A command of the page and its output."""

    command: str
    output: str


def steps(page: str) -> list[Shown]:
    """Return the commands of a page in their order; what only sets the environment is left out."""
    found = [Shown(*block.groups()) for block in _BLOCK.finditer(page)]
    return [step for step in found if not step.command.startswith("export ")]


def followed(folder: Path, commands: Iterable[str]) -> Iterator[Shown]:
    """Run commands in a folder, beside a copy of the examples; yield each with what the terminal got.

    Raises:
        SystemExit: a command ends with another status than 0.
    """
    shutil.copytree(ROOT / "examples", folder / "examples")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEMARK_", "PYICEBERG_"))}
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    # A dumb terminal shows no progress and no colours, which are gone from a page anyway.
    environment = {**kept, "PATH": path, "TIDEMARK_SOURCES": "mine", "TERM": "dumb"}
    for command in commands:
        status, text = on_a_terminal(command, folder, environment)
        if status:
            raise SystemExit(f"{command}: status {status}\n{text}")
        yield Shown(command, as_shown(text, folder))


def on_a_terminal(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its exit status and what the terminal got."""
    terminal, side = pty.openpty()
    ioctl(side, TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S603  commands of our own page
        ["/bin/bash", "-c", command], cwd=folder, env=environment, stdout=side, stderr=side, stdin=subprocess.DEVNULL
    ) as process:
        os.close(side)
        written = b""
        try:
            while part := os.read(terminal, 65536):
                written += part
        except OSError:  # the end of a terminal that nobody writes to
            pass
        finally:
            os.close(terminal)
    return process.returncode, written.decode().replace("\r\n", "\n").rstrip() + "\n"


def as_shown(text: str, folder: Path) -> str:
    """Return an output with the reader's folder in place of the one in which it was made, also in positions."""
    for of_path in (str, _quoted):
        text = text.replace(of_path(str(folder)), of_path(_SHOWN))
    return text


def _quoted(path: str) -> str:
    """Return a path as it stands in a position."""
    return re.sub(r"[^A-Za-z0-9_]", lambda sign: f"%{ord(sign[0]):02X}", path)


def main() -> None:
    """Write the page with outputs of now."""
    page = TUTORIAL.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        made = followed(Path(folder).resolve(), [step.command for step in steps(page)])
        for before, now in zip(steps(page), made, strict=True):
            page = page.replace(f"$ {before.command}\n{before.output}```", f"$ {now.command}\n{now.output}```", 1)
    TUTORIAL.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
