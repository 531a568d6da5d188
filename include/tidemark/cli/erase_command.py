"""``tidemark erase``: a data subject's rows gone everywhere, with a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.app import REPAIR, app
from tidemark.cli.printing import tell
from tidemark.cli.progress import under_way
from tidemark.cli.running import print_report, works
from tidemark.errors import ConfigurationError
from tidemark.sources.files import find_source


@app.command(rich_help_panel=REPAIR)
@works
def erase(
    table: Annotated[str, typer.Argument(metavar="SOURCE.TABLE", help="A published table.")],
    key: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE", help="The row's key; bytes as Base64.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be removed; remove nothing.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Search again for a row that was erased.")] = False,
    follow: Annotated[
        bool | None,
        typer.Option("--follow/--no-follow", help="Erase the row under other keys it had, too, or not."),
    ] = None,
    unread: Annotated[
        bool, typer.Option("--unread", help="Remove messages in quarantine too that nobody could decode.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate.")] = False,
) -> None:
    """Erase a row from tables, history, logs, quarantine, old cuts and files; write a certificate."""
    from tidemark.erasure.subject import source_of
    from tidemark.lake.lake import Lake
    from tidemark.pipeline import run_stage

    if dry_run and verify:
        raise ConfigurationError("--dry-run tells what is there, --verify searches after an erasure: give one of them")
    source = find_source(source_of(Lake.existing(), table))
    with under_way(f"{source.source} erase", quiet=as_json):
        report = run_stage(
            "erase", source, table=table, key=key, dry_run=dry_run, verify=verify, follow=follow, unread=unread
        )
    if as_json and "certificate" in report.summary:
        typer.echo(Path(str(report.summary["certificate"])).read_text(encoding="utf-8"), nl=False)
    else:
        print_report(report)
    for problem in report.problems:
        tell(f"held back: {problem}")
    if report.has_problems:
        raise typer.Exit(1)
