"""What the driver knows of ``mask_at: landing``: the masks for the workers, and what was landed otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from tidemark.ddl.history import by_statements
from tidemark.events import ChangeEvent, Quarantined, SchemaChange, Shape
from tidemark.lake.data_files import remove
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.ledger.sealed_statements import unsealed
from tidemark.ledger.tally import LoggedStatement
from tidemark.normalization.decoding import decoded_files
from tidemark.normalization.masked_events import Masked, Masking
from tidemark.normalization.protection import Protection
from tidemark.normalization.tasks import Done, Outputs
from tidemark.positions import encode_position
from tidemark.sources.model import Source
from tidemark.values.masking import Masks, labelled
from tidemark.values.sealing import known_keys


def protection_of(ledger: Ledger, source: Source) -> Protection | None:
    """Return what workers need to mask and encrypt; None unless the source file says ``mask_at: landing``.

    Raises:
        ConfigurationError: a key or a secret is missing.
    """
    keys = known_keys(source.sealing_variable)
    if keys is None:
        return None
    objects = {row.object for row in ledger.contents()}
    return Protection(keys=keys, masking=_following(_masking(source), ledger.ddl(), objects))


def widened(known: Protection, ledger: Ledger, done: Sequence[Done]) -> Protection:
    """Return what workers need if statements among the messages gave masked columns other names; else the same.

    Args:
        known: what the workers were given.
        ledger: of the source.
        done: what they counted.
    """
    tallies = [(batch, tally) for task in done for batch, tally in task.tallies.items()]
    new = [unsealed(StatementRow.of(batch, each)) for batch, tally in tallies for each in tally.statements]
    stated = [*ledger.ddl(), *(row for row in new if not row.is_load)]
    names = {str(content.table) for _, tally in tallies for content, _ in tally.contents}
    wider = _following(known.masking, stated, names | {row.object for row in ledger.contents()})
    connected = ((table, name) for table, pairs in wider.renamed.items() for pair in pairs for name in pair)
    if all(wider.mask_of(*each) == known.masking.mask_of(*each) for each in connected):
        return known
    return replace(known, masking=wider)


def discard(done: Iterable[Done], outputs: Outputs) -> None:
    """Delete what tasks wrote: it may have plain values, and no snapshot has it."""
    for task in done:
        remove(task.files, outputs.log)
        remove(task.set_aside, outputs.quarantine)


def masking_of_dump(source: Source, format_name: str, paths: Sequence[str], options: Mapping[str, object]) -> Masking:
    """Return the masks of a source for dump files, which are read for the statements that give columns other names.

    Raises:
        ConfigurationError: the secret of the masks is missing.
    """
    decoded = (events for _, events in decoded_files(format_name, paths, options))
    rows: list[StatementRow] = []
    objects: set[str] = set()
    for event in (event for events in decoded if not isinstance(events, Quarantined) for event in events):
        if isinstance(event, ChangeEvent):
            objects.add(str(event.table))
        elif isinstance(event, SchemaChange):
            position = encode_position(event.position)
            stated = LoggedStatement(
                event.table,
                position,
                event.dialect,
                event.statement,
                event.committed_at,
                database=event.database,
                schema=event.schema,
            )
            rows.append(StatementRow.of(0, stated))
    return _following(_masking(source), rows, objects)


def remarks(ledger: Ledger, source: Source) -> Iterator[str]:
    """Yield a sentence for each table with values in the change log that are masked otherwise than now."""
    known = protection_of(ledger, source)
    if known is None:
        return
    used = {(row.object, row.shape) for row in ledger.contents()}
    for name, shapes in ledger.shapes_by_object({name for name, _ in used}).items():
        of_events = [shape for each, shape in shapes.items() if (name, each) in used]
        if unlike := sorted(set(_unlike(known.masking, name, of_events))):
            yield (
                f"the change log of {name} has values of {', '.join(unlike)} that landed before the source file masked "
                f"them as it does now: `tidemark run {source.source} --reprocess` derives it anew from the messages, "
                f"and `tidemark maintain {source.source}` removes the files that held them"
            )


def _unlike(known: Masking, table: str, shapes: Iterable[Shape]) -> Iterator[str]:
    for shape in shapes:
        for column in shape.columns:
            mask = known.mask_of(table, column.name)
            if (known.labels[mask] if mask else msgspec.UNSET) != column.masked:
                yield column.name


def _masking(source: Source) -> Masking:
    tables = {
        name: Masked(tuple(table.mask.items()), tuple(table.rename.items())) for name, table in source.tables.items()
    }
    used = {mask for table in source.tables.values() for mask in table.mask.values()}
    return Masking(
        tables=tables,
        labels={mask: labelled(mask, source.mask_secret) for mask in used},
        secret=Masks({mask.value: mask for mask in used}, source.mask_secret).secret(),
        declared=source.written(),
        publishes_copies=source.migration_tables,
    )


def _following(known: Masking, rows: Sequence[StatementRow], objects: Collection[str]) -> Masking:
    """Return the masks with the names of columns that statements connect, of the tables that have masks."""
    masked = [name for name in objects if (entry := known.entry_of(name)) is not None and entry.masks]
    found = by_statements(rows, objects, unsure=True) if masked else {}
    pairs: Mapping[str, tuple[tuple[str, str], ...]] = {
        name: tuple((each.old, each.new) for each in history.renamings if each.new is not None)
        for name, history in found.items()
        if name in masked
    }
    return replace(known, renamed={name: each for name, each in pairs.items() if each})
