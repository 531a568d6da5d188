"""A schema of Avro is taken apart once, and each file is read by its own."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyiceberg.avro.file import AvroFileHeader
from pyiceberg.transforms import IdentityTransform
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from tidemark.lake import known_schemas
from tidemark.lake.lake import Lake
from tidemark.lake.properties import TABLE_PROPERTIES

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])


def test_manifests_of_several_specs_are_read_by_their_own_schemas(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of both specs come back from their manifests; a schema that was seen is not taken apart again."""
    taken = []
    really = AvroSchemaConversion.avro_to_iceberg

    def counted(conversion: AvroSchemaConversion, schema: dict[str, object]) -> object:
        taken.append(json.dumps(schema))
        return really(conversion, schema)

    monkeypatch.setattr(AvroSchemaConversion, "avro_to_iceberg", counted)
    known_schemas.schema.cache_clear()
    table = lake.ensure(("known_schemas", "specs"), SCHEMA, TABLE_PROPERTIES)
    table.append(pa.table({"id": [1, 2], "kind": ["a", "b"]}, schema=SCHEMA))
    with table.update_spec() as spec:
        spec.add_field("kind", IdentityTransform(), "kind")
    for number in (3, 4, 5):
        table.append(pa.table({"id": [number], "kind": ["a"]}, schema=SCHEMA))
    for _ in range(2):
        found = [(list(task.file.partition), task.file.record_count) for task in table.scan().plan_files()]
        assert sorted(found) == [([], 2), (["a"], 1), (["a"], 1), (["a"], 1)]
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert len(taken) == len(set(taken))
    assert len(taken) <= 3  # lists of manifests, and manifests of two specs


def test_a_file_without_a_schema_is_an_error() -> None:
    """As PyIceberg's own."""
    with pytest.raises(ValueError, match="No schema found"):
        AvroFileHeader(b"Obj\x01", {}, b"").get_schema()
