"""The matrix of the lab: databases with their settings, and the settings of the capture tool beside each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from canal import Canal
from debezium import Debezium
from producers import MARKS, Setting, Tool


@dataclass(frozen=True)
class Round:
    """A database with settings of its server, and all settings of the capture tool that follow one workload in it."""

    name: str
    database: str
    connectors: tuple[Setting, ...]
    server: Mapping[str, str] = field(default_factory=dict)
    kill: bool = False
    """Whether the tool is killed in the middle of the workload, and started again."""
    gap: bool = False
    """Whether the log that it has not read yet is gone when it starts again."""
    recovers: bool = False
    """Whether what the tool knows of the tables is gone when it starts again, and it reads that again and no rows."""
    tool: type[Tool] = Debezium


def _setting(name: str, options: Mapping[str, Any] | None = None, /, **settings: str) -> Setting:
    """Return a setting whose names are written with underscores for dots."""
    return Setting(name, {key.replace("_", "."): value for key, value in settings.items()}, options or {})


def _values(name: str, encodings: Mapping[str, str] | None = None, /, **settings: str) -> Setting:
    """Return a setting that is only about how values are written."""
    return replace(_setting(name, **settings), of_values=True, encodings=encodings or {})


_ADDED: Final = "op,db,table,source.ts_ms,source.snapshot,source.connector,"
_PLACE_IN_WAL: Final = "schema,source.lsn"
_PLACE_IN_BINLOG: Final = "source.file,source.pos,source.row"


def _unwrapped(name: str, deletes: str, place: str) -> Setting:
    """Return a setting that flattens rows: deletes are handled so (``delete.tombstone.handling.mode``)."""
    transform, added = "transforms_unwrap_", _ADDED + place
    return _setting(name, {"add_fields": added}, transforms="unwrap", **{
        transform + "type": "io.debezium.transforms.ExtractNewRecordState",
        transform + "add_fields": added,
        transform + "delete_tombstone_handling_mode": deletes,
    })  # fmt: skip


def _of_one_table(deletes: str, table: str, place: str) -> Setting:
    """Return a setting whose deletes are tombstones alone. No tombstone names its table, so it captures one table."""
    flat, (_, name) = _unwrapped(f"unwrap-{deletes}", deletes, place), table.rsplit(".", 1)
    return replace(
        flat,
        settings={**flat.settings, "table.include.list": rf"(lab|public)\.({name}|{MARKS})"},
        options={**flat.options, "flattened": True, "table": table},
    )


_DEFAULT: Final = _setting("default")
_TRANSACTIONS: Final = _setting("transactions", provide_transaction_metadata="true")


def _snapshot(mode: str, brings: Literal["all", "changes", "loaded"] = "all") -> Setting:
    """Return a setting that says when the connector loads the tables."""
    return replace(_setting(mode.replace("_", "-"), snapshot_mode=mode), brings=brings)


_BY_CONFIGURATION: Final = _setting(
    "configuration-based",
    snapshot_mode="configuration_based",
    snapshot_mode_configuration_based_snapshot_data="true",
    snapshot_mode_configuration_based_snapshot_schema="true",
    snapshot_mode_configuration_based_start_stream="true",
)
"""The five questions that a mode answers, answered one by one. It asks nothing else, so each start loads again."""

_LOADS: Final = (
    _snapshot("no_data", "changes"),
    _snapshot("when_needed"),
    _snapshot("initial_only", "loaded"),
    _BY_CONFIGURATION,
)

_LOADS_AGAIN: Final = _setting("loads-again", snapshot_mode="always")
"""Each start of the connector loads all tables."""

_KILLED: Final = (_DEFAULT, _TRANSACTIONS, _LOADS_AGAIN)

_BOTH: Final = (
    _DEFAULT,
    _values("schemaless", {"bytes": "base64", "bits": "bits_le_base64"}, key_converter_schemas_enable="false",
            value_converter_schemas_enable="false", decimal_handling_mode="string", time_precision_mode="isostring"),
    _values("decimal-numeric", value_converter_decimal_format="NUMERIC", key_converter_decimal_format="NUMERIC"),
    _values("decimal-string", decimal_handling_mode="string"),
    _values("decimal-double", decimal_handling_mode="double"),
    _values("time-connect", time_precision_mode="connect"),
    _values("time-isostring", time_precision_mode="isostring"),
    _values("time-microseconds", time_precision_mode="microseconds"),
    _values("time-nanoseconds", time_precision_mode="nanoseconds"),
    _values("binary-base64", {"bytes": "base64"}, binary_handling_mode="base64"),
    _values("binary-url-safe", {"bytes": "base64"}, binary_handling_mode="base64-url-safe"),
    _values("binary-hex", {"bytes": "hex"}, binary_handling_mode="hex"),
    _TRANSACTIONS,
    _values("nulls-as-sent", value_converter_replace_null_with_default="false"),
    _setting("heartbeats", heartbeat_interval_ms="300", tombstones_on_delete="false"),
    *_LOADS,
)  # fmt: skip

_POSTGRESQL: Final = (
    *_BOTH,
    _values("time-adaptive-micros", time_precision_mode="adaptive_time_microseconds"),
    _values("interval-string", interval_handling_mode="string", hstore_handling_mode="map", money_fraction_digits="4"),
    _setting("via-root", publish_via_partition_root="true"),
    replace(_setting("signals", snapshot_mode="no_data", signal_data_collection="public.lab_signals"), loads_add=True),
    _setting("placeholder", {"unavailable_value": "hex:ff00"}, unavailable_value_placeholder="hex:ff00"),
    _unwrapped("unwrap-rewrite", "rewrite", _PLACE_IN_WAL),
    _unwrapped("unwrap-both", "rewrite-with-tombstone", _PLACE_IN_WAL),
    _unwrapped("unwrap-drop", "drop", _PLACE_IN_WAL),
    _of_one_table("tombstone", "lab.public.hot", _PLACE_IN_WAL),
    _of_one_table("delete-to-tombstone", "lab.public.hot", _PLACE_IN_WAL),
)

_BINLOG: Final = (
    *_BOTH,
    _values("unsigned-precise", bigint_unsigned_handling_mode="precise"),
    _setting("with-queries", include_query="true", include_schema_changes="false"),
    _setting(
        "signals",
        snapshot_mode="no_data",
        signal_data_collection="lab.lab_signals",
        table_exclude_list=r"lab\.(old_name|new_name|swap_.)",
    ),
    _snapshot("never"),
    _unwrapped("unwrap-rewrite", "rewrite", _PLACE_IN_BINLOG),
    _unwrapped("unwrap-drop", "drop", _PLACE_IN_BINLOG),
    _of_one_table("tombstone", "lab.key_moves", _PLACE_IN_BINLOG),
    _of_one_table("delete-to-tombstone", "lab.key_moves", _PLACE_IN_BINLOG),
)

_WHEN_NEEDED: Final = (_snapshot("when_needed"),)

_RECOVERED: Final = (_DEFAULT, _TRANSACTIONS)

_CANAL: Final = (_setting("default", {"bytes": "latin1"}),)

ROUNDS: Final = (
    Round("postgresql", "postgresql", _POSTGRESQL),
    Round("postgresql-killed", "postgresql", _KILLED, kill=True),
    Round("postgresql-gap", "postgresql", _WHEN_NEEDED, kill=True, gap=True),
    Round("mysql", "mysql", _BINLOG),
    Round("mysql-killed", "mysql", _KILLED, kill=True),
    Round("mysql-gap", "mysql", _WHEN_NEEDED, kill=True, gap=True),
    Round("mysql-recovered", "mysql", _RECOVERED, kill=True, recovers=True),
    Round("mysql-compressed", "mysql", (_DEFAULT, _TRANSACTIONS), {"binlog_transaction_compression": "ON"}),
    Round("mysql-partial-json", "mysql", (_DEFAULT,), {"binlog_row_value_options": "PARTIAL_JSON"}),
    Round("mysql-canal", "mysql", _CANAL, tool=Canal),
    Round("mysql-canal-killed", "mysql", _CANAL, kill=True, tool=Canal),
    Round("mysql-canal-mixed", "mysql", _CANAL, {"binlog_format": "MIXED"}, tool=Canal),
    Round("mysql-canal-statement", "mysql", _CANAL, {"binlog_format": "STATEMENT"}, tool=Canal),
    Round("mariadb", "mariadb", _BINLOG),
    Round("mariadb-killed", "mariadb", _KILLED, kill=True),
    Round("mariadb-gap", "mariadb", _WHEN_NEEDED, kill=True, gap=True),
    Round("mariadb-recovered", "mariadb", _RECOVERED, kill=True, recovers=True),
)
