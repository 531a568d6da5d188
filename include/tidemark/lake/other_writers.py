"""What other writers did to a table that Tidemark publishes, as far as its rows and columns are concerned.

Iceberg tables are shared. Files that another engine rewrote, snapshots that it expired, partitions, sort orders,
properties and columns that it added do no harm. Rows that it wrote, and columns that it renamed or dropped, are in no
change log: the next cut would be merged into a table that is not what its events say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from tidemark.errors import ConfigurationError
from tidemark.lake.branches import MARKER, ancestry, brought_schema, head, marker
from tidemark.lake.names import candidate_branch
from tidemark.lake.properties import published

_WRITABLE_VERSION = 2
"""The newest format version that PyIceberg writes."""


def changes(table: Table) -> str | None:
    """Return what other writers changed since Tidemark last moved ``main``; None if it does no harm.

    Nothing is known of a table whose ``main`` was last moved by a version of Tidemark that did not note it.
    """
    if problem := unwritable(table):
        return problem
    recorded = published(table.properties)
    found = [*row_changes(table, recorded["snapshot"]), *_columns(table, recorded["schema"])] if recorded else []
    return _sentence(table, found)


def renamed_since_built(table: Table, cut: int) -> str | None:
    """Return which columns another writer renamed or dropped since a cut's candidate was built; None for none.

    Publishing notes the schema that it leaves, so nobody would notice it afterwards. A candidate that was rebuilt
    brings a schema of its own.
    """
    branch, recorded = candidate_branch(cut), published(table.properties)
    if branch not in table.refs() or not recorded or brought_schema(table, head(table, branch)) is not None:
        return None
    return _sentence(table, [*_columns(table, recorded["schema"])])


def _sentence(table: Table, found: Sequence[str]) -> str | None:
    return f"another writer changed {'.'.join(table.name())}: {'; '.join(found)}" if found else None


def unwritable(table: Table) -> str | None:
    """Return why a table cannot be written any more, because another writer upgraded it; None if it can."""
    if table.format_version <= _WRITABLE_VERSION:
        return None
    version = f"format version {table.format_version}, and PyIceberg writes up to {_WRITABLE_VERSION}"
    return f"{'.'.join(table.name())} has {version}"


def row_changes(table: Table, expected: int) -> list[str]:
    """Return what other writers did to the rows of ``main`` since a snapshot was published; empty for nothing.

    Of a table that does not have the snapshot any more, it is what the snapshots that are left show.
    """
    found: list[str] = []
    for snapshot in ancestry(table):
        if snapshot.snapshot_id == expected:
            return found
        if not _keeps_rows(snapshot):
            found.append(f"snapshot {snapshot.snapshot_id} ({_described(snapshot)})")
    if table.snapshot_by_id(expected) is not None:
        return [f"main was moved away from snapshot {expected}, which was published"]
    return found


def _keeps_rows(snapshot: Snapshot) -> bool:
    """Return whether a snapshot is Tidemark's own, or only exchanged files (``replace`` in the specification)."""
    if snapshot.summary is None:
        return False
    own = any(name.startswith(MARKER) for name in snapshot.summary.additional_properties)
    return own or snapshot.summary.operation is Operation.REPLACE


def _described(snapshot: Snapshot) -> str:
    if snapshot.summary is None:
        return "it does not say what it did"
    entries = snapshot.summary.additional_properties
    writer = entries.get("engine-name") or entries.get("app-id") or entries.get("spark.app.id")
    return snapshot.summary.operation.value + (f" by {writer}" if writer else "")


def _columns(table: Table, schema_id: int) -> Iterator[str]:
    before = table.schemas().get(schema_id)
    if before is None:
        return  # another engine removed the old schemas
    now = {field.field_id: field.name for field in table.schema().fields}
    for field in before.fields:
        if field.field_id not in now:
            yield f"column {field.name!r} is gone"
        elif now[field.field_id] != field.name:
            yield f"column {field.name!r} is called {now[field.field_id]!r}"


def require_in_step(raw: Table, changelog: Table | None) -> None:
    """Refuse a raw table that stands at an earlier batch than its change log, which only another writer can do.

    New messages would get numbers of batches that count as decoded, and no event would ever be made of them.

    Raises:
        ConfigurationError: it does.
    """
    landed, decoded = int(marker(raw, "batch") or 0), int(marker(changelog, "batch") or 0)
    if landed < decoded:
        raise ConfigurationError(
            f"{'.'.join(raw.name())} stands at batch {landed}, but batch {decoded} of it is decoded: another writer "
            "moved its main back. Put main back on the newest snapshot of the table, with `set_current_snapshot`"
        )
