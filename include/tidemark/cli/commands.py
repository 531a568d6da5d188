"""The commands that run no stage: queries of what is published, decoding dumps, work on source files."""

from __future__ import annotations

import csv
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidemark.cli import (
    airflow_command,  # noqa: F401
    dbt_command,  # noqa: F401
    decode_command,  # noqa: F401
    demo_command,  # noqa: F401
    diagnosis_commands,  # noqa: F401
    erase_command,  # noqa: F401
    quarantine_commands,
    reconcile_command,  # noqa: F401  its command
    report_command,  # noqa: F401
    stage_commands,  # noqa: F401  imported first, so that the help lists its commands first
)
from tidemark.cli.app import DAILY, INSPECT, SET_UP, app
from tidemark.cli.decode_command import options_of
from tidemark.cli.layout import Group, TextColumn
from tidemark.cli.printing import print_groups, tell
from tidemark.cli.quick_start import keep_pandas_out
from tidemark.cli.running import AsJson, exits, format_names, source_names
from tidemark.cli.status_text import print_status
from tidemark.sources.files import find_source, load_sources, validate
from tidemark.values.iso8601 import moment

app.add_typer(quarantine_commands.quarantine_app, name="quarantine", rich_help_panel=INSPECT)


class OutputFormat(StrEnum):
    """How ``tidemark sql`` prints rows."""

    TABLE = "table"
    VERTICAL = "vertical"
    JSON = "json"
    CSV = "csv"


@app.command(rich_help_panel=DAILY)
@exits
def status(
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="Name of a source; default: all.", autocompletion=source_names),
    ] = None,
    *,
    whole: Annotated[bool, typer.Option("--all", help="Show all columns, also those with nothing in them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show each table's cut, rows, lag, held and quarantined events, and last verdict."""
    keep_pandas_out()
    from tidemark.lake.reading import lake_to_read
    from tidemark.queries.status import failed_by_table, status_of

    lake = lake_to_read()
    names = [find_source(source).source] if source else [found.source for found in load_sources()]
    found = [status_of(lake, name) for name in names]
    if as_json:
        for entry in found:
            typer.echo(msgspec.json.encode(entry).decode())
    else:
        print_status(found, whole=whole, failed=failed_by_table(lake, found))


@app.command(rich_help_panel=DAILY)
@exits
def sql(
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="A query; tables are named source.table.")],
    layout: Annotated[
        OutputFormat,
        typer.Option("--format", help="How to print the rows; a table that is too wide is printed as vertical."),
    ] = OutputFormat.TABLE,
    cut: Annotated[
        list[str] | None, typer.Option(metavar="N|SOURCE=N", help="Read the tables as this cut showed them.")
    ] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Read the tables as published at a time.")] = None,
) -> None:
    """Query the published tables, and source.table__changes, which has every event of a table."""
    from tidemark.lake.reading import lake_to_read
    from tidemark.queries import sql as sql_query
    from tidemark.queries.as_of import AsOf

    answer = sql_query.query(lake_to_read(), statement, AsOf(cuts=cut or (), at=moment(at)))
    if layout is OutputFormat.JSON:
        sys.stdout.buffer.writelines(sql_query.as_json_lines(answer))
    elif layout is OutputFormat.CSV:
        csv.writer(sys.stdout).writerows(sql_query.as_text_rows(answer))
    else:
        _, *rows = sql_query.as_text_rows(answer)
        columns = zip(answer.column_names, sql_query.numbers(answer), strict=True)
        shown = [TextColumn(name=name, number=number) for name, number in columns]
        print_groups(shown, [Group(rows=rows)], vertical=layout is OutputFormat.VERTICAL or None)


@app.command(rich_help_panel=INSPECT)
@exits
def explain(
    table: Annotated[str, typer.Argument(metavar="SOURCE.TABLE", help="A published table.")],
    key: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE", help="The row's key; bytes as Base64.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show the life of one row: the events that set its cells, and the events that did not, with the reason."""
    from tidemark.lake.lake import Lake
    from tidemark.queries.explain import explain as explain_row
    from tidemark.queries.row_life_text import as_json_lines, as_text

    life = explain_row(Lake.existing(), table, key)
    if life.expired:
        tell(f"Batches up to {life.expired} are past their time (`retention: changelog_days`): not shown")
    if not life.chapters:
        tell(f"No event of {table} has {' '.join(key)}")
    elif as_json:
        sys.stdout.buffer.writelines(as_json_lines(life))
    else:
        typer.echo("\n".join(as_text(life)))


@app.command(rich_help_panel=INSPECT)
@exits
def identify(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Dump files.")],
) -> None:
    """Tell which format and container dump files are, with the first lines of a source file for them."""
    from tidemark.cli.identification import described
    from tidemark.errors import LandingError
    from tidemark.normalization.identifying import identify as identify_file

    status = 0
    for file in files:
        try:
            found = identify_file(file)
        except LandingError as error:
            tell(str(error))
            status = max(status, error.exit_status)
            continue
        typer.echo("\n".join(described(file, found)))
        status = max(status, 0 if found.readings else LandingError.exit_status)
    if status:
        raise typer.Exit(status)


@app.command(rich_help_panel=SET_UP)
@exits
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new source.")],
    samples: Annotated[list[str] | None, typer.Argument(metavar="SAMPLE", help="Dump files to learn from.")] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Name of a format; default: the one that the sample is in.",
            autocompletion=format_names,
        ),
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the format.")] = None,
    *,
    take_guesses: Annotated[
        bool, typer.Option("--take-guesses", help="Give guessed types and encodings; default: as comments.")
    ] = False,
) -> None:
    """Write a commented source file, with what sample dumps have: format, tables, keys, types, landing, start date."""
    from tidemark.cli.source_draft import write_draft

    draft = write_draft(name, format_name, samples or [], options_of(option or []), take_guesses=take_guesses)
    for remark in draft.remarks:
        tell(remark)
    typer.echo(draft.path)
    unsure = "; ".join(f"{table}: {', '.join(columns)}" for table, columns in draft.guesses.items())
    tell(f"next: look at {draft.path}" + (f", above all at what is guessed ({unsure})" if unsure else ""))
    tell(f'      tidemark validate\n      tidemark run {name}\n      tidemark sql "SHOW TABLES"')


@app.command("validate", rich_help_panel=SET_UP)
@exits
def validate_files(
    paths: Annotated[list[Path] | None, typer.Argument(help="Source files or folders; default: all sources.")] = None,
) -> None:
    """Check source files; print every error with file, line and a suggestion."""
    number, problems = validate(paths or [])
    for problem in problems:
        tell(str(problem))
    if problems:
        raise typer.Exit(2)
    typer.echo("1 source file is valid" if number == 1 else f"{number} source files are valid")


@app.command("formats", rich_help_panel=SET_UP)
@exits
def list_formats(
    names: Annotated[list[str] | None, typer.Argument(metavar="FORMAT", help="Only these; default: all.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the formats: the tools that write them, what they cannot tell, and their options."""
    from tidemark.cli.format_list import print_formats

    print_formats(names, as_json=as_json)


def main() -> None:
    """Run the command line: the entry point of ``tidemark``."""
    app()
