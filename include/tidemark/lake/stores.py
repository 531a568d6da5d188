"""Access to the files of a table, by their locations."""

from __future__ import annotations

from pyarrow.fs import FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table


def store_of(table: Table, location: str) -> tuple[FileSystem, str]:
    """Return the access to the store that has a location, and the path there. The access can be pickled.

    Raises:
        ValueError: PyArrow cannot read such a store.
    """
    store = PyArrowFileIO(table.io.properties)
    scheme, host, path = store.parse_location(location, table.io.properties)
    return store.fs_by_scheme(scheme, host), path


def path_of(table: Table, location: str) -> str:
    """Return the path of a location in its store."""
    return PyArrowFileIO.parse_location(location, table.io.properties)[2]
