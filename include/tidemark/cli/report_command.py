"""The command that writes the quality report and says where it is."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import msgspec
import typer

from tidemark.cli.app import DAILY, app
from tidemark.cli.printing import tell
from tidemark.cli.running import AsJson, works
from tidemark.sources.files import find_source, load_sources


@app.command(rich_help_panel=DAILY)
@works
def report(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Names of sources; default: all.")
    ] = None,
    *,
    as_json: AsJson = False,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write the quality report, a folder of static pages, and print where it is."""
    from tidemark.lake.lake import Lake
    from tidemark.report import site

    chosen = [find_source(name) for name in sources] if sources else load_sources()
    names = dict.fromkeys(found.source for found in chosen)
    with_keys = {found.source for found in chosen if found.report_keys}
    for figures in site.write(Lake.existing(), names, only=None if sources else names, with_keys=with_keys):
        if as_json:
            typer.echo(msgspec.json.encode(figures).decode())
    if not as_json:
        typer.echo(site.index_page())
    if show and not webbrowser.open(site.index_page().as_uri()):
        tell("no browser was found: open the page yourself")
