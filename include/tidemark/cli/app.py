"""The command line's Typer application, and the option that stands before every command."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemark.cli.logs import configure_logging

app = typer.Typer(
    name="tidemark",
    help="Turn change-data-capture dumps into checked Apache Iceberg tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def setup(*, verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False) -> None:
    """Turn change-data-capture dumps into checked Apache Iceberg tables."""
    configure_logging(verbose=verbose)
