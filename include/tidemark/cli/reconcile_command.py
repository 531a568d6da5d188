"""``tidemark reconcile``: the published tables of a source against its database."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, TypedDict

import msgspec
import typer

from tidemark.cli.app import INSPECT, app
from tidemark.cli.layout import Group, TextColumn
from tidemark.cli.printing import print_groups, tell
from tidemark.cli.progress import under_way
from tidemark.cli.running import AsJson, SourceName, works
from tidemark.sources.files import find_source
from tidemark.text import harmless

if TYPE_CHECKING:
    from tidemark.ledger.reconciliation_rows import DifferingKey, ReconciliationRow

_SHOWN = 20
"""Most keys of a table that are printed as text."""

_COLUMNS = (
    TextColumn(name="table"),
    TextColumn(name="result"),
    *(TextColumn(name=name, number=True) for name in ("source", "lake", "behind", "lost", "extra", "different")),
    TextColumn(name="verified through"),
)

_WORDS = {
    "behind": "behind",
    "lost": "lost: the source has it, the lake does not",
    "extra": "extra: the lake has it, the source does not",
    "different": "different",
}


@app.command(rich_help_panel=INSPECT)
@works
def reconcile(
    source: SourceName,
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="Name as published (erp.orders) or at the source; default: all."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Compare published tables with the source database, down to keys; change nothing."""
    from tidemark.ledger.reconciliation_rows import Result
    from tidemark.reconciliation.run import reconcile as compare

    found = []
    with under_way(f"{source} reconcile", quiet=as_json):
        for row in compare(find_source(source), table):
            found.append(row)
            if as_json:
                typer.echo(msgspec.json.encode(as_object(row)).decode())
    if not as_json:
        _print(found)
    results = {row.result for row in found}
    if results & {Result.DIFFERS, Result.BEHIND}:
        raise typer.Exit(1)
    if Result.NOT_COMPARED in results:
        raise typer.Exit(2)


class RowCounts(TypedDict):
    """Numbers of rows, without rows that soft deletes mark; null where the table was not compared."""

    source: int | None
    lake: int | None


class ComparedKey(TypedDict):
    """A key that differs."""

    why: str
    """``behind``, ``lost``, ``extra`` or ``different``."""
    kind: str
    """What the tables show: ``lost``, ``extra`` or ``different``."""
    key: dict[str, str]
    """Column to value as text, as ``tidemark explain`` takes it."""
    columns: list[str]
    """Columns that differ, of the first twenty keys that are different."""
    pending: bool
    """Whether a change of it has landed and is not published."""
    explain: str
    """The command that shows the life of the row."""


class ComparisonAnswer(TypedDict):
    """A table, as it compared with the source database."""

    table: str
    """As it is published."""
    object: str
    """As the source names it."""
    result: str
    """``equal``, ``behind``, ``differs`` or ``not_compared``."""
    reason: str | None
    """Why it was not compared."""
    cut: int
    """The cut that published what was compared."""
    rows: RowCounts
    behind: int
    """Keys whose change has not landed."""
    lost: int
    """Keys that the source has, and the lake has not."""
    extra: int
    """Keys that the lake has, and the source has not."""
    different: int
    """Keys that both have, with other values."""
    keys: list[ComparedKey]
    """Up to 500 of them."""
    columns_compared: int
    """How many columns were compared."""
    not_compared: dict[str, str]
    """Column to the reason."""
    read_at: str | None
    """When the source was read, by its clock."""
    place: str | None
    """The place in its log by then."""
    verified_through: str | None
    """All that the source committed up to then is known to be right in the lake."""
    verified_place: str | None
    """The same as a place in its log."""


def as_object(row: ReconciliationRow) -> ComparisonAnswer:
    """Return the row of a table for JSON."""
    return {
        "table": row.target,
        "object": row.object,
        "result": row.result,
        "reason": row.reason,
        "cut": row.cut,
        "rows": {"source": row.source_rows, "lake": row.lake_rows},
        "behind": row.behind,
        "lost": row.lost,
        "extra": row.extra,
        "different": row.different,
        "keys": [
            {
                "why": each.why,
                "kind": each.kind,
                "key": each.key,
                "columns": each.columns,
                "pending": each.pending,
                "explain": explanation(row, each),
            }
            for each in row.differing
        ],
        "columns_compared": row.columns,
        "not_compared": json.loads(row.left_out),
        "read_at": row.read_at.isoformat() if row.read_at else None,
        "place": row.place,
        "verified_through": row.verified_through.isoformat() if row.verified_through else None,
        "verified_place": row.verified_place,
    }


def explanation(row: ReconciliationRow, key: DifferingKey) -> str:
    """Return the command that shows the life of a row."""
    parts = ["tidemark", "explain", row.target, *(f"{name}={value}" for name, value in key.key.items())]
    return shlex.join(parts)


def _print(rows: list[ReconciliationRow]) -> None:
    counts = ("source_rows", "lake_rows", "behind", "lost", "extra", "different")
    cells = [
        [
            row.target,
            row.result,
            *("" if getattr(row, name) is None else str(getattr(row, name)) for name in counts),
            row.verified_through.isoformat(timespec="seconds") if row.verified_through else "",
        ]
        for row in rows
    ]
    print_groups(_COLUMNS, [Group(rows=cells)])
    for row in rows:
        if row.reason:
            tell(f"{row.target} is not compared: {row.reason}")
        for name, why in json.loads(row.left_out).items():
            tell(f"{row.target}: column {harmless(name)} is not compared: {why}")
        _print_keys(row)


def _print_keys(row: ReconciliationRow) -> None:
    keys = row.differing
    if row.behind:
        place = f" ({row.place})" if row.place else ""
        tell(
            f"{row.target}: {row.behind} differ because the lake is behind the source{place}; "
            "compare again after the next runs"
        )
    for each in keys[:_SHOWN]:
        columns = f" in {', '.join(each.columns)}" if each.columns else ""
        waits = ", and a change of it waits to be published" if each.pending else ""
        typer.echo(harmless(f"  {_WORDS[each.why]}{columns}{waits}: {explanation(row, each)}"))
    more = row.behind + row.lost + row.extra + row.different - min(len(keys), _SHOWN)
    if keys and more > 0:
        tell(f"{row.target}: {more} more keys differ; --json lists up to 500")
