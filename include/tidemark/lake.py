"""The lake: the only module that creates Iceberg tables, changes their schema, and moves branches and tags.

It speaks to the catalog through PyIceberg, so that none of this needs Spark, and none of it is SQL text. The catalog
is configured the way PyIceberg is (``.pyiceberg.yaml`` or ``PYICEBERG_CATALOG__TIDEMARK__...``); without that, an
embedded one on SQLite under ``TIDEMARK_HOME`` is used, with nothing to start. Spark's settings are derived from the
same properties, so both open the same tables.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import (
    PyArrowFileIO,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField
from pyiceberg.utils.config import Config
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError

from tidemark.data_files import Target, Written
from tidemark.errors import ConfigurationError, PublishConflictError, RetriableLakeError
from tidemark.queueing import retried

MARKER = "tidemark."
"""Prefix of what Tidemark writes into snapshot summaries, in the commit that holds the data."""

TABLE_PROPERTIES: Mapping[str, str] = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}

LOG_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # They are read by partition; statistics of whole messages would only make the metadata large.
    "write.metadata.metrics.default": "none",
    # Rows go to the file of their partition as they come.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
}
"""Append-only tables."""

KEPT_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # Whether a batch is newer than all tombstones is told by the positions of their files: see docs/adr/0020.
    "write.metadata.metrics.column.position": "full",
}
"""What runs keep of a table for later ones."""

CHANGE_LOG_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # Tables without a key look for positions among earlier events: see docs/adr/0011.
    "write.metadata.metrics.column.position": "full",
    # An event of a transaction that comes again is looked for among those of its time: docs/adr/0013.
    "write.metadata.metrics.column.committed_at": "full",
}

STATE_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # Only the changed rows are written; see docs/adr/0004.
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    # Whether a batch is newer than all of a table is told by the positions of its files: see docs/adr/0020.
    "write.metadata.metrics.column._cdc_position": "full",
    # A longer one is of values that hardly repeat, and making it costs more than all else of a write.
    "write.parquet.dict-size-bytes": str(128 << 10),
}
"""Tables that hold one row a key."""

Identifier = tuple[str, str]


def history_of(target: Identifier) -> Identifier:
    """Where the versions of a published table's rows are kept; ``name_problem`` keeps the name free."""
    return (target[0], f"{target[1]}__history")


def home() -> Path:
    """Folder of the embedded warehouse, catalog and reports: ``TIDEMARK_HOME``, else ``.tidemark``."""
    return Path(os.environ.get("TIDEMARK_HOME") or ".tidemark").resolve()


def catalog_name() -> str:
    """Name of the catalog, part of every key in it: ``TIDEMARK_CATALOG``, else ``tidemark``."""
    return os.environ.get("TIDEMARK_CATALOG") or "tidemark"


def catalog_properties() -> Mapping[str, str]:
    """The catalog as PyIceberg is configured, else the embedded one on SQLite.

    Raises:
        ConfigurationError: the configuration is not a flat mapping of texts.
    """
    configured = Config().get_catalog_config(catalog_name())
    if configured:
        return {key: str(value) for key, value in configured.items()}
    base = home()
    (base / "warehouse").mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{base / 'catalog.db'}", "warehouse": (base / "warehouse").as_uri()}


class Lake:
    """One catalog and the tables in it."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self.properties = dict(properties)
        self.catalog: Catalog = load_catalog(name, **self.properties)

    @classmethod
    def open(cls) -> Lake:
        """The lake that the environment names, or the one that stands in for it (``standing_in``).

        Raises:
            RetriableLakeError: the catalog cannot be reached.
        """
        other = _OTHER.get()
        if other is not None:
            return other
        try:
            return _opened(catalog_name(), tuple(sorted(catalog_properties().items())))
        except OSError as error:
            raise RetriableLakeError(f"catalog {catalog_name()!r} cannot be opened: {error}") from error

    def spark_settings(self) -> dict[str, str]:
        """Spark's settings for this catalog, derived from PyIceberg's."""
        prefix = f"spark.sql.catalog.{self.name}"
        settings = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.cache-enabled": "false"}
        settings.update({f"{prefix}.{key}": value for key, value in _spark_properties(self.properties).items()})
        return settings

    def at(self, identifier: Identifier) -> Identifier:
        """Where the catalog has the table: under its own name, but for tables that stand beside (``copies``)."""
        return identifier

    def location(self, identifier: Identifier) -> str | None:  # noqa: ARG002  a copy's table has one
        """Where the files of a new table are to be; None for the catalog's own choice."""
        return None

    def spark_name(self, identifier: Identifier, branch: str | None = None) -> str:
        """The table (or a branch of it) as Spark names it, every part quoted."""
        parts = (self.name, *self.at(identifier), *([f"branch_{branch}"] if branch else []))
        return ".".join(quoted(part) for part in parts)

    def find(self, identifier: Identifier) -> Table | None:
        """The table as it stands now, or None."""
        try:
            return self.catalog.load_table(self.at(identifier))
        except NoSuchTableError:
            return None

    def load(self, identifier: Identifier) -> Table:
        """The table as it stands now.

        Raises:
            ConfigurationError: there is none.
        """
        table = self.find(identifier)
        if table is None:
            raise ConfigurationError(f"no table {'.'.join(identifier)} in the lake yet: run its source first")
        return table

    def ensure(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema,
        properties: Mapping[str, str],
        *,
        partition_by: Sequence[str] = (),
    ) -> Table:
        """The table, created when missing: namespace, partitioning by columns, an empty ``main`` snapshot and all."""
        return self._ensure(identifier, schema, properties, partition_by)

    # Another source may be making the same namespace or ledger table at this moment: look again.
    @retried(CommitFailedException, IntegrityError)
    def _ensure(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema,
        properties: Mapping[str, str],
        partition_by: Sequence[str],
    ) -> Table:
        table = self.find(identifier)
        if table is None:
            self.catalog.create_namespace_if_not_exists(self.at(identifier)[0])
            # Partitioned from its first spec on: else engines look at every row for what partitions tell.
            schema = as_iceberg(schema)
            spec = _identity_spec(schema, partition_by)
            table = self.catalog.create_table_if_not_exists(
                self.at(identifier), schema, self.location(identifier), spec, properties=dict(properties)
            )
        if table.current_snapshot() is None:  # main must exist before a branch can start from it
            table.append(table.schema().as_arrow().empty_table())
        return table

    def target(
        self, table: Table, schema: pa.Schema, *, plain: Iterable[str] = (), bounded: Iterable[str] = ()
    ) -> Target:
        """What workers have to know to write files of a table with the columns of ``schema``.

        Raises:
            ConfigurationError: the lake is on a store that PyArrow cannot write to.
        """
        location = table.properties.get("write.data.path") or f"{table.location()}/data"
        store = PyArrowFileIO(table.io.properties)
        scheme, host, folder = store.parse_location(location, table.io.properties)
        try:
            filesystem = store.fs_by_scheme(scheme, host)
        except ValueError as error:
            raise ConfigurationError(f"{location}: workers cannot write there: {error}") from error
        filesystem.create_dir(folder, recursive=True)
        ids = table.schema().as_arrow()
        with_ids = pa.schema([_with_id(field, ids.field(field.name)) for field in schema])
        return Target(
            filesystem=filesystem,
            folder=folder,
            location=location,
            schema=with_ids,
            plain=frozenset(plain),
            bounded=frozenset(bounded),
        )

    # Maintenance may have rewritten other files of the table meanwhile.
    @retried(CommitFailedException)
    def append_files(
        self,
        table: Table,
        files: Iterable[Written],
        properties: Mapping[str, str],
        *,
        instead_of: BooleanExpression | None = None,
        branch: str = MAIN_BRANCH,
    ) -> None:
        """Commit files that workers wrote, in one snapshot that carries ``properties``.

        Args:
            table: an append-only table.
            files: what ``data_files.Writer.close`` gave.
            properties: summary of the snapshot, without ``MARKER``.
            instead_of: rows that they replace, whole partitions of them.
            branch: that the snapshot is on.
        """
        table.refresh()
        summary = {MARKER + name: value for name, value in properties.items()}
        replaced = [] if instead_of is None else table.scan(row_filter=instead_of).use_ref(branch).plan_files()
        commit_files(table, files, replaced=[task.file for task in replaced], summary=summary, branch=branch)

    def tables(self, namespace: str) -> list[str]:
        """Names of the tables of one namespace, sorted; none when it does not exist."""
        if (namespace,) not in self.catalog.list_namespaces():
            return []
        return sorted(identifier[-1] for identifier in self.catalog.list_tables(namespace))


_OTHER: ContextVar[Lake | None] = ContextVar("other", default=None)


@contextmanager
def standing_in(lake: Lake) -> Iterator[Lake]:
    """Let ``Lake.open`` give this lake for a while."""
    token = _OTHER.set(lake)
    try:
        yield lake
    finally:
        _OTHER.reset(token)


@lru_cache(maxsize=8)
def _opened(name: str, properties: tuple[tuple[str, str], ...]) -> Lake:
    return Lake(name, dict(properties))


def quoted(name: str) -> str:
    """A name as Spark reads it back unchanged, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def _identity_spec(schema: Schema, names: Sequence[str]) -> PartitionSpec:
    fields = (
        PartitionField(
            source_id=schema.find_field(name).field_id,
            field_id=PARTITION_FIELD_ID_START + place,
            transform=IdentityTransform(),
            name=name,
        )
        for place, name in enumerate(names)
    )
    return PartitionSpec(*fields)


def as_iceberg(schema: Schema | pa.Schema) -> Schema:
    """The schema with ids: those of its columns, then those of the elements of its lists."""
    if isinstance(schema, Schema):
        return schema
    fields = []
    for number, field in enumerate(schema, 1):
        kind = field.type
        if pa.types.is_list(kind):
            element = kind.value_field.with_name("element").with_metadata(
                {"PARQUET:field_id": str(len(schema) + number)}
            )
            kind = pa.list_(element)
        fields.append(pa.field(field.name, kind, metadata={"PARQUET:field_id": str(number)}))
    return pyarrow_to_schema(pa.schema(fields))


def _with_id(field: pa.Field, told: pa.Field) -> pa.Field:
    """The field with the id that Iceberg gave it, and those of its elements."""
    named = {key: value for key, value in (told.metadata or {}).items() if key == b"PARQUET:field_id"}
    kind = field.type
    if pa.types.is_list(kind):
        kind = pa.list_(_with_id(kind.value_field.with_name("element"), told.type.value_field))
    return pa.field(field.name, kind, metadata=named)


def commit_files(
    table: Table,
    files: Iterable[Written],
    *,
    replaced: Sequence[DataFile] = (),
    summary: Mapping[str, str] = MappingProxyType({}),
    branch: str = MAIN_BRANCH,
) -> None:
    """Commit files in the place of others, in one snapshot; nothing where there is nothing to tell.

    Raises:
        CommitFailedException: the table stands elsewhere meanwhile.
    """
    made = [_data_file(table, file) for file in files]
    if not (made or replaced or summary):
        return
    with _Transaction(table) as transaction:
        update = transaction.update_snapshot(snapshot_properties=dict(summary), branch=branch)
        with update.overwrite() if replaced else update.fast_append() as snapshot:
            for old in replaced:
                snapshot.delete_data_file(old)
            for new in made:
                snapshot.append_data_file(new)


class _Transaction(Transaction):
    """Copies the table's metadata once a step: PyIceberg copies it, snapshots and all, whenever a step asks for any."""

    _copied: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata as the updates so far leave it."""
        base, updates = self._table.metadata, self._updates
        if self._copied is None or self._copied[0] is not base or self._copied[1] is not updates:
            self._copied = base, updates, super().table_metadata
        return self._copied[2]


def _data_file(table: Table, file: Written) -> DataFile:
    schema = table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(io.BytesIO(file.footer)),
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.location,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _spark_properties(properties: Mapping[str, str]) -> dict[str, str]:
    kind = properties.get("type", "rest" if properties.get("uri", "").startswith("http") else "sql")
    if kind == "sql":
        return _jdbc_properties(properties)
    if kind in {"rest", "hive", "glue"}:
        return {**properties, "type": kind}
    raise ConfigurationError(f"catalog type {kind!r} is not known to Spark: use sql, rest, hive or glue")


def _jdbc_properties(properties: Mapping[str, str]) -> dict[str, str]:
    url = make_url(properties["uri"])
    kept = {key: value for key, value in properties.items() if key not in {"type", "uri"}}
    jdbc = {**kept, "type": "jdbc", "jdbc.schema-version": "V1"}
    if url.get_backend_name() == "sqlite":
        # Write-ahead logging lets readers of the catalog go on while a commit is written.
        return {**jdbc, "uri": f"jdbc:sqlite:{url.database}?journal_mode=WAL&busy_timeout=30000"}
    port = f":{url.port}" if url.port else ""
    access = {"jdbc.user": url.username, "jdbc.password": url.password}
    secrets = {key: value for key, value in access.items() if value is not None}
    return {**jdbc, **secrets, "uri": f"jdbc:{url.get_backend_name()}://{url.host}{port}/{url.database}"}


def ancestry(table: Table, ref: str = MAIN_BRANCH) -> Iterator[Snapshot]:
    """The snapshots of a branch or tag, newest first, as far back as they are kept."""
    snapshot = table.snapshot_by_name(ref)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent is not None else None


def greatest(table: Table, column: str, ref: str = MAIN_BRANCH) -> str | None:
    """No value of a text column is above this one, as the files of a branch tell; None where one of them does not."""
    field = table.schema().find_field(column)
    bounds = [
        (task.file.upper_bounds or {}).get(field.field_id)
        for task in table.scan(snapshot_id=head(table, ref)).plan_files()
        if task.file.record_count
    ]
    return None if None in bounds else max((bound.decode() for bound in bounds if bound is not None), default="")


def marker(table: Table | None, key: str, ref: str = MAIN_BRANCH) -> str | None:
    """What Tidemark last wrote under ``key`` into a snapshot summary on a branch; None when never."""
    if table is None:
        return None
    for snapshot in ancestry(table, ref):
        if snapshot.summary is not None and (value := snapshot.summary.additional_properties.get(MARKER + key)):
            return str(value)
    return None


def head(table: Table, ref: str = MAIN_BRANCH) -> int:
    """Id of the snapshot that a branch stands on.

    Raises:
        PublishConflictError: there is no such branch.
    """
    snapshot = table.snapshot_by_name(ref)
    if snapshot is None:
        raise PublishConflictError(f"{'.'.join(table.name())} has no branch {ref!r}: run compact again")
    return snapshot.snapshot_id


def branch_from_main(table: Table, branch: str) -> Table:
    """Put a branch where ``main`` stands, dropping what an earlier attempt left on it.

    A half-built candidate is never continued.
    """
    if branch in table.refs():
        drop_ref(table, branch)
        table = table.refresh()
    table.manage_snapshots().create_branch(snapshot_id=head(table), branch_name=branch).commit()
    return table


def drop_ref(table: Table, name: str) -> None:
    """Remove a branch or tag, if it is there; the snapshots stay until they expire."""
    if name in table.refs():
        _commit(table, (), RemoveSnapshotRefUpdate(ref_name=name))


def remove_tags(table: Table, names: Sequence[str]) -> None:
    """Remove tags in one commit; the snapshots stay until they expire."""
    if names:
        with table.manage_snapshots() as refs:
            for name in names:
                refs.remove_tag(name)


def put_back(table: Table, snapshot_id: int) -> None:
    """Set ``main`` to a snapshot that is still kept."""
    if head(table) != snapshot_id:
        table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot_id).commit()


def tag(table: Table, name: str, snapshot_id: int) -> None:
    """Tag a snapshot; the same tag on the same snapshot again is nothing."""
    existing = table.refs().get(name)
    if existing is not None and existing.snapshot_id == snapshot_id:
        return
    table.manage_snapshots().create_tag(snapshot_id=snapshot_id, tag_name=name).commit()


def fast_forward(table: Table, branch: str) -> int:
    """Move ``main`` to the head of a branch that descends from it: one compare-and-set in the catalog.

    Returns:
        The snapshot that ``main`` stands on afterwards. Doing it again is nothing.

    Raises:
        PublishConflictError: ``main`` is not an ancestor of the branch, or moved meanwhile.
    """
    target, base = head(table, branch), head(table)
    if target == base:
        return base
    if base not in {snapshot.snapshot_id for snapshot in ancestry(table, branch)}:
        name = ".".join(table.name())
        raise PublishConflictError(f"main of {name} moved since {branch} was built: run compact again")
    _commit(
        table,
        (AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=base),),
        *_brought(table, target),
        to(MAIN_BRANCH, target),
    )
    return target


def put_schema(
    table: Table, fields: Sequence[NestedField], properties: Mapping[str, str], without: Sequence[str]
) -> None:
    """Give a table another schema, whose fields keep their ids, and properties, all in one commit.

    Raises:
        PublishConflictError: the schema was changed meanwhile.
    """
    known = table.schemas()
    schema = Schema(*fields, schema_id=max(known) + 1)
    number = next((number for number, told in known.items() if told == schema), None)
    added = [] if number is not None else [AddSchemaUpdate.model_validate({"schema": schema})]
    _commit(
        table,
        (AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id}),),
        *added,
        SetCurrentSchemaUpdate.model_validate({"schema-id": -1 if number is None else number}),
        SetPropertiesUpdate(updates=dict(properties)),
        RemovePropertiesUpdate(removals=list(without)),
    )


def to(branch: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    """The change of a table's metadata that puts a branch on a snapshot."""
    return SetSnapshotRefUpdate.model_validate(
        {"ref-name": branch, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id}
    )


BRINGS = f"{MARKER}brings"
"""In the summary of a rebuilt snapshot: properties (JSON) that its table has from the moment that ``main`` is on it."""


def properties_at(table: Table, snapshot_id: int) -> dict[str, str]:
    """Properties of the table as it is, or will be, once ``main`` stands on a snapshot."""
    snapshot = table.snapshot_by_id(snapshot_id)
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return {**table.properties, **json.loads(summary.get(BRINGS, "{}"))}


def _brought(table: Table, snapshot_id: int) -> list[TableUpdate]:
    """A rebuilt snapshot brings its schema and properties with it, in the commit that moves ``main``."""
    properties = properties_at(table, snapshot_id)
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.summary is None or BRINGS not in snapshot.summary.additional_properties:
        return []
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=properties)] if properties != table.properties else []
    if snapshot.schema_id is not None and snapshot.schema_id != table.metadata.current_schema_id:
        updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": snapshot.schema_id}))
    return updates


def _commit(table: Table, requirements: tuple[TableRequirement, ...], *updates: TableUpdate) -> None:
    try:
        table.catalog.commit_table(table, requirements, updates)
    except CommitFailedException as error:
        raise PublishConflictError(f"{'.'.join(table.name())}: {error}: run compact again") from error


_SAFE_NAME = re.compile(r"[^\W\d][\w $-]{0,126}")
_RESERVED = re.compile(r"(branch|tag|at_timestamp|snapshot_id)_.*|.*__(changes|history|state)", re.IGNORECASE)
_METADATA_TABLE = re.compile(
    "history|snapshots|files|manifests|entries|partitions|refs|metadata_log_entries|position_deletes|data_files"
    "|delete_files|changes|all_(data_files|delete_files|files|manifests|entries)",
    re.IGNORECASE,
)


def name_problem(name: str) -> str | None:
    """Why a name from a message cannot name a table, or None when it can.

    Catalogs turn names into paths and engines read some as metadata tables or branches, so a name that a message
    brings must be plain: a letter or underscore, then letters, digits, underscores, ``$``, blanks and hyphens.
    """
    if not _SAFE_NAME.fullmatch(name):
        return "is not a plain name (a letter or underscore, then letters, digits, _ $ - or blanks; 127 at most)"
    if _METADATA_TABLE.fullmatch(name) or _RESERVED.fullmatch(name):
        return "is a name that Iceberg or Tidemark uses for something else"
    return None
