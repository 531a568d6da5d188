"""The lake for a command that only reads, and is to begin at once.

PyIceberg's catalog for databases needs SQLAlchemy, whose import and set-up take a fifth of `tidemark status`. The
embedded catalog is one SQLite file: here Python's own SQLite finds where a table is, and PyIceberg reads the table.
What would change the catalog is not there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from tidemark.errors import RetriableLakeError
from tidemark.lake.catalog import catalog_name, configured_properties, embedded_file, is_configured, require_catalog
from tidemark.lake.lake import Lake
from tidemark.text import first_line

_TABLES = "SELECT * FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"

_NAMESPACES = (
    "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ? "
    "UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?"
)

_MADE = "SELECT 1 FROM sqlite_master WHERE name = 'iceberg_namespace_properties'"
"""Whether the catalog is made: its first process may have been killed meanwhile."""

_WAIT = 30.0
"""Seconds for a commit to end: as long as Spark waits."""


def lake_to_read() -> Lake:
    """Return the same lake as ``Lake.existing``; errors likewise."""
    if is_configured():
        return Lake.existing()
    require_catalog()
    properties = configured_properties()
    return Lake(catalog_name(), properties, CatalogFile(catalog_name(), embedded_file(), properties))


class CatalogFile(NoopCatalog):
    """A catalog in a file that is there, to be read."""

    def __init__(self, name: str, file: Path, properties: Mapping[str, str]) -> None:
        """Read nothing yet."""
        super().__init__(name, **properties)
        self._file = file

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table as it is now.

        Raises:
            NoSuchTableError: there is none.
        """
        *namespace, name = self.identifier_to_tuple(identifier)
        for row in self._tables(".".join(namespace)):
            if row["table_name"] == name:
                location = row["metadata_location"]
                metadata = FromInputFile.table_metadata(self._load_file_io(location=location).new_input(location))
                io = self._load_file_io(metadata.properties, location)
                return Table((*namespace, name), metadata, location, io, self)
        raise NoSuchTableError(f"Table does not exist: {identifier}")

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the names of the tables of a namespace."""
        parts = self.identifier_to_tuple(namespace)
        return [(*parts, row["table_name"]) for row in self._tables(".".join(parts))]

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces of the first level."""
        if namespace:
            raise NotImplementedError
        rows = self._rows(_NAMESPACES, self.name, self.name)
        return [(name,) for name in sorted({row["table_namespace"].partition(".")[0] for row in rows})]

    def _tables(self, namespace: str) -> list[dict[str, str]]:
        """Return the rows of the tables of a namespace; views of other engines are left out."""
        rows = self._rows(_TABLES, self.name, namespace)
        return [row for row in rows if row.get("iceberg_type") in {None, "TABLE"}]

    def _rows(self, query: str, *parameters: str) -> list[dict[str, str]]:
        try:
            with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=rw", uri=True, timeout=_WAIT)) as connection:
                connection.row_factory = sqlite3.Row
                if not connection.execute(_MADE).fetchone():
                    return []
                return [dict(row) for row in connection.execute(query, parameters)]
        except sqlite3.Error as error:
            raise RetriableLakeError(f"catalog {self.name!r} cannot be read: {first_line(error)}") from error
