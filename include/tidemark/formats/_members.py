"""The members of messages that formats know, and the other members: what a producer writes and nobody reads yet.

Decoders pass over members that they need not read. A new one may say that a message is incomplete, so it must not stay
unseen. This module looks at single messages, and never on the hot path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from tidemark.errors import DecodeError
from tidemark.formats import resolve
from tidemark.formats._datahub.records import unwrapped


class Members(NamedTuple):
    """The members that messages of a format may have."""

    envelope: str
    """The struct of a message, by its name in the module of the format. Its fields are known, and so are fields of
    structs in it. What a ``msgspec.Raw`` holds is not looked at: rows, and schemas."""
    documented: Mapping[str, str]
    """By name of an object (``source``; empty for the message): members that documents name, and no event needs."""
    kinds: tuple[str, ...]
    """Members that make an object such a message, for each kind of message. Another object is passed over."""
    wrapped: str = ""
    """The member that may hold the message."""
    flattened: tuple[str, ...] = ()
    """Members that make an object a row, and no message, whatever else is in it."""
    opened: Callable[[bytes], bytes] = bytes
    """Returns the JSON object in the bytes of a message."""


_DEBEZIUM_SOURCE = (
    "version name ts_us ts_ns sequence tables "
    "gtid server_id thread query "  # MySQL, MariaDB
    "txId xmin origin origin_lsn "  # PostgreSQL
    "lcr_position redo_thread user_name redo_sql row_id start_scn start_ts_ms commit_ts_ms "  # Oracle
    "begin_lsn change_id "  # Informix
    "rs h tord stxnid lsid txnNumber wallTime "  # MongoDB
    "vgtid shard cluster commit_ts cluster_id "  # Vitess, Cassandra, TiCDC
    "project_id instance_id database_id change_stream_name low_watermark read_at_timestamp "  # Spanner
    "server_transaction_id record_sequence number_of_records_in_transaction number_records_in_transaction mod_number "
    "value_capture_type transaction_tag system_transaction is_last_record_in_transaction_in_partition partition_token "
    "number_of_partitions_in_transaction"
)

_KNOWN = {
    "canal_json": Members("FlatMessage", {"": "id", "_tidb": "watermarkTs"}, ("type",)),
    "cdl_json": Members(
        "Envelope",
        {"": "message_type", "source": _DEBEZIUM_SOURCE},
        ("message_version",),
        wrapped="payload",
    ),
    "datahub_blob": Members(
        "Envelope",
        {"": "version", "timestamp": "checkpointTime", "ddl": "ddlMeta"},
        ("payload",),
        opened=unwrapped,
    ),
    "debezium_json": Members(
        "Envelope",
        {
            "": "patch filter",
            "source": _DEBEZIUM_SOURCE,
            "transaction": "data_collection_order",
        },
        ("op source",),
        wrapped="payload",
        flattened=("__op", "__deleted"),
    ),
    "replicate_json": Members(
        "Envelope",
        {"": "messageSchema", "headers": "streamPosition", "lineage": "server task"},
        ("headers", "tableStructure"),
        wrapped="message",
    ),
    "shareplex_json": Members("SharePlexMessage", {"meta": "userid rowid"}, ("meta",)),
}
"""By format. Formats that are not here have rows beside the members, or a schema for each message."""


class Node(NamedTuple):
    """The known members of one object, and the objects among them whose members are known too."""

    names: frozenset[str]
    inner: dict[str, Node]


class KnownMembers(NamedTuple):
    """The known members of a format's messages."""

    members: Members
    tree: Node

    def unknown(self, value: bytes) -> list[str]:
        """Return the paths of the other members of a message; nothing of one that cannot be read."""
        wrapped = self.members.wrapped
        try:
            body, node, around = _object.decode(self.members.opened(value)), self.tree, list[str]()
            marked = any(name in body for name in self.members.flattened)
            if not marked and bytes(body.get(wrapped, b""))[:1] == b"{":
                around = [name for name in body if name not in node.names]
                body, node = _object.decode(body[wrapped]), node.inner[wrapped]
                marked = any(name in body for name in self.members.flattened)
            if marked or not any(_has(body, kind.split(), node) for kind in self.members.kinds):
                return []
            return [*around, *_beside(body, node, "")]
        except (DecodeError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return []


def known_to(format_name: str) -> KnownMembers | None:
    """Return the known members of a format's messages; None if nothing lists them."""
    members = _KNOWN.get(format_name)
    if members is None:
        return None
    return KnownMembers(members, _tree(getattr(resolve(format_name), members.envelope), members, ""))


def _tree(struct: type[msgspec.Struct], members: Members, name: str) -> Node:
    fields = msgspec.structs.fields(struct)
    names = {field.encode_name for field in fields} | set(members.documented.get(name, "").split())
    structs = {field.encode_name: own for field in fields if (own := _struct_in(field.type)) is not None}
    inner = {below: _tree(own, members, "" if below == members.wrapped else below) for below, own in structs.items()}
    return Node(frozenset(names), inner)


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:  # noqa: ANN401  any type of a field
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for each in get_args(kind) if (found := _struct_in(each)) is not None), None)


def _has(found: Mapping[str, msgspec.Raw], names: Iterable[str], node: Node) -> bool:
    """Return whether an object has members; a name whose own members are known must be an object."""
    return all(name in found and (name not in node.inner or bytes(found[name])[:1] == b"{") for name in names)


def _beside(found: Mapping[str, msgspec.Raw], node: Node, path: str) -> Iterator[str]:
    for name, raw in found.items():
        if name not in node.names:
            yield f"{path}{name}"
        elif name in node.inner and bytes(raw)[:1] == b"{":
            yield from _beside(_object.decode(raw), node.inner[name], f"{path}{name}.")


_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
