"""The command that prints the events of dump files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from tidemark.cli.app import INSPECT, app
from tidemark.cli.printing import tell
from tidemark.cli.quick_start import keep_pandas_out
from tidemark.cli.running import FormatName, exits
from tidemark.errors import ConfigurationError
from tidemark.sources.files import find_source


@app.command(rich_help_panel=INSPECT)
@exits
def decode(
    format_name: FormatName,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Dump files, in order.")],
    option: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the format.")] = None,
    masks_of: Annotated[str | None, typer.Option(metavar="SOURCE", help="Mask values as this source does.")] = None,
) -> None:
    """Print the canonical events of dump files as JSON lines, in the order of the dump, without Spark."""
    keep_pandas_out()
    from tidemark.cli.identification import hint
    from tidemark.normalization.decoding import decode_files

    given, masking = options_of(option or []), None
    if masks_of is not None:
        from tidemark.normalization.protecting import masking_of_dump

        masking = masking_of_dump(find_source(masks_of), format_name, files, given)
    lines = changes = 0
    for line in decode_files(format_name, files, given, masking):
        sys.stdout.buffer.write(line)
        lines += 1
        changes += not line.startswith((b'{"quarantined":', b'{"control":'))
    if lines and not changes and (looks_like := hint(format_name, files)):
        sys.stdout.flush()
        tell(looks_like)


def options_of(given: Iterable[str]) -> dict[str, object]:
    """Return the options that the user gave as ``KEY=VALUE``.

    Raises:
        ConfigurationError: one has no equals sign.
    """
    pairs = [option.partition("=") for option in given]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ConfigurationError(f"--option {wrong[0]}: write --option KEY=VALUE")
    return {name: value for name, _, value in pairs}
