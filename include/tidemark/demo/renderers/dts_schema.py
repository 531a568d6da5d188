"""The Avro schema of a DTS Record, from ``Record.avsc`` of https://github.com/LioRoger/subscribe_example."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

NAMESPACE = "com.alibaba.dts.formats.avro"

_OPTIONAL_INT = ["null", "int"]

_SOURCES = (
    "MySQL", "Oracle", "SQLServer", "PostgreSQL", "MongoDB", "Redis", "DB2", "PPAS", "DRDS", "HBASE", "HDFS", "FILE",
    "OTHER",
)  # fmt: skip

_OPERATIONS = (
    "INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT", "HEARTBEAT", "CHECKPOINT", "COMMAND",
    "FILL", "FINISH", "CONTROL", "RDB", "NOOP", "INIT",
)  # fmt: skip


def record_schema(*, born: bool) -> Json:
    """Return the schema. With ``born`` it has ``bornTimestamp``, which was added in June 2020."""
    column = _record("Field", name="string", dataTypeNumber="int")
    images = ["null", "string", {"type": "array", "items": _values()}]
    later = ["null", "string", {"type": "array", "items": ["null", *(branch["name"] for branch in _values()[1:])]}]
    schema = _record(
        "Record",
        version="int",
        id="long",
        sourceTimestamp="long",
        sourcePosition="string",
        safeSourcePosition="string",
        sourceTxid="string",
        source=_record("Source", sourceType=_enum("SourceType", _SOURCES), version="string"),
        operation=_enum("Operation", _OPERATIONS),
        objectName=["null", "string"],
        processTimestamps=["null", {"type": "array", "items": "long"}],
        tags={"type": "map", "values": "string"},
        fields=["null", "string", {"type": "array", "items": column}],
        beforeImages=images,
        afterImages=later,
        **({"bornTimestamp": "long"} if born else {}),
    )
    return {**schema, "namespace": NAMESPACE}


def _values() -> list[Any]:
    """Return the branches of a value, in their order."""
    parts = ("year", "month", "day", "hour", "minute", "second", "millis")
    return [
        "null",
        _record("Integer", precision="int", value="string"),
        _record("Character", charset="string", value="bytes"),
        _record("Decimal", value="string", precision="int", scale="int"),
        _record("Float", value="double", precision="int", scale="int"),
        _record("Timestamp", timestamp="long", millis="int"),
        _record("DateTime", **dict.fromkeys(parts, _OPTIONAL_INT)),
        _record("TimestampWithTimeZone", value="DateTime", timezone="string"),
        _record("BinaryGeometry", type="string", value="bytes"),
        _record("TextGeometry", type="string", value="string"),
        _record("BinaryObject", type="string", value="bytes"),
        _record("TextObject", type="string", value="string"),
        _enum("EmptyObject", ("NULL", "NONE")),
    ]


def _record(name_: str, /, **fields: Any) -> Json:  # noqa: ANN401 - a schema is any JSON
    return {"type": "record", "name": name_, "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def _enum(name: str, symbols: tuple[str, ...]) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols)}
