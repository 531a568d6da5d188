"""``tidemark init``: a commented source file, with the tables that a sample dump has. It needs no Spark."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from tidemark.errors import ConfigurationError
from tidemark.events import ChangeEvent, Operation, Quarantined, SchemaChange
from tidemark.normalization.decoding import check_options, decoded_files
from tidemark.sources import json_schema
from tidemark.sources.fields import source_name
from tidemark.sources.files import default_folder, read_sources
from tidemark.values.message_types import table_type

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")

_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

_NUMBERS = ("int", "long", "float", "double", "decimal")


@dataclass(slots=True)
class _Seen:
    """What the sample has of one table."""

    name: str
    operations: Counter[str] = field(default_factory=Counter)
    keys: set[tuple[str, ...]] = field(default_factory=set)
    columns: dict[str, str | None] = field(default_factory=dict)
    """Column -> the type in the last message that gave one; None if no message did."""


@dataclass(slots=True)
class _Sample:
    messages: int = 0
    tables: dict[str, _Seen] = field(default_factory=dict)
    quarantined: Counter[str] = field(default_factory=Counter)


def write_draft(
    name: str, format_name: str, samples: Sequence[str], options: Mapping[str, object]
) -> tuple[Path, list[str]]:
    """Write ``NAME.yaml`` into the folder of the source files; return its path, and remarks about the sample.

    Raises:
        ConfigurationError: the name is invalid or taken, or the format or an option is unknown.
        LandingError: a sample cannot be read to its end.
    """
    try:
        source_name(name)
    except PydanticCustomError as error:
        raise ConfigurationError(str(error)) from error
    checked = check_options(format_name, options)
    folder = default_folder()
    path = folder / f"{name}.yaml"
    taken = folder.is_dir() and name in {source.source for source in read_sources(folder)[0]}
    if taken or path.exists():
        raise ConfigurationError(f"A source '{name}' is in {folder} already: choose another name, or edit its file.")
    sample = _look_at(format_name, samples, options)
    text = "\n".join(_lines(name, format_name, checked, sample, datetime.now(UTC).date())) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    json_schema.write_beside(folder)
    remarks = [f"{count} messages cannot be read: {reason}" for reason, count in sorted(sample.quarantined.items())]
    if samples and not sample.tables:
        remarks.append(f"no change event among the {sample.messages} messages of the sample: tables are not named yet")
    return path, remarks


def _look_at(format_name: str, samples: Sequence[str], options: Mapping[str, object]) -> _Sample:
    sample = _Sample()
    for _, decoded in decoded_files(format_name, samples, options):
        sample.messages += 1
        if isinstance(decoded, Quarantined):
            sample.quarantined[f"{decoded.reason}, as {decoded.detail}"] += 1
            continue
        for event in decoded:
            if isinstance(event, ChangeEvent):
                _note(sample, event)
            elif isinstance(event, SchemaChange) and str(event.table) in sample.tables:
                sample.tables[str(event.table)].operations["schema change"] += 1
    return sample


def _note(sample: _Sample, event: ChangeEvent) -> None:
    seen = sample.tables.setdefault(str(event.table), _Seen(event.table.name))
    seen.operations[event.operation] += 1
    if event.key is not None and event.operation is not Operation.TRUNCATE:
        seen.keys.add(event.key)
    for column in event.shape.columns if event.shape else ():
        kind = table_type(column.type) if column.type else None
        seen.columns[column.name] = kind or seen.columns.get(column.name)


def _lines(name: str, format_name: str, options: BaseModel, sample: _Sample, today: date) -> Iterator[str]:
    given = options.model_dump(mode="json", exclude_unset=True)
    yield f"# yaml-language-server: $schema={json_schema.FILE}"
    yield f"source: {name}"
    yield f"format: {format_name}"
    yield f"options: {_flow(given)}  # the format's own: docs/formats/{format_name}.md"
    yield ""
    yield "# Where the dumps arrive. With fields of time (%Y %m %d %H ...) a run takes its interval's files, else"
    yield "# all that have not landed yet. Names that end in .tmp or .part, and hidden ones, are left alone."
    yield f"landing: ${{TIDEMARK_LANDING:-landing}}/{name}/%Y-%m-%d/*"
    yield 'schedule: "@daily"                 # or five cron fields, or null'
    yield f"start_date: {today.isoformat()}"
    yield ""
    yield '# target: "{source}.{table}"        # {database} and {schema} may be used too'
    yield "# max_deletes: 0.5                 # share of a table's rows that one cut may delete without approval"
    yield "# max_quarantined: 0.05            # share of messages, and of a table's events, that may be set aside"
    yield "# max_message_mib: 16              # a longer message is set aside alone; at most 128"
    yield "# max_open_hours: 24               # a transaction that is open for longer ends the run with status 1"
    yield ""
    yield "# Tables that are not named here are found in the dumps, with the key that messages name."
    if not sample.tables:
        yield "tables: {}"
        yield from (f"# {line}" for line in _EXAMPLE)
        return
    yield "tables:"
    for table, seen in sorted(sample.tables.items()):
        yield from _table_lines(table, seen)


_EXAMPLE = (
    "  shop.orders:                     # as the source names it; a pattern is allowed",
    "    key: [id]",
    '    columns: {total: "decimal(18, 2)"}      # Iceberg types; they come before what the messages say',
    "    checks:                        # Great Expectations by their own names; blocking unless severity says warn",
    "      - {type: expect_column_values_to_be_between, column: total, min_value: 0}",
)


def _table_lines(table: str, seen: _Seen) -> Iterator[str]:
    counts = ", ".join(f"{count} {operation}" for operation, count in sorted(seen.operations.items()))
    yield f"  {_scalar(table)}:  # in the sample: {counts}"
    yield from (f"    {line}" for line in _key_lines(seen))
    if seen.columns:
        yield "    # columns:                     # types of the messages; a type that is written here takes precedence"
    for name, kind in seen.columns.items():
        column_type = _scalar(kind) if kind else "string  # the messages give no type: the values decide"
        yield f"    #   {_scalar(name)}: {column_type}"
    if None in seen.columns.values():
        yield "    # encodings: {placed: epoch_ms}   # how values without a type are written: docs/types.md"
    if example := _check_of(seen):
        yield "    # checks:                      # Great Expectations by their own names; severity: warn never blocks"
        yield f"    #   - {example}"


def _key_lines(seen: _Seen) -> Iterator[str]:
    named = sorted(key for key in seen.keys if key)
    if len(named) == 1:
        yield f"key: {_names(named[0])}  # as the messages name it"
        return
    yield "deletes: hard                  # the default, so that the table has an entry"
    if named:
        yield "# The messages name different keys; choose one:"
        yield from (f"# key: {_names(key)}" for key in named)
    elif () in seen.keys:
        yield "# key: none, as the messages say"
    elif guess := _guessed_key(seen):
        yield f"# key: {_names([guess])}  # a guess: no message names the key"


def _guessed_key(seen: _Seen) -> str | None:
    names = {name.lower(): name for name in reversed(seen.columns)}
    table = seen.name.lower()
    likely = ("id", f"{table}_id", f"{table.removesuffix('s')}_id", f"{table}id", "uuid", *list(names)[-1:])
    return next((names[name] for name in likely if name in names), None)


def _check_of(seen: _Seen) -> str | None:
    named = {name for key in seen.keys for name in key}
    guessed = None if named else _guessed_key(seen)
    others = [name for name in seen.columns if name not in named and name != guessed]
    number = next((name for name in others if (seen.columns[name] or "").startswith(_NUMBERS)), None)
    if number is not None:
        return f"{{type: expect_column_values_to_be_between, column: {_scalar(number)}, min_value: 0}}"
    if others:
        return f"{{type: expect_column_values_to_not_be_null, column: {_scalar(others[0])}}}"
    return None


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, names))}]"


def _flow(options: Mapping[str, object]) -> str:
    pairs = (
        f"{name}: {_scalar(value) if isinstance(value, str) else json.dumps(value)}" for name, value in options.items()
    )
    return f"{{{', '.join(pairs)}}}"


def _scalar(text: str) -> str:
    """Return a text as a YAML scalar of one line, which YAML reads back unchanged, whatever is in it."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
