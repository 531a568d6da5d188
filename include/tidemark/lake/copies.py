"""Tables beside the lake's own: empty tables for a rebuild, copies for a rehearsal.

An Iceberg table is a pointer to a metadata file. The same metadata under a second name is a copy: it costs nothing and
shares all files. Readers of the first name do not see what is written to the copy.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as pafs
from pyiceberg.exceptions import NoSuchTableError, ResolveError, ValidationError
from pyiceberg.schema import Schema, assign_fresh_schema_ids, promote
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import NestedField

from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import names as table_names
from tidemark.lake.branches import BRINGS, MARKER, ancestry, head, to
from tidemark.lake.lake import Lake, as_iceberg, standing_in
from tidemark.lake.names import Identifier, is_log
from tidemark.lake.properties import VOID_DOC
from tidemark.lake.stores import store_of
from tidemark.text import first_line

_NOT_ITS_OWN: Mapping[str, str] = {"write.metadata.delete-after-commit.enabled": "false"}
"""Property of every copy. The metadata log of a copy names files of the real table, also the current one; with the
property on, a commit to the copy would delete the oldest of them."""


class _Beside(Lake):
    """The lake, with some of its tables in a namespace of their own."""

    def __init__(self, lake: Lake, namespace: str) -> None:
        self.name, self.properties, self.catalog = lake.name, lake.properties, lake.catalog
        self.lake = lake
        self.namespace = namespace

    def location(self, identifier: Identifier) -> str | None:
        """Return where the files of a new table are to be."""
        return self.lake.location(identifier)

    def _copy(self, real: Table, identifier: Identifier, *updates: TableUpdate) -> None:
        """Give a table a second name, and apply changes to the copy.

        Raises:
            IncompatibleSchemaError: the changes take a column that the table is partitioned or sorted by.
        """
        copy = self._registered(real, identifier)
        try:
            self.catalog.commit_table(copy, (), (SetPropertiesUpdate(updates=dict(_NOT_ITS_OWN)), *updates))
        except ValidationError as error:
            self._drop(self.at(identifier)[1])
            raise IncompatibleSchemaError(
                f"{'.'.join(real.name())} cannot get its new columns: {first_line(error)}. Take the column out of its "
                "partitions or its sort order first (ALTER TABLE)"
            ) from error

    def _registered(self, real: Table, identifier: Identifier) -> Table:
        self.make_namespace(self.namespace)
        return self.catalog.register_table(self.at(identifier), real.metadata_location)

    def _drop(self, name: str) -> None:
        try:
            self.catalog.drop_table((self.namespace, name))  # only the entry in the catalog: the files are shared
        except NoSuchTableError:
            return


class EmptyLake(_Beside):
    """The lake with an empty table in place of each table that is not a log, made at the first ``ensure``."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake, "rebuild")
        self._made: dict[Identifier, Mapping[str, str]] = {}

    def at(self, identifier: Identifier) -> Identifier:
        """Return the table's name in the catalog."""
        own = self.lake.at(identifier)
        return own if is_log(identifier) else Identifier(self.namespace, table_names.joined(own))

    def ensure(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema,
        properties: Mapping[str, str],
        *,
        partition_by: Sequence[str] = (),
        location: str | None = None,
    ) -> Table:
        """Return an empty table with this schema, whatever the lake's own table holds; a log is the lake's own."""
        if is_log(identifier) or identifier in self._made:
            if identifier in self._made:
                self._made[identifier] = properties
            return super().ensure(identifier, schema, properties, partition_by=partition_by)
        real = self.lake.ensure(identifier, schema, properties, partition_by=partition_by, location=location)
        self._drop(self.at(identifier)[1])  # left by an attempt that was interrupted
        without_rows = RemoveSnapshotRefUpdate(ref_name=MAIN_BRANCH)
        self._copy(real, identifier, without_rows, *_new_schema(real, as_iceberg(schema)))
        self._made[identifier] = properties
        return super().ensure(identifier, schema, properties, partition_by=partition_by)

    def go_on(self, branch: str, *, without: Identifier) -> None:
        """Move ``main`` of the tables beside to a branch. ``without`` is dropped, and made again at its next use."""
        if self._made.pop(without, None) is not None:
            self._drop(self.at(without)[1])
        for identifier in self._made:
            table = self.load(identifier)
            self.catalog.commit_table(table, (), (to(MAIN_BRANCH, head(table, branch)),))

    def adopt(self, branch: str) -> None:
        """Copy a branch of the tables beside to the lake's own tables, with one commit for each table.

        ``main`` and the current schema of the lake's own tables do not change here. ``fast_forward`` moves both later,
        in one commit.

        Raises:
            CommitFailedException: ``main`` of a table moved meanwhile.
        """
        for identifier, properties in self._made.items():
            real, copy = self.lake.load(identifier), self.load(identifier)
            base = head(real)
            snapshots = list(ancestry(copy, branch))[::-1]
            snapshots[0] = snapshots[0].model_copy(
                update={"parent_snapshot_id": base, "summary": _summary(snapshots[0], {}, Operation.OVERWRITE)}
            )
            # Only Tidemark's own properties. The owner may have changed those that say how files are written.
            own = {name: value for name, value in properties.items() if name.startswith(MARKER)}
            brings = {BRINGS: json.dumps(own)}
            snapshots[-1] = snapshots[-1].model_copy(update={"summary": _summary(snapshots[-1], brings)})
            known = {schema.schema_id for schema in real.schemas().values()}
            updates: list[TableUpdate] = [
                AddSchemaUpdate.model_validate({"schema": schema})
                for schema in copy.schemas().values()
                if schema.schema_id not in known
            ]
            updates += [AddSnapshotUpdate(snapshot=snapshot) for snapshot in snapshots]
            updates.append(to(branch, snapshots[-1].snapshot_id))
            self.catalog.commit_table(real, (AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=base),), tuple(updates))

    def close(self) -> None:
        """Drop the tables beside; files that were adopted belong to the lake's own tables."""
        for identifier in self._made:
            self._drop(self.at(identifier)[1])


@contextmanager
def emptied(lake: Lake) -> Iterator[EmptyLake]:
    """Yield the lake with empty tables to build in, and drop them afterwards."""
    beside = EmptyLake(lake)
    try:
        yield beside
    finally:
        beside.close()


def _new_schema(table: Table, wanted: Schema) -> list[TableUpdate]:
    """Return the changes that give a table other columns; none if it has these columns already.

    A column keeps its id if old files can be read with its new type. Any other column gets an id that was never used.
    """
    fresh = itertools.count(table.metadata.last_column_id + 1)
    fields = [_field(field, table.schema(), fresh) for field in wanted.fields]
    if fields == list(table.schema().fields):
        return []
    number = max(table.schemas()) + 1
    schema = Schema(*fields, schema_id=number)
    return [
        AddSchemaUpdate.model_validate({"schema": schema}),
        SetCurrentSchemaUpdate.model_validate({"schema-id": number}),
    ]


def _field(field: NestedField, schema: Schema, fresh: Iterator[int]) -> NestedField:
    was = next((old for old in schema.fields if old.name == field.name), None)
    # The comments belong to the table's owner, except for Tidemark's own comment.
    doc = field.doc if was is None or was.doc == VOID_DOC else field.doc or was.doc
    if was is not None and str(was.field_type) == str(field.field_type):
        return was.model_copy(update={"doc": doc})
    if was is not None and _promotes(was, field):
        return field.model_copy(update={"field_id": was.field_id, "doc": doc})
    number = next(fresh)
    kind = assign_fresh_schema_ids(field.field_type, lambda: next(fresh))
    return field.model_copy(update={"field_id": number, "field_type": kind})


def _promotes(was: NestedField, field: NestedField) -> bool:
    try:
        promote(was.field_type, field.field_type)
    except ResolveError:
        return False
    return True


def _summary(snapshot: Snapshot, properties: Mapping[str, str], operation: Operation | None = None) -> Summary:
    """Return the summary of a snapshot with further entries."""
    summary = snapshot.summary
    kept = dict(summary.additional_properties) if summary else {}
    return Summary(operation or (summary.operation if summary else Operation.OVERWRITE), **{**kept, **properties})


class _Rehearsal(_Beside):
    """The lake with a copy of each table, made when it is first used; new files go to a folder of their own."""

    def __init__(self, lake: Lake, source: str) -> None:
        super().__init__(lake, table_names.rehearsal(source))
        self._raw = lake.load(table_names.raw(source))
        self._folder = f"{self._raw.location()}/rehearsal"
        self._looked_at: set[Identifier] = set()

    def at(self, identifier: Identifier) -> Identifier:
        """Return the table's name in the catalog."""
        if identifier not in self._looked_at:
            self._looked_at.add(identifier)
            real = self.lake.find(identifier)
            if real is not None:
                folder = f"{self._folder}/{table_names.joined(identifier)}"
                paths = {"write.data.path": f"{folder}/data", "write.metadata.path": f"{folder}/metadata"}
                self._copy(real, identifier, SetPropertiesUpdate(updates=paths))
        return Identifier(self.namespace, table_names.joined(identifier))

    def location(self, identifier: Identifier) -> str | None:
        """Return where the files of a new table are to be."""
        return f"{self._folder}/{table_names.joined(identifier)}"

    def clear(self) -> None:
        """Drop every copy, and delete the files that were written."""
        if (self.namespace,) in self.catalog.list_namespaces():
            for name in self.tables(self.namespace):
                self._drop(name)
            self.catalog.drop_namespace(self.namespace)
        files, path = store_of(self._raw, self._folder)
        if files.get_file_info(path).type != pafs.FileType.NotFound:
            files.delete_dir(path)


@contextmanager
def rehearsal(source: str) -> Iterator[Lake]:
    """Yield a lake of copies, which stands in for the lake in this context; drop the copies afterwards."""
    lake = Lake.open()
    copies = _Rehearsal(lake, source)
    copies.clear()  # left by a rehearsal that was interrupted
    try:
        with standing_in(copies):
            yield copies
    finally:
        copies.clear()
