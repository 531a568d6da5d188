"""Makes a table of what calls of the lab printed, for ``docs/lab.md``.

    python lab/overview.py OUTPUT...

Of two lines about a table in one setting and delivery, the later one counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from deliveries import DELIVERIES
from matrix import ROUNDS

Found = dict[tuple[str, str, str], dict[str, str]]
"""Round, setting and delivery -> table -> what came of it, in one word."""


def found(lines: Iterable[str]) -> Found:
    """Return the state of each table, as the lines of the lab's output say."""
    states: Found = {}
    for line in lines:
        if line.count("\t") == 4 and not line.startswith(" "):  # below are the reasons
            round_, setting, delivery, table, state = line.rstrip("\n").split("\t")
            states.setdefault((round_, setting, delivery), {})[table] = state
    return states


def rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield the rows of the table: of each round and setting, how many tables were equal in each delivery."""
    states = found(lines)
    for each in ROUNDS:
        for setting in each.connectors:
            of_deliveries = [states.get((each.name, setting.name, name), {}) for name in DELIVERIES]
            cells = " | ".join(map(_cell, of_deliveries))
            known = sorted({name for of_one in of_deliveries for name, state in of_one.items() if state == "known"})
            yield f"| {each.name} | {setting.name} | {cells} | {', '.join(known)} |"


def _cell(states: dict[str, str]) -> str:
    count = Counter(states.values())
    known = f" + {count['known']}" if count["known"] else ""
    wrong = f", **{count['DIFFERS']} differ**" if count["DIFFERS"] else ""
    return f"{count['equal']}{known}{wrong}" if count else "-"


if __name__ == "__main__":
    text = [line for name in sys.argv[1:] for line in Path(name).read_text(encoding="utf-8").splitlines()]
    heads = ["round", "setting", *DELIVERIES, "known to differ"]
    print(f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *rows(text), sep="\n")  # noqa: T201 - its output
