"""The commands that look before something is run: what is missing here, and what a run would do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import msgspec
import typer

from tidemark.cli.app import DAILY, SET_UP, app
from tidemark.cli.layout import folded
from tidemark.cli.printing import width
from tidemark.cli.running import AsJson, End, SourceName, Start, exits
from tidemark.sources.files import find_source
from tidemark.text import counted, harmless
from tidemark.values.iso8601 import interval_between


@app.command(rich_help_panel=SET_UP)
@exits
def doctor(
    sources: Annotated[list[str] | None, typer.Argument(metavar="SOURCE", help="Look at these sources only.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Tell what this machine, the catalog, the sources and Airflow need and lack; change nothing."""
    from tidemark.diagnosis.doctor import examined
    from tidemark.diagnosis.findings import Level

    findings = []
    for finding in examined(sources or []):
        findings.append(finding)
        if as_json:
            typer.echo(msgspec.json.encode(asdict(finding)).decode())
            continue
        paragraphs = [f"{finding.level:8} {finding.what}: {finding.found}"]
        paragraphs += [f"{'':8} to do: {finding.do}"] if finding.do else []
        for text in paragraphs:
            typer.echo("\n".join(folded(harmless(text), width(), indent=9 if text[0] != " " else 0)))
    problems = sum(finding.level is Level.PROBLEM for finding in findings)
    if not as_json:
        warnings = sum(finding.level is Level.WARNING for finding in findings)
        counts = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}"
        typer.echo(f"{len(findings)} things looked at: {counts}")
    if problems:
        raise typer.Exit(1)


@app.command(rich_help_panel=DAILY)
@exits
def plan(source: SourceName, start: Start = None, end: End = None, *, as_json: AsJson = False) -> None:
    """Show what a run would land, and what changes of the source file need; status 1 if one needs a command."""
    from tidemark.cli import plan_text
    from tidemark.queries.source_plan import plan_of

    found = plan_of(find_source(source), *interval_between(start, end))
    if as_json:
        typer.echo(msgspec.json.encode(plan_text.as_json(found)).decode())
    else:
        typer.echo("\n".join(plan_text.as_text(found)))
    if found.needs_a_command:
        raise typer.Exit(1)


@app.command(rich_help_panel=SET_UP)
@exits
def schema() -> None:
    """Print the JSON Schema of source files, with which editors complete and check them."""
    from tidemark.sources.json_schema import as_text

    typer.echo(as_text(), nl=False)
