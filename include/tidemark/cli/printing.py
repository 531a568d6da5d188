"""Printing for the command line: tables, the status of sources, and remarks on standard error."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tidemark.text import harmless, harmless_lines

_errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

_OPEN_SHOWN = 10
"""Most open transactions of a source that are listed."""

_NAME_SHOWN = 150
"""Most characters of a name that are printed. The name of a published table is shorter."""


def tell(text: str) -> None:
    """Print to standard error: everything that is not a result."""
    _errors.print(harmless_lines(text))


def print_status(found: Sequence[Mapping[str, Any]]) -> None:
    """Print the answers of ``status.status_of``. What needs attention goes to standard error."""
    columns = ("rows", "events", "applied", "superseded", "duplicate", "held", "quarantined", "verdict", "state")
    rows = [["table", "cut", *columns, "lag"]]
    for entry in found:
        for name, table in entry["tables"].items():
            cut = entry["cut"]["number"]
            cells = ["" if table[column] is None else str(table[column]) for column in columns]
            rows.append([_short(name), str(cut), *cells, _duration(table["lag_seconds"])])
            if table["reason"]:
                tell(f"{_short(name)} {table['state']}: {_short(table['reason'], 2000)}")
            if not table["closes"]:
                tell(f"{name}: events are not applied + superseded + duplicate + held + quarantined")
        for path, problem in entry["refused"].items():
            tell(f"{path} refused: {problem}")
        for disorder in entry["disorders"].values():
            tell(disorder)
        for name, notes in entry["ddl_not_followed"].items():
            for note in notes:
                tell(f"{name}: {note}")
    print_table(rows)
    for entry in found:
        _print_source_status(entry)


def _print_source_status(entry: Mapping[str, Any]) -> None:
    messages = entry["messages"]
    equal = "=" if entry["closes"] else "IS NOT"
    parts = " + ".join(f"{messages[name]} {name}" for name in ("decoded", "control", "quarantined"))
    cut, at = entry["published_cut"], entry["published_at"]
    published = f"published cut {cut} at {at}" if cut else "nothing is published yet"
    typer.echo(f"{entry['source']}: {messages['landed']} messages landed {equal} {parts}")
    typer.echo(f"{entry['source']}: {published}")
    for waiting in entry["transactions"]["open"][:_OPEN_SHOWN]:
        tell(
            f"{entry['source']}: transaction {waiting['id']} is open since {waiting['since']}: "
            f"{waiting['events']} events held in {', '.join(waiting['tables'])}; {waiting['why']}"
        )
    more = len(entry["transactions"]["open"]) - _OPEN_SHOWN
    if more > 0:
        tell(f"{entry['source']}: {more} more transactions are open; --json lists them all")
    if elsewhere := entry["transactions"]["not_awaited"]:
        names = ", ".join(map(_short, list(elsewhere)[:_OPEN_SHOWN])) + (
            ", ..." if len(elsewhere) > _OPEN_SHOWN else ""
        )
        tell(f"{entry['source']}: transactions do not wait for events of {names}: they are counted, and never landed")
    _print_verified(entry)
    cut = entry["cut"]
    if cut and cut["state"] == "held":
        tell(
            f"{entry['source']}: cut {cut['number']} is held, as it deletes many rows: "
            f"`tidemark publish {entry['source']} --approve {cut['number']}`"
        )


def _print_verified(entry: Mapping[str, Any]) -> None:
    """Print up to when the tables that were compared with the source database are known to be right."""
    compared = {name: table for name, table in entry["tables"].items() if table["reconciled"]}
    for name, table in compared.items():
        if table["reconciled"] == "differs":
            tell(f"{_short(name)} differs from the source database: `tidemark reconcile {entry['source']}` lists keys")
    times = [table["verified_through"] for table in compared.values()]
    if times:
        oldest = "not all verified yet" if None in times else f"verified through {min(times)}"
        typer.echo(f"{entry['source']}: {len(times)} tables compared with the source database, {oldest}")


def _short(text: str, most: int = _NAME_SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _duration(seconds: int | None) -> str:
    """Return the two largest parts of a duration: ``3d4h``, ``4h5m``, ``5m6s``."""
    if seconds is None:
        return ""
    days, rest = divmod(max(0, seconds), 86_400)
    parts = {"d": days, "h": rest // 3600, "m": rest // 60 % 60, "s": rest % 60}
    units = [unit for unit, count in parts.items() if count] or ["s"]
    first = list(parts).index(units[0])
    return "".join(f"{parts[unit]}{unit}" for unit in list(parts)[first : first + 2])


def print_table(rows: list[list[str]]) -> None:
    """Print rows of text; the first row has the names of the columns.

    On a terminal long rows are wrapped to its width. Elsewhere they are printed in full width.
    """
    table = Table(*map(harmless, rows[0]), box=None, pad_edge=False, show_edge=False)
    for row in rows[1:]:
        table.add_row(*map(harmless, row))
    width = None if sys.stdout.isatty() else 100_000
    Console(highlight=False, markup=False, width=width).print(table)
