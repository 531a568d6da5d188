"""The tables of the ledger: what their rows tell."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT

FILES = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.string()),
        ("checksum", pa.string()),
        ("container", pa.string()),
        ("messages", pa.int64()),
        ("interval_start", INSTANT),
        ("at", INSTANT),
    ]
)
"""Files landed, written before their messages are committed: a row whose batch ``raw`` has not reached is an aborted
attempt."""

REFUSALS = pa.schema([("source", pa.string()), ("path", pa.string()), ("problem", pa.string()), ("at", INSTANT)])
"""Files that the newest land refused, and why; empty again once they are mended or gone."""

INTERVALS = pa.schema([("source", pa.string()), ("start", INSTANT), ("end", INSTANT), ("at", INSTANT)])
"""Intervals that land has run for: a file that appears later in one of them is late, not early."""

BATCHES = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("landed", pa.int64()),
        ("decoded", pa.int64()),
        ("control", pa.int64()),
        ("quarantined", pa.int64()),
        ("events", pa.int64()),
        ("retry_of", pa.int32()),
        ("at", INSTANT),
    ]
)
"""Messages of a batch: ``landed = decoded + control + quarantined``; ``events`` are the change events they held. A
batch with ``retry_of`` is of messages that landed with that batch and were quarantined: none of it landed anew, what
was decoded is taken off the quarantined (0 = decoded + control - both), so the sums over all batches hold as well."""

CONTENTS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("object", pa.string()),
        ("database", pa.string()),
        ("schema", pa.string()),
        ("name", pa.string()),
        ("operation", pa.string()),
        ("shape", pa.string()),
        ("partial", pa.bool_()),
        ("key", pa.list_(pa.string())),
        ("half", pa.bool_()),
        ("events", pa.int64()),
        ("at", INSTANT),
    ]
)
"""Change events of a batch by what a plan asks of them: ``object`` is the table as source files name it."""

SHAPES = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("object", pa.string()),
        ("shape", pa.string()),
        ("columns", pa.string()),
        ("at", INSTANT),
    ]
)
"""Columns (JSON) of the shapes that the change log refers to, and the batch that each came first in."""

DDL = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("database", pa.string()),
        ("schema", pa.string()),
        ("name", pa.string()),
        ("position", pa.string()),
        ("dialect", pa.string()),
        ("statement", pa.string()),
        ("at", INSTANT),
    ]
)
"""DDL that may change tables which are there already: ``database``, ``schema`` and ``name`` are those of the message,
null where it names none; ``position`` is the change log's. And complete initial loads, in the dialect ``initial_load``:
the table that a load has rows of, where it began, and the time that they tell. The table is made when the first of
these comes. ``at`` is when the statement was committed, as far as its message tells that; else when it was captured,
landed, or (of a load) read."""

TABLES = pa.schema(
    [
        ("source", pa.string()),
        ("cut", pa.int32()),
        ("object", pa.string()),
        ("target", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("batch", pa.int32()),
        ("events", pa.int64()),
        ("applied", pa.int64()),
        ("superseded", pa.int64()),
        ("duplicate", pa.int64()),
        ("held", pa.int64()),
        ("quarantined", pa.int64()),
        ("rebuilt", pa.string()),
        ("rows_before", pa.int64()),
        ("rows_after", pa.int64()),
        ("deleted", pa.int64()),
        ("committed_at", INSTANT),
        ("base", pa.int64()),
        ("snapshot", pa.int64()),
        ("verdict", pa.string()),
        ("at", INSTANT),
    ]
)
"""Events of a table in a cut: ``events = applied + superseded + duplicate + held + quarantined``. ``state``: candidate,
published, stopped with its ``reason``, unmoved (all its events are held), or waiting (for what tells its columns);
``batch`` is the last one that the snapshot holds; ``rebuilt`` the asking that was answered, where the table was built
again from its whole change log: its events are all that there are. ``deleted``: rows that readers of the cut before saw
and that went, or were marked as deleted, other than by a new key; of a table without a key, or rebuilt, by how many it
shrank.
``committed_at``: of the newest event applied."""

REBUILDS = pa.schema([("source", pa.string()), ("object", pa.string()), ("asked", pa.string()), ("at", INSTANT)])
"""Tables that the next compact builds again from the whole change log; gone once a cut with them is published."""

REPROCESSING = pa.schema([("source", pa.string()), ("batch", pa.int32()), ("at", INSTANT)])
"""Batches whose events are being derived again: written ahead, gone once the change log has them."""

CUTS = pa.schema(
    [
        ("source", pa.string()),
        ("cut", pa.int32()),
        ("state", pa.string()),
        ("batch", pa.int32()),
        ("at", INSTANT),
    ]
)
"""Cuts of a source: ``candidate`` (compacted), ``publishing`` (checked; tables are being moved), ``published``."""

TRANSACTIONS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("id", pa.string()),
        ("state", pa.string()),
        ("since", pa.int32()),
        ("events", pa.int64()),
        ("seen", pa.string()),
        ("at", INSTANT),
    ]
)
"""Source transactions that were open at the end of a run, or undone: how each stood once ``batch`` was normalized.
``state``: open, whole, rolled_back; ``since`` is its first batch, ``events`` counts its change events up to ``batch``,
``seen`` is a ``transactions.Seen`` as JSON. The row without an id, in state marked, says that the source sends
markers."""

SCHEMAS: Mapping[str, pa.Schema] = {
    "files": FILES,
    "refusals": REFUSALS,
    "intervals": INTERVALS,
    "batches": BATCHES,
    "contents": CONTENTS,
    "shapes": SHAPES,
    "ddl": DDL,
    "tables": TABLES,
    "rebuilds": REBUILDS,
    "reprocessing": REPROCESSING,
    "cuts": CUTS,
    "transactions": TRANSACTIONS,
}

NAMES = tuple(SCHEMAS)
"""Tables of the ledger, in the namespace ``ledger``."""
