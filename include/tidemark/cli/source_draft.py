"""``tidemark init``: a commented source file, with what sample dumps have. It needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from tidemark.cli.column_lines import column_lines, scalar
from tidemark.cli.guesses import Guess
from tidemark.cli.identification import format_of, hint
from tidemark.cli.landing_pattern import pattern_of
from tidemark.cli.sample import Sample, SeenTable, look_at
from tidemark.errors import ConfigurationError, LandingError
from tidemark.normalization.decoding import check_options
from tidemark.sources import json_schema
from tidemark.sources.fields import source_name
from tidemark.sources.files import default_folder, read_sources
from tidemark.values.iso8601 import EPOCH

_NUMBERS = ("int", "long", "float", "double", "decimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A source file that was written, and what a person should know about it."""

    path: Path
    remarks: Sequence[str]
    guesses: Mapping[str, Sequence[str]]
    """Table -> columns whose type or encoding is a guess that no value proves."""


def write_draft(
    name: str,
    format_name: str | None,
    samples: Sequence[str],
    options: Mapping[str, object],
    *,
    take_guesses: bool = False,
) -> Draft:
    """Write ``NAME.yaml`` into the folder of the source files.

    Args:
        name: name of the source.
        format_name: name of the format; None: the one that the first sample is in.
        samples: dump files.
        options: options of the format.
        take_guesses: whether guessed types and encodings are given, and not comments.

    Raises:
        ConfigurationError: the name is invalid or taken, the format or an option is unknown, or neither a format nor a
            sample is given.
        LandingError: a sample cannot be read to its end, or no change is read in any. No file is written.
    """
    try:
        source_name(name)
    except PydanticCustomError as error:
        raise ConfigurationError(str(error)) from error
    folder = default_folder()
    path = folder / f"{name}.yaml"
    taken = folder.is_dir() and name in {source.source for source in read_sources(folder)[0]}
    if taken or path.exists():
        raise ConfigurationError(f"A source '{name}' is in {folder} already: choose another name, or edit its file.")
    remarks: list[str] = []
    if format_name is None:
        format_name, equal = format_of(samples)
        remarks += [f"{' and '.join(equal)} read as many messages as {format_name}: --format chooses"] if equal else []
    checked = check_options(format_name, options)
    sample = look_at(format_name, samples, options)
    if samples and not sample.tables:
        raise LandingError(_nothing_read(format_name, samples, sample))
    guesses = {table: seen.guesses() for table, seen in sorted(sample.tables.items())}
    draft = _Draft(
        name=name, format=format_name, options=checked, sample=sample, guesses=guesses, take_guesses=take_guesses
    )
    text = "\n".join(draft.lines(samples)) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    json_schema.write_beside(folder)
    remarks += [f"{count} messages cannot be read: {reason}" for reason, count in sorted(sample.quarantined.items())]
    unsure = {table: [name for name, each in found.items() if each.assumed] for table, found in guesses.items()}
    return Draft(path=path, remarks=remarks, guesses={table: names for table, names in unsure.items() if names})


def _nothing_read(format_name: str, samples: Sequence[str], sample: Sample) -> str:
    reasons = "; ".join(f"{count} messages: {reason}" for reason, count in sample.quarantined.most_common(2))
    like = hint(format_name, samples) or (f"Set aside: {reasons}" if reasons else "All are control events.")
    return f"no change event among the {sample.messages} messages of the sample, so no file is written. {like}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What the source file is made from."""

    name: str
    format: str
    options: BaseModel
    sample: Sample
    guesses: Mapping[str, Mapping[str, Guess]]
    take_guesses: bool

    def lines(self, samples: Sequence[str]) -> Iterator[str]:
        """Yield the lines of the file."""
        given = self.options.model_dump(mode="json", exclude_unset=True)
        pattern, day = f"${{TIDEMARK_LANDING:-landing}}/{self.name}/%Y-%m-%d/*", None
        if samples:
            pattern, day = pattern_of(samples[0])
        yield f"# yaml-language-server: $schema={json_schema.FILE}"
        yield f"source: {self.name}"
        yield f"format: {self.format}"
        yield f"options: {_flow(given)}  # the format's own: docs/formats/{self.format}.md"
        yield ""
        yield "# Where the dumps arrive. With fields of time (%Y %m %d %H ...) a run takes its interval's files, else"
        yield "# all that have not landed yet. Names that end in .tmp or .part, and hidden ones, are left alone."
        yield f"landing: {scalar(pattern)}" + ("  # from the path of the sample" if samples else "")
        yield 'schedule: "@daily"                 # or five cron fields, or null'
        yield f"start_date: {self._start(day)}"
        yield ""
        yield '# target: "{source}.{table}"        # {database} and {schema} may be used too'
        yield "# max_deletes: 0.5                 # share of a table's rows that one cut may delete without approval"
        yield "# max_quarantined: 0.05            # share of messages, and of a table's events, that may be set aside"
        yield "# max_message_mib: 16              # a longer message is set aside alone; at most 128"
        yield "# max_open_hours: 24               # a transaction that is open for longer ends the run with status 1"
        yield ""
        yield "# Tables that are not named here are found in the dumps, with the key that messages name."
        if not self.sample.tables:
            yield "tables: {}"
            yield from (f"# {line}" for line in _EXAMPLE)
            return
        yield "tables:"
        for table, seen in sorted(self.sample.tables.items()):
            yield from _table_lines(table, seen, self.guesses[table], take_guesses=self.take_guesses)

    def _start(self, day: date | None) -> str:
        """Return the day of the oldest event, or an earlier one in the path of the sample; without a sample today."""
        at = self.sample.oldest
        days = [day] if day else []
        if at is not None and at >= _NO_EVENT_BEFORE:
            days.append((EPOCH + timedelta(microseconds=at)).date())
        if not days:
            return datetime.now(UTC).date().isoformat()
        return f"{min(days).isoformat()}             # the oldest event of the sample, or the day in its path"


_NO_EVENT_BEFORE = 946_684_800_000_000
"""2000-01-01: an earlier time of an event says that the producer has none."""

_EXAMPLE = (
    "  shop.orders:                     # as the source names it; a pattern is allowed",
    "    key: [id]",
    '    columns: {total: "decimal(18, 2)"}      # Iceberg types; they come before what the messages say',
    "    checks:                        # Great Expectations by their own names; blocking unless severity says warn",
    "      - {type: expect_column_values_to_be_between, column: total, min_value: 0}",
)


def _table_lines(table: str, seen: SeenTable, guesses: Mapping[str, Guess], *, take_guesses: bool) -> Iterator[str]:
    counts = ", ".join(f"{count} {operation}" for operation, count in sorted(seen.operations.items()))
    yield f"  {scalar(table)}:  # in the sample: {counts}"
    yield from (f"    {line}" for line in _key_lines(seen))
    yield from (f"    {line}" for line in column_lines(seen.columns, guesses, take_guesses=take_guesses))
    kinds = _kinds(seen, guesses)
    proposed = seen.rows.checks({name: kind for name, (kind, assumed) in kinds.items() if not assumed})
    why = f"true of all {seen.rows.rows} rows of the sample" if proposed else "Great Expectations by their own names"
    if checks := proposed or _example(kinds):
        yield f"    # checks:                      # {why}; severity: warn never blocks"
        yield from (f"    #   - {check}" for check in checks)


def _key_lines(seen: SeenTable) -> Iterator[str]:
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
    elif likely := seen.guessed_key():
        yield f"# key: {_names(likely)}  # a guess: no message names the key"
    else:
        yield "# key: none is guessed: no column that looks like one tells the rows of the sample apart"


def _kinds(seen: SeenTable, guesses: Mapping[str, Guess]) -> dict[str, tuple[str, str]]:
    """Return by column outside the key its type, and what is assumed if the type is a guess."""
    named = {name for key in seen.keys for name in key}
    keys = named or {*seen.guessed_key()}
    others = [name for name in seen.columns if name not in keys]
    return {name: (kind, "") if (kind := seen.columns[name]) else _guessed(guesses[name]) for name in others}


def _guessed(guess: Guess) -> tuple[str, str]:
    return guess.type, guess.assumed


def _example(kinds: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return one check that a table with such columns can have; none if it has no column beside its key."""
    number = next((name for name, (kind, _) in kinds.items() if kind.startswith(_NUMBERS)), None)
    if number is not None:
        return [f"{{type: expect_column_values_to_be_between, column: {scalar(number)}, min_value: 0}}"]
    return [f"{{type: expect_column_values_to_not_be_null, column: {scalar(name)}}}" for name in list(kinds)[:1]]


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(scalar, names))}]"


def _flow(options: Mapping[str, object]) -> str:
    pairs = (
        f"{name}: {scalar(value) if isinstance(value, str) else json.dumps(value)}" for name, value in options.items()
    )
    return f"{{{', '.join(pairs)}}}"
