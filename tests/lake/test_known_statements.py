"""SQL catalogs of both versions load tables, and nothing else that has a row in the catalog."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy import text

from tidemark.lake.known_statements import remembering
from tidemark.lake.lake import as_iceberg

V0 = """
CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT,
  previous_metadata_location TEXT, PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name TEXT, namespace TEXT, property_key TEXT, property_value TEXT,
  PRIMARY KEY (catalog_name, namespace, property_key));
"""
"""A catalog as writers made it that know no views."""
SCHEMA = as_iceberg(pa.schema([("id", pa.int64())]))


@pytest.fixture(params=["v0", "v1"])
def catalogs(request: pytest.FixtureRequest, tmp_path: Path) -> list[SqlCatalog]:
    """Two catalogs in one database, in the version that older writers know or the one that also has views."""
    if request.param == "v0":
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as before, before:
            before.executescript(V0)
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri()}
    made = [SqlCatalog(name, **options) for name in ("one", "two")]
    made[0].create_namespace("shop")
    for catalog in made:
        assert remembering(catalog) is catalog
    return made


def test_each_catalog_has_its_tables(catalogs: list[SqlCatalog]) -> None:
    """By namespace and name, as text or as parts; a commit of another process is seen at once."""
    one, two = catalogs
    made = one.create_table(("shop", "o'rders"), SCHEMA)
    assert one.load_table("shop.o'rders").metadata_location == made.metadata_location
    assert one.load_table(("shop", "o'rders")).name() == ("shop", "o'rders")
    with pytest.raises(NoSuchTableError, match=r"Table does not exist: shop\.o'rders"):
        two.load_table(("shop", "o'rders"))
    with pytest.raises(NoSuchTableError, match=r"Table does not exist: other\.o'rders"):
        one.load_table(("other", "o'rders"))
    SqlCatalog("one", **one.properties).load_table(("shop", "o'rders")).append(pa.table({"id": [1]}))
    assert one.load_table(("shop", "o'rders")).scan().to_arrow().num_rows == 1
    one.drop_table(("shop", "o'rders"))
    assert not one.table_exists(("shop", "o'rders"))


@pytest.mark.parametrize("catalogs", ["v1"], indirect=True)
def test_a_view_is_no_table(catalogs: list[SqlCatalog]) -> None:
    """Where the catalog says what a row is, views of other engines are passed over."""
    one = catalogs[0]
    one.create_table(("shop", "orders"), SCHEMA)
    with one.engine.begin() as connection:
        connection.execute(text("UPDATE iceberg_tables SET iceberg_type = 'VIEW'"))
    with pytest.raises(NoSuchTableError):
        one.load_table(("shop", "orders"))
