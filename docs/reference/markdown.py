"""Markdown for the pages that are made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable


def table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown."""
    head = list(names)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def sentence(text: str) -> str:
    """Return a docstring as one paragraph of Markdown."""
    plain = re.sub(r"\[/?(?:bold|dim|italic|cyan|yellow|green|red)\]", "", text)
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(plain.split()))
