"""The commands about quarantined messages: list, show, retry."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tidemark.cli.layout import Group, TextColumn
from tidemark.cli.printing import print_groups
from tidemark.cli.quick_start import keep_pandas_out
from tidemark.cli.running import AsJson, SourceName, exits, run_stages, works
from tidemark.errors import ConfigurationError
from tidemark.sources.files import find_source
from tidemark.stages import RETRY

quarantine_app = typer.Typer(
    help="Messages that could not be read, or whose events were set aside.", no_args_is_help=True
)

Reason = Annotated[str | None, typer.Option(help="Only messages with this reason.")]

Plain = Annotated[bool, typer.Option("--plain", help="Show messages of a source that masks columns.")]


@quarantine_app.command("list")
@exits
def quarantine_list(source: SourceName, reason: Reason = None, *, as_json: AsJson = False) -> None:
    """List quarantined messages: file, place and reason."""
    _quarantined(source, reason, as_json=as_json, with_bytes=False)


@quarantine_app.command("show")
@exits
def quarantine_show(
    source: SourceName, reason: Reason = None, *, plain: Plain = False, as_json: AsJson = False
) -> None:
    """Show quarantined messages, with their bytes."""
    if not plain and any(table.mask for table in find_source(source).tables.values()):
        raise ConfigurationError(
            f"{source} masks columns, and messages in quarantine are as they were delivered, or encrypted. `tidemark "
            "quarantine list` shows reasons and places; --plain shows the plain messages all the same"
        )
    _quarantined(source, reason, as_json=as_json, with_bytes=True)


@quarantine_app.command("retry")
@works
def quarantine_retry(source: SourceName, reason: Reason = None) -> None:
    """Decode quarantined messages again, after a fix; compact, check and publish what can be read now."""
    from tidemark.lake.lake import Lake

    Lake.existing()
    run_stages(RETRY, source, arguments={"retry": {"reason": reason}})


def _quarantined(name: str, reason: str | None, *, as_json: bool, with_bytes: bool) -> None:
    keep_pandas_out()
    import pyarrow as pa

    from tidemark.lake import names as table_names
    from tidemark.lake.filters import equals
    from tidemark.lake.reading import lake_to_read
    from tidemark.queries import sql
    from tidemark.values.sealed_messages import SEALED, unsealed_messages
    from tidemark.values.sealing import known_keys

    source = find_source(name)
    table = lake_to_read().find(table_names.quarantine(source.source))
    if table is None:
        return
    columns = ["reason", "detail", "object", "file", "place", *(["key", "value"] if with_bytes else [])]
    fields = [*columns, *([SEALED] if with_bytes and SEALED in table.schema().column_names else [])]
    scan = table.scan(row_filter=equals("reason", reason)) if reason else table.scan()
    rows = scan.select(*fields).to_arrow().sort_by([("file", "ascending"), ("place", "ascending")])
    if SEALED in fields and rows.num_rows:
        sealed = rows.combine_chunks().to_batches()[0]
        rows = pa.Table.from_batches([unsealed_messages(sealed, known_keys(source.raw_key))])
    rows = rows.select(columns)
    if as_json:
        sys.stdout.buffer.writelines(sql.as_json_lines(rows))
    else:
        _, *messages = sql.as_text_rows(rows)
        print_groups([TextColumn(name=name, optional=True) for name in columns], [Group(rows=messages)], vertical=True)
