"""Tables that the source file asks for no more, with values that their published table hides by now.

A history or a feed that is switched off stays as it was, and so do whole rows once there is no ``where`` or ``derive``.
A mask that the published table gets after that does not reach them, nor does ``exclude``. They belong to the owner, so
no run drops them; each run says what they show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyiceberg.table import Table

from tidemark.lake.feeds import fed
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed, history, is_feed, whole, whole_beside
from tidemark.ledger.ledger import Ledger
from tidemark.sources import model
from tidemark.sources.model import Source
from tidemark.tables.column_rules import labels, recorded


def remarks(lake: Lake, ledger: Ledger, source: Source) -> Iterator[str]:
    """Yield a sentence for each such table, until it is dropped or asked for again."""
    hiding = {
        row.identifier: promised
        for name, row in ledger.published_tables().items()
        if row.target is not None and _hides(promised := source.table_for(name))
    }
    there = {Identifier(space, name) for space in _namespaces(hiding) for name in lake.tables(space)}
    for target, promised in sorted(hiding.items(), key=lambda each: each[0]):
        for left in sorted(there.intersection(_not_asked_for(target, promised)) if target in there else ()):
            if columns := _shown(lake.load(target), lake.load(left)):
                yield (
                    f"{left} has {', '.join(columns)} as they were before {target} hid them. The source file does not "
                    f"ask for this table any more, so no run changes it. Drop it together with its files, in Spark by "
                    f"DROP TABLE {lake.spark_name(left)} PURGE"
                )


def _hides(promised: model.Table) -> bool:
    return bool(promised.mask or promised.exclude) or promised.select is not None


def _namespaces(targets: Iterable[Identifier]) -> set[str]:
    return {each.namespace for target in targets for each in (target, whole(target))}


def _not_asked_for(target: Identifier, promised: model.Table) -> set[Identifier]:
    """Return the names that tables beside a published one would have which the source file does not ask for."""
    rows, versions = whole_beside(target)
    found = set() if promised.feed else {feed(target)}
    if not promised.history:
        found |= {history(target), versions}
    return found if promised.keeps_whole else {*found, rows, versions}


def _shown(table: Table, left: Table) -> list[str]:
    """Return the columns of a table that is left whose values the published table leaves out, or masks otherwise."""
    rules, columns = recorded(table), set(left.schema().column_names)
    state = fed(left) if is_feed(left.name()[-1]) else None
    was = labels(recorded(left)) if state is None else state.masks
    hidden: dict[str, str | None] = {**dict.fromkeys(rules.get("left_out", ())), **labels(rules)}
    shown = {
        column
        for name, label in hidden.items()
        for column in columns & _names(table, name)
        if label is None or was.get(column) != label
    }
    return sorted(shown)


def _names(table: Table, name: str) -> set[str]:
    """Return the names that a column of a table has had."""
    fields = [field for schema in table.schemas().values() for field in schema.fields]
    ids = {field.field_id for field in fields if field.name == name}
    return {name} | {field.name for field in fields if field.field_id in ids}
