"""The folders of all tables: two sources of one lake must not have files in one folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tidemark.lake import known_metadata
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.folders import folders
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.sources.layout import sharing

SCHEMA = pa.schema([("id", pa.int64())])


def test_folders_of_all_sources_are_known(lake: Lake, tmp_path: Path) -> None:
    """Tables of two sources at one place are named, though each source knows its own table alone; so are histories."""
    place = {"crm_eu": tmp_path / "customers", "crm_us": tmp_path / "customers", "crm_apart": tmp_path / "apart"}
    for source, folder in place.items():
        rows = [TableRow(cut=1, object="crm.customers", target=f"{source}.customers", state="published", batch=1)]
        rows.append(TableRow(cut=1, object="crm.waits", state="waiting", batch=0))
        Ledger(lake, source).replace(TableRow, rows, above("cut", -1))
        lake.make_namespace(source)
        lake.catalog.create_table((source, "customers"), SCHEMA, location=folder.as_uri())
    lake.ensure(Identifier("crm_us", "customers__history"), SCHEMA, {})
    lake.ensure(Identifier("raw", "crm_us"), SCHEMA, {})
    known = dict(folders(lake))
    assert {"crm_us.customers__history", "raw.crm_us", "ledger.tables"} <= known.keys()
    assert known["crm_apart.customers"] == (tmp_path / "apart").as_uri()
    assert sharing(known.items()) == {"crm_eu.customers", "crm_us.customers"}


def test_a_table_without_its_files_does_not_stop_the_others(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removed the metadata of a table that the catalog knows: the others are maintained still."""
    broken = lake.ensure(Identifier("raw", "without_files"), SCHEMA, {})
    other = lake.ensure(Identifier("raw", "with_files"), SCHEMA, {})
    Path(broken.metadata_location.removeprefix("file://")).unlink()
    monkeypatch.setattr(known_metadata, "_known", {})  # as in another process
    known = dict(folders(lake))
    for name in ("without_files", "with_files"):
        lake.catalog.drop_table(("raw", name))
    assert "raw.without_files" not in known
    assert known["raw.with_files"] == other.location()
