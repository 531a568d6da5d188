"""The inputs of a derivation of events: the messages in parts for the tasks, and the metadata to decode them by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError
from tidemark.events import Message
from tidemark.formats import Known, gather, informed, resolve
from tidemark.lake.data_files import ROW_GROUP_BYTES, TableFolder
from tidemark.lake.filters import among, equals, unset
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.stores import path_of
from tidemark.normalization import tasks
from tidemark.normalization.decoding import metadata_of
from tidemark.normalization.parts import DETAIL, RawPart
from tidemark.normalization.tasks import Done
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.values.sealing import known_keys, unsealed_statement

_EXPANSION = 8
"""Messages are about this number of times larger than their Parquet file."""


def parts(table: Table, where: BooleanExpression) -> Iterable[spread.Part]:
    """Yield the row groups of a table of messages whose first partition field is the batch, each with its size.

    The last part of a file goes to its end, so that no row group is left out where the file's entry lists fewer of them
    than there are, or none, as other engines may write it.
    """
    for planned in table.scan(row_filter=where).plan_files():
        file = planned.file
        groups = len(file.split_offsets or ()) or 1
        path = path_of(table, file.file_path)
        size = min(ROW_GROUP_BYTES, file.file_size_in_bytes * _EXPANSION // groups)
        for group in range(groups):
            last = group + 1 if group + 1 < groups else None
            yield RawPart(path=path, batch=int(file.partition[0]), first=group, last=last), size


def quarantined(quarantine: Table, where: BooleanExpression, raw: Table) -> Iterator[spread.Part]:
    """Yield the row groups of messages in quarantine, as ``parts``; with the files of ``raw`` that have lost bytes."""
    bare = {part.path: part.batch for part, _ in parts(quarantine, And(where, unset(DETAIL)))}
    files: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    if bare:
        for part, size in parts(raw, among("batch", set(bare.values()))):
            files[part.batch][part.path] += size
    for part, size in parts(quarantine, where):
        own = files[part.batch] if part.path in bare else {}
        yield msgspec.structs.replace(part, raw=tuple(own)), size + sum(own.values())


def run(parts: Sequence[spread.Part], work: Callable[[bytes], bytes]) -> list[Done]:
    """Return what tasks found in parts with messages.

    Raises:
        ConfigurationError: a key is missing that messages are encrypted with.
    """
    done = spread.run(parts, work, Done)
    if problem := next((task.problem for task in done if task.problem), None):
        raise ConfigurationError(problem)
    return done


def known(source: Source, messages: Sequence[spread.Part], read_from: TableFolder, changelog: Table) -> Known | None:
    """Return the metadata of a run; None if the format needs no metadata messages.

    Args:
        source: the source.
        messages: parts with the messages of the run, which are searched for metadata messages.
        read_from: how workers read the parts.
        changelog: the change log, which keeps the metadata messages of earlier runs as schema changes.
    """
    module = informed(resolve(source.format))
    if module is None:
        return None
    options = source.options.model_dump(mode="json")
    keys = known_keys(source.raw_key)
    collect = partial(tasks.collect, format_name=source.format, options=options, raw=read_from, keys=keys)
    new = [pair for task in run(messages, collect) for pair in task.metadata]
    fields = ("operation", "detail")
    rows = changelog.scan(row_filter=equals("kind", RowKind.SCHEMA_CHANGE.value), selected_fields=fields).to_arrow()
    stated = zip(*(rows.column(name).to_pylist() for name in fields), strict=True)
    texts = {text: None for each in dict.fromkeys(stated) for text in [unsealed_statement(*each)[1]]}
    kept = (Message(value=text.encode(), file="", place=0) for text in texts)
    return gather([*new, *metadata_of(module, kept, source.options)])
