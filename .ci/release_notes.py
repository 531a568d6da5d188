"""Prints the section of a version in CHANGELOG.md, for its release: ``python .ci/release_notes.py 0.1.0``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes(version: str, changelog: str) -> str:
    """Return what stands below the heading of a version, without the heading.

    Raises:
        SystemExit: the changelog has no such version, or says nothing of it.
    """
    sections = re.split(r"(?m)^## \[([^]]+)\].*\n", changelog)
    found = dict(zip(sections[1::2], sections[2::2], strict=True)).get(version, "").strip()
    if not found:
        raise SystemExit(f"CHANGELOG.md has no section [{version}], or nothing in it: name the version there first")
    return f"{found}\n"


if __name__ == "__main__":
    sys.stdout.write(notes(sys.argv[1].removeprefix("v"), CHANGELOG.read_text("utf-8")))
