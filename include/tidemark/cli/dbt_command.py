"""The command that describes the published tables of a source to dbt."""

from __future__ import annotations

import typer

from tidemark.cli.app import INSPECT, app
from tidemark.cli.running import SourceName, exits
from tidemark.sources.files import find_source


@app.command(rich_help_panel=INSPECT)
@exits
def dbt(source: SourceName) -> None:
    """Print the published tables of a source as sources of dbt, with freshness, columns and tests."""
    from tidemark.lake.lake import Lake
    from tidemark.queries.dbt_sources import as_yaml, sources_of

    typer.echo(as_yaml(sources_of(Lake.existing(), find_source(source))), nl=False)
