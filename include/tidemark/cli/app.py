"""The command line's Typer application: its groups of commands, and the options that stand before every command."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidemark import __version__
from tidemark.cli.logs import configure_logging

DAILY, INSPECT, REPAIR, ALONE, SET_UP = "Daily", "Inspect", "Repair", "One stage alone", "Set up"

ORDER = (
    *("run", "status", "sql", "report", "plan", "quality", "maintain"),
    *("explain", "quarantine", "reconcile", "identify", "decode", "dbt"),
    *("rebuild", "restore", "erase"),
    *("land", "normalize", "compact", "check", "publish"),
    *("doctor", "init", "validate", "formats", "schema", "airflow", "demo"),
)
"""The commands as the help lists them: within a group, in the order in which a person needs them."""

_LOUD = frozenset({"-v", "-vv", "--verbose"})


class _Commands(TyperGroup):
    """The commands by group. ``--verbose`` may stand behind a command as well."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  a class that Typer does not export
        """Return the names of the commands, group by group."""
        return sorted(self.commands, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  likewise
        """Return the arguments that are left for the command."""
        end = args.index("--") if "--" in args else len(args)
        called = next((word for word in args if not word.startswith("-")), "")
        if called in self.commands and self.commands[called].context_settings.get("ignore_unknown_options"):
            end = args.index(called)  # what follows is another program's
        loud = [word for word in args[:end] if word in _LOUD]
        return super().parse_args(ctx, [*loud, *(word for word in args[:end] if word not in _LOUD), *args[end:]])


app = typer.Typer(
    name="tidemark",
    cls=_Commands,
    help="Turn change-data-capture dumps into checked Apache Iceberg tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(value: bool) -> None:  # noqa: FBT001  Typer calls it so
    if value:
        typer.echo(f"tidemark {__version__}")
        raise typer.Exit


@app.callback()
def setup(
    *,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="Show log lines; -vv shows more. It may follow the command too."
        ),
    ] = 0,
    version: Annotated[  # noqa: ARG001  its callback does it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn change-data-capture dumps into checked Apache Iceberg tables."""
    configure_logging(verbose=verbose)
