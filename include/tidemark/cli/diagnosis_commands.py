"""The commands that look before something is run: what is missing here, and what a run would do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import msgspec
import typer

from tidemark.cli.app import app
from tidemark.cli.running import AsJson, exits
from tidemark.text import harmless


@app.command()
@exits
def doctor(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="[SOURCE...]", help="Look at these sources only.")
    ] = None,
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
        typer.echo(f"{finding.level:8} {harmless(finding.what)}: {harmless(finding.found)}")
        if finding.do:
            typer.echo(f"         to do: {harmless(finding.do)}")
    problems = sum(finding.level is Level.PROBLEM for finding in findings)
    if not as_json:
        warnings = sum(finding.level is Level.WARNING for finding in findings)
        typer.echo(f"{len(findings)} things looked at: {problems} problems, {warnings} warnings")
    if problems:
        raise typer.Exit(1)
