"""The question where the newest metadata of a table lies, which an SQL catalog is asked by a statement made once.

PyIceberg makes the statement anew for each question, as objects of SQLAlchemy's ORM. That takes three times as long as
SQLite takes to answer, and a run asks some hundreds of times.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import Select

_MODULE = "pyiceberg.catalog.sql"


def remembering(catalog: Catalog) -> Catalog:
    """Return the catalog; an SQL catalog loads tables by a statement of its own that is kept."""
    if type(catalog).__module__ == _MODULE:  # other catalogs need not import it
        sql: Any = catalog
        sql.load_table = partial(load_table, sql, _newest(sql))
    return catalog


def load_table(catalog: SqlCatalog, newest: Select[Any], identifier: str | Identifier) -> Table:
    """Return a table as it is now.

    Raises:
        NoSuchTableError: there is none of this name.
    """
    namespace = Catalog.namespace_to_string(Catalog.namespace_from(identifier))
    name = Catalog.table_name_from(identifier)
    with catalog.engine.connect() as connection:
        found: Any = connection.execute(newest, {"of": catalog.name, "namespace": namespace, "name": name}).first()
    if found is None:
        raise NoSuchTableError(f"Table does not exist: {namespace}.{name}")
    return catalog._convert_orm_to_iceberg(found)  # noqa: SLF001  the row has the columns that it reads


def _newest(catalog: SqlCatalog) -> Select[Any]:
    """Return the statement for a catalog: some have rows of views beside those of tables."""
    from pyiceberg.catalog.sql import IcebergTables  # noqa: PLC0415
    from sqlalchemy import bindparam, select  # noqa: PLC0415

    wanted: tuple[Any, ...] = (IcebergTables.metadata_location, IcebergTables.table_namespace, IcebergTables.table_name)
    statement: Select[Any] = select(*wanted).where(
        IcebergTables.catalog_name == bindparam("of"),
        IcebergTables.table_namespace == bindparam("namespace"),
        IcebergTables.table_name == bindparam("name"),
    )
    only_tables = catalog._iceberg_type_filter()  # noqa: SLF001  as PyIceberg asks
    return statement if only_tables is None else statement.where(only_tables)
