"""The command that runs the demo."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from typing import Annotated

import typer

from tidemark.cli.airflow_command import require_checkout
from tidemark.cli.app import SET_UP, app
from tidemark.cli.printing import tell
from tidemark.cli.running import works
from tidemark.cli.status_text import print_status
from tidemark.sources.files import BUNDLED, FOLDER_VARIABLE

_LOOK_NEXT = """
Look next:
  the report    {report}
  Data Docs     {docs}
  a table       {program} sql "SELECT * FROM {source}.customers LIMIT 5"
  its events    {program} sql "SELECT operation, after.is_active FROM {source}.customers__changes LIMIT 5"
  set aside     {program} quarantine show {source}
  run it again  TIDEMARK_LANDING={landing} {program} run {source}    (lands nothing, changes nothing)"""

_MASKED = """  its masks     export {variable}=$(cat {file})    (for runs, explain and __changes of {source})"""


def program() -> str:
    """Return the program as a shell has to start it, with what its environment names otherwise than the demo did."""
    given = {"TIDEMARK_HOME": os.environ.get("TIDEMARK_HOME")}
    if os.environ.get(FOLDER_VARIABLE):
        given[FOLDER_VARIABLE] = str(BUNDLED)
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in given.items() if value), sys.argv[0]])


@app.command(rich_help_panel=SET_UP)
@works
def demo(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Bundled sources; default: one of each format, and shop_options."),
    ] = None,
) -> None:
    """Run bundled sources through Airflow on four days of dumps, and compare the tables that they publish."""
    require_checkout()
    from tidemark.demo.comparison import OPTIONS
    from tidemark.demo.runner import DEFAULT
    from tidemark.demo.runner import run as run_demo
    from tidemark.demo.secret import VARIABLE, secret_file
    from tidemark.lake.catalog import home

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers of the demo are stopped
    outcome = run_demo(sources or DEFAULT)
    print_status(outcome.statuses)
    for table in outcome.differences:
        tell(f"{table} is not what the history ends with")
    if outcome.differences:
        raise typer.Exit(1)
    docs = home() / "quality" / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    run = [status["source"] for status in outcome.statuses]
    names = f"{len(run)} sources had one history and" if len(run) > 1 else f"{run[0]} had a history and"
    typer.echo(f"\n{names} published the tables that it ends with ({outcome.seconds:.0f} s).")
    landing = shlex.quote(str(home() / "demo" / "landing"))
    report = home() / "quality" / "site" / "index.html"
    typer.echo(_LOOK_NEXT.format(report=report, docs=docs, program=program(), landing=landing, source=run[0]))
    if OPTIONS in run:
        typer.echo(_MASKED.format(source=OPTIONS, variable=VARIABLE, file=shlex.quote(str(secret_file()))))
