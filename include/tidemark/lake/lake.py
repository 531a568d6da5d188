"""The lake: its catalog and the tables in it. Branches and tags are moved in ``branches``.

All access to the catalog goes through PyIceberg: it needs no Spark and no SQL text. The catalog is configured the way
PyIceberg is (``.pyiceberg.yaml`` or ``PYICEBERG_CATALOG__TIDEMARK__...``). Without such a configuration, an embedded
catalog on SQLite under ``TIDEMARK_HOME`` is used, with nothing to start. Spark's settings are derived from the same
properties, so that both open the same tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.transforms import IdentityTransform

from tidemark.errors import ConfigurationError
from tidemark.lake import known_metadata, known_schemas
from tidemark.lake.branches import MARKER
from tidemark.lake.catalog import catalog_name, catalog_properties, opening, require_catalog, spark_properties
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import TableFolder, WrittenFile
from tidemark.lake.fences import guarded
from tidemark.lake.known_statements import remembering
from tidemark.lake.names import Identifier
from tidemark.lake.retries import retried
from tidemark.lake.stores import store_of
from tidemark.text import quoted


class Lake:
    """One catalog and the tables in it. ``catalog`` is given by what only reads (``reading``)."""

    def __init__(self, name: str, properties: Mapping[str, str], catalog: Catalog | None = None) -> None:
        self.name = name
        self.properties = dict(properties)
        known_metadata.remember()
        known_schemas.remember()
        self.catalog: Catalog = catalog or guarded(remembering(load_catalog(name, **self.properties)))

    @classmethod
    def open(cls) -> Lake:
        """Return the lake that the environment names, or the one that stands in for it (``standing_in``).

        Raises:
            ConfigurationError: the catalog cannot be opened as it is configured.
            RetriableLakeError: the catalog cannot be reached.
        """
        other = _OTHER.get()
        if other is not None:
            return other
        with opening():
            return _opened(catalog_name(), tuple(sorted(catalog_properties().items())))

    @classmethod
    def existing(cls) -> Lake:
        """Return the same lake as ``open``, to be read: never make one.

        Raises:
            ConfigurationError: there is no lake; the error says where it was looked for.
            RetriableLakeError: the catalog cannot be reached.
        """
        if _OTHER.get() is None:
            with opening():
                require_catalog()
        return cls.open()

    def spark_settings(self) -> dict[str, str]:
        """Return Spark's settings for this catalog, derived from PyIceberg's properties."""
        prefix = f"spark.sql.catalog.{self.name}"
        settings = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.cache-enabled": "false"}
        settings.update({f"{prefix}.{key}": value for key, value in spark_properties(self.properties).items()})
        return settings

    def at(self, identifier: Identifier) -> Identifier:
        """Return the table's name in the catalog: its own name, except for tables beside the lake's (``copies``)."""
        return identifier

    def location(self, identifier: Identifier) -> str | None:  # noqa: ARG002  a copy's table has one
        """Return where the files of a new table are to be; None for the catalog's own choice."""
        return None

    def spark_name(self, identifier: Identifier, branch: str | None = None) -> str:
        """Return the name of the table (or of a branch of it) for Spark, with every part quoted."""
        parts = (self.name, *self.at(identifier), *([f"branch_{branch}"] if branch else []))
        return ".".join(quoted(part) for part in parts)

    def find(self, identifier: Identifier) -> Table | None:
        """Return the table as it is now, or None."""
        try:
            return self.catalog.load_table(self.at(identifier))
        except NoSuchTableError:
            return None

    def load(self, identifier: Identifier) -> Table:
        """Return the table as it is now.

        Raises:
            ConfigurationError: there is no such table.
        """
        table = self.find(identifier)
        if table is None:
            raise ConfigurationError(f"no table {'.'.join(identifier)} in the lake yet: run its source first")
        return table

    # At this moment another source may create the same ledger table: look again.
    @retried(CommitFailedException)
    def ensure(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema,
        properties: Mapping[str, str],
        *,
        partition_by: Sequence[str] = (),
        location: str | None = None,
    ) -> Table:
        """Return the table; create it if it is missing.

        A new table has its namespace, is partitioned by the columns ``partition_by``, has an empty snapshot on
        ``main``, and lies at ``location``, or else where the catalog puts it.
        """
        table = self.find(identifier)
        if table is None:
            self.make_namespace(self.at(identifier)[0])
            # Partitioned from its first spec on: otherwise engines check each row against filters on partitions.
            schema = as_iceberg(schema)
            spec = _identity_spec(schema, partition_by)
            table = self.catalog.create_table_if_not_exists(
                self.at(identifier), schema, self.location(identifier) or location, spec, properties=dict(properties)
            )
        if table.current_snapshot() is None:  # main must exist before a branch can start from it
            with table.transaction() as transaction, transaction.update_snapshot().fast_append():
                pass
        return table

    def make_namespace(self, name: str) -> None:
        """Create a namespace, unless it is there, or another process creates it at this moment."""
        try:
            self.catalog.create_namespace_if_not_exists(name)
        except Exception:
            if not self.catalog.namespace_exists(name):
                raise

    def folder_of(
        self, table: Table, schema: pa.Schema, *, plain: Iterable[str] = (), bounded: Iterable[str] = ()
    ) -> TableFolder:
        """Return what workers need to write files of a table with the columns of ``schema``.

        Raises:
            ConfigurationError: the lake is on a store that PyArrow cannot write to.
        """
        location = table.properties.get("write.data.path") or f"{table.location()}/data"
        try:
            filesystem, folder = store_of(table, location)
        except ValueError as error:
            raise ConfigurationError(f"{location}: workers cannot write there: {error}") from error
        filesystem.create_dir(folder, recursive=True)
        ids = with_columns(table, schema).schema().as_arrow()
        with_ids = pa.schema([_with_id(field, ids.field(field.name)) for field in schema])
        return TableFolder(
            filesystem=filesystem,
            folder=folder,
            location=location,
            schema=with_ids,
            plain=frozenset(plain),
            bounded=frozenset(bounded),
        )

    # Meanwhile maintenance may have rewritten other files of the table, and another table of the source may have put
    # messages into the same quarantine: PyIceberg takes any file that was added for a conflict with one that goes.
    @retried(CommitFailedException, ValidationException)
    def append_files(
        self,
        table: Table,
        files: Iterable[WrittenFile],
        properties: Mapping[str, str],
        *,
        instead_of: BooleanExpression | None = None,
        branch: str = MAIN_BRANCH,
    ) -> None:
        """Commit files that workers wrote, in one snapshot that carries ``properties``.

        Args:
            table: an append-only table.
            files: the results of ``data_files.FileWriter.close``.
            properties: entries for the snapshot's summary, named without the prefix ``MARKER``.
            instead_of: selects the rows that the files replace, which must be whole partitions.
            branch: branch that gets the snapshot.
        """
        table.refresh()
        summary = {MARKER + name: value for name, value in properties.items()}
        replaced = [] if instead_of is None else table.scan(row_filter=instead_of).use_ref(branch).plan_files()
        commit_files(table, files, replaced=[task.file for task in replaced], summary=summary, branch=branch)

    def tables(self, namespace: str) -> list[str]:
        """Return the names of the tables of one namespace, sorted; none if the namespace does not exist."""
        if (namespace,) not in self.catalog.list_namespaces():
            return []
        return sorted(identifier[-1] for identifier in self.catalog.list_tables(namespace))


_OTHER: ContextVar[Lake | None] = ContextVar("other", default=None)


@contextmanager
def standing_in(lake: Lake) -> Iterator[Lake]:
    """Let ``Lake.open`` return this lake in this context."""
    token = _OTHER.set(lake)
    try:
        yield lake
    finally:
        _OTHER.reset(token)


@lru_cache(maxsize=8)
def _opened(name: str, properties: tuple[tuple[str, str], ...]) -> Lake:
    return Lake(name, dict(properties))


def with_columns(table: Table, schema: pa.Schema) -> Table:
    """Return the table with all columns of a schema: an earlier version of Tidemark may have made it without some."""
    if set(schema.names) <= {field.name for field in table.schema().fields}:
        return table
    with table.update_schema() as update:
        update.union_by_name(schema)
    return table.refresh()


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
    """Return the schema with field ids: first the columns are numbered, then the elements of lists."""
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


def _with_id(field: pa.Field, stored: pa.Field) -> pa.Field:
    """Return a field with the ids that Iceberg gave the stored field and its elements."""
    ids = {key: value for key, value in (stored.metadata or {}).items() if key == b"PARQUET:field_id"}
    kind = field.type
    if pa.types.is_list(kind):
        kind = pa.list_(_with_id(kind.value_field.with_name("element"), stored.type.value_field))
    if pa.types.is_map(kind):
        key, item = (_with_id(kind.key_field, stored.type.key_field), _with_id(kind.item_field, stored.type.item_field))
        kind = pa.map_(key.with_name("key").with_nullable(False), item.with_name("value"))  # noqa: FBT003
    return pa.field(field.name, kind, metadata=ids)
