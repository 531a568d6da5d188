"""The question where the newest metadata of a table lies, which an SQL catalog is asked by a statement made once.

PyIceberg makes the statement anew for each question, as objects of SQLAlchemy's ORM. That takes three times as long as
SQLite takes to answer, and a run asks some hundreds of times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier
from sqlalchemy import Select, bindparam, select


def remember() -> None:
    """Let PyIceberg's SQL catalogs load tables by a statement of theirs that is kept."""
    catalog: Any = SqlCatalog
    catalog.load_table = load_table


def load_table(catalog: SqlCatalog, identifier: str | Identifier) -> Table:
    """Return a table as it is now.

    Raises:
        NoSuchTableError: there is none of this name.
    """
    namespace = Catalog.namespace_to_string(Catalog.namespace_from(identifier))
    name = Catalog.table_name_from(identifier)
    with catalog.engine.connect() as connection:
        asked = {"of": catalog.name, "namespace": namespace, "name": name}
        found: Any = connection.execute(_newest(catalog), asked).first()
    if found is None:
        raise NoSuchTableError(f"Table does not exist: {namespace}.{name}")
    return catalog._convert_orm_to_iceberg(found)  # noqa: SLF001  the row has the columns that it reads


@lru_cache(16)
def _newest(catalog: SqlCatalog) -> Select[Any]:
    """Return the statement for a catalog: some have rows of views beside those of tables."""
    wanted: tuple[Any, ...] = (IcebergTables.metadata_location, IcebergTables.table_namespace, IcebergTables.table_name)
    statement: Select[Any] = select(*wanted).where(
        IcebergTables.catalog_name == bindparam("of"),
        IcebergTables.table_namespace == bindparam("namespace"),
        IcebergTables.table_name == bindparam("name"),
    )
    only_tables = catalog._iceberg_type_filter()  # noqa: SLF001  as PyIceberg asks
    return statement if only_tables is None else statement.where(only_tables)
