"""The lake of a command that only reads: it finds what PyIceberg's own catalog finds, and writes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.lake.catalog import embedded_file
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.reading import CatalogFile, lake_to_read

NAME = Identifier("reading_tests", "items")


def test_it_finds_what_the_lake_has(lake: Lake) -> None:
    """Tables with their rows, new commits too; namespaces without tables; neither views nor other catalogs' tables."""
    rows = pa.table({"id": [1, 2]})
    lake.ensure(NAME, rows.schema, {}).append(rows)
    lake.make_namespace("reading_tests_empty")
    reader = lake_to_read()
    assert isinstance(reader.catalog, CatalogFile)
    table = reader.load(NAME)
    assert table.metadata == lake.load(NAME).metadata
    assert table.name() == tuple(NAME)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    lake.load(NAME).append(rows)
    assert reader.load(NAME).scan().to_arrow().num_rows == table.refresh().scan().to_arrow().num_rows == 4
    with closing(sqlite3.connect(embedded_file())) as catalog, catalog:
        insert = "INSERT INTO iceberg_tables VALUES (?, 'reading_tests', ?, 'file:/nowhere', NULL, ?)"
        catalog.executemany(insert, [("tidemark", "a_view", "VIEW"), ("other", "not_ours", "TABLE")])
    for namespace in ("reading_tests", "reading_tests_empty", "reading_tests_none"):
        assert reader.tables(namespace) == lake.tables(namespace)
    assert reader.tables("reading_tests") == ["items"]
    assert set(reader.catalog.list_namespaces()) == set(lake.catalog.list_namespaces())
    assert reader.find(Identifier("reading_tests", "a_view")) is None
    assert reader.spark_settings() == lake.spark_settings()


def test_it_writes_nothing(lake: Lake) -> None:
    """A commit would pass by the fences of writers, so there is none."""
    rows = pa.table({"id": [1]})
    lake.ensure(NAME, rows.schema, {})
    with pytest.raises(NotImplementedError):
        lake_to_read().load(NAME).append(rows)


def test_a_configured_catalog_is_read_by_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the embedded catalog is surely a file of this machine."""
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/other.db", "warehouse": tmp_path.as_uri()}
    for name, value in properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TIDEMARK__{name.upper()}", value)
    load_catalog("tidemark", **properties).create_namespace("there")
    reader = lake_to_read()
    assert not isinstance(reader.catalog, CatalogFile)
    assert reader.catalog.list_namespaces() == [("there",)]


def test_what_is_no_catalog_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file: no lake, and none is made. An empty one: a run was killed as it made it. Another: the error says so."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="there is no lake in"):
        lake_to_read()
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "catalog.db"
    file.touch()
    assert lake_to_read().tables("ledger") == []
    assert lake_to_read().find(NAME) is None
    file.write_text("no database" * 100)
    with pytest.raises(RetriableLakeError, match="catalog 'tidemark' cannot be read: file is not a database"):
        lake_to_read().find(NAME)
