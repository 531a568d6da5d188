"""The tables of the ledger: their columns, and what the rows mean."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT
from tidemark.ledger.check_schema import CHECKS, CONTRADICTIONS
from tidemark.ledger.erasure_schema import ERASURES
from tidemark.ledger.offset_schema import OFFSETS
from tidemark.ledger.reconciliation_schema import RECONCILIATIONS

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
"""Files that were landed. A row is written before the messages of its file are committed: a row whose batch ``raw`` has
not reached belongs to an attempt that was aborted."""

REFUSALS = pa.schema([("source", pa.string()), ("path", pa.string()), ("problem", pa.string()), ("at", INSTANT)])
"""Files that the newest land refused, and why. The rows go once the files are mended or gone."""

KNOWN_FILES = pa.schema(
    [
        ("source", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.string()),
        ("checksum", pa.string()),
        ("at", INSTANT),
    ]
)
"""Files whose bytes had landed when land read them: under another path, or with another time of change. They are not
read again as long as size and time stay."""

INTERVALS = pa.schema([("source", pa.string()), ("start", INSTANT), ("end", INSTANT), ("at", INSTANT)])
"""Intervals that land has run for; those without a gap between them are one. A file that appears later in such an
interval is late, not early."""

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
        ("logs", pa.list_(pa.string())),
        ("heard", INSTANT),
        ("reprocessed", pa.int32()),
        ("at", INSTANT),
    ]
)
"""What became of the messages of a batch: ``landed = decoded + control + quarantined``. ``events`` counts the change
events that the messages held. ``logs``, where it may decide the order of statements: the partitions of topics and the
series of files that they came in, two at most. ``heard`` is the time of the newest control event, such as a heartbeat.
``reprocessed`` is the number of the reprocessing of the source that derived its events again, null if none did.

A batch with ``retry_of`` holds messages that landed with that batch and were quarantined. None of them landed again,
and the messages that decode now are subtracted from ``quarantined`` (0 = decoded + control - both). So the equation
holds for the sums over all batches as well."""

DISORDERS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("object", pa.string()),
        ("events", pa.int64()),
        ("of", pa.int64()),
        ("before", pa.string()),
        ("behind", pa.string()),
        ("at", INSTANT),
    ]
)
"""Tables for which names of files gave another order than times of events, in the run that ended with ``batch``. Of the
table's ``of`` events that files order in the run, ``events`` stand in files that come, by name, after files whose
events are all newer. The file ``behind`` is an example: it comes after the file ``before``."""

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
"""Change events of a batch, counted by what a plan needs to know of them. ``object`` is the table as source files name
it."""

SPANS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("object", pa.string()),
        ("newest", pa.string()),
        ("oldest", pa.string()),
        ("first", INSTANT),
        ("last", INSTANT),
        ("unplaced", pa.int64()),
        ("unplaced_last", INSTANT),
        ("back", INSTANT),
        ("back_to", pa.string()),
        ("commits_from", pa.string()),
        ("changes_to", pa.string()),
        ("commits_by", pa.string()),
        ("database", pa.string()),
        ("at", INSTANT),
    ]
)
"""What the change events of a table in a batch span: highest and lowest position, earliest and latest commit time.
``unplaced`` counts rows of initial loads that nothing ranks among the changes, ``unplaced_last`` is when the last of
them was read. ``back`` is the earliest time of the changes from one on that was delivered behind a higher position,
where they all are later than all before it; ``back_to`` is the position of that one. Where messages carry commits, and
positions do not rise with these (PostgreSQL): ``commits_from`` is the lowest place in the log of a last commit before a
change, ``changes_to`` the highest place of a change that carries one. ``commits_by`` is the connector, ``*`` for
several. ``database`` is that of the rows, where the table's name leaves it out, likewise."""

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
"""Columns (JSON) of the shapes that the change log refers to, and the first batch with each shape."""

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
        ("together", pa.list_(pa.string())),
        ("at", INSTANT),
    ]
)
"""DDL that may change existing tables, and complete initial loads (dialect ``initial_load``). The table is made when
the first of these comes.

``database``, ``schema`` and ``name`` are the names in the message, null where it names none; for a load, the table that
it has rows of. ``position`` is the change log's; for a load, where it began. ``statement`` of a load is what its rows
say (JSON). ``at`` is when the source committed the statement, as far as the message says so; else when it was captured,
else when it landed; for a load, when it was read. ``together`` is set where a message has a part of a statement: the
tables that the whole statement changed."""

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
        ("erased", pa.int64()),
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
"""What became of the events of a table in a cut: ``events = applied + superseded + duplicate + held + quarantined +
erased``.

``state``: ``candidate``, ``published``, ``stopped`` with its ``reason``, ``unmoved`` (all events are held), or
``waiting`` (nothing says yet which columns the table has, or the source file has to name it). ``batch`` is the last
batch that the snapshot holds. ``rebuilt`` is the request that was answered, if the table was built again from all its
events, which ``events`` counts then. ``deleted`` counts the rows that readers saw before the cut, and that it removed
or marked as deleted. A row that got another key does not count, unless the table has ``where``. For a table without a
key, or built again, it is how many rows fewer it has. ``committed_at`` is the time of the newest event applied."""

REBUILDS = pa.schema([("source", pa.string()), ("object", pa.string()), ("asked", pa.string()), ("at", INSTANT)])
"""Requests to build tables again from the whole change log. A request goes once a cut with its table is published."""

REPROCESSING = pa.schema([("source", pa.string()), ("batch", pa.int32()), ("at", INSTANT)])
"""Batches whose events are being derived again: written first, gone once the change log has the events."""

CUTS = pa.schema(
    [
        ("source", pa.string()),
        ("cut", pa.int32()),
        ("state", pa.string()),
        ("batch", pa.int32()),
        ("reprocessed", pa.int32()),
        ("given_up", pa.list_(pa.string())),
        ("built_by", pa.string()),
        ("at", INSTANT),
    ]
)
"""Cuts of a source. ``state``: ``candidate`` (compacted), ``checked``, ``failed``, ``held`` (awaits approval),
``publishing`` (tables are being moved), ``published``, ``replaced``. ``reprocessed`` is the number of the newest
reprocessing before it was built: what a later one derived again is judged with the next cut.
``given_up`` has the open transactions whose events it takes and no published cut before it took: once it is published,
they are not open for any later cut.
``built_by`` is a digest of what the source file said about building tables then, with the contradictions that were off
(``without before_images``): a cut of another file is built again, and not published. It is null for an erasure."""

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

``state``: ``open``, ``whole``, ``rolled_back``. ``since`` is its first batch, ``events`` counts its change events up to
``batch``, ``seen`` is a ``tally.Seen`` as JSON. The row without an id, in state ``marked``, says that the source sends
markers; its ``seen`` is a ``transactions.Facts`` as JSON."""

UNKNOWN_MEMBERS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("member", pa.string()),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("reprocessed", pa.int32()),
        ("at", INSTANT),
    ]
)
"""Members of messages that the format does not know: their path in a message, the first batch that has it, and the
place of one such message. ``reprocessed`` is the number of the reprocessing that found it first, if one did."""

SOURCE_FILES = pa.schema([("source", pa.string()), ("batch", pa.int32()), ("declared", pa.string()), ("at", INSTANT)])
"""What the source file said, without defaults, as JSON, when messages were last read: one row a source. Of the landing
path, which may hold the keys of a store, it is a digest."""
SCHEMAS: Mapping[str, pa.Schema] = {
    "files": FILES,
    "refusals": REFUSALS,
    "known_files": KNOWN_FILES,
    "intervals": INTERVALS,
    "batches": BATCHES,
    "disorders": DISORDERS,
    "contents": CONTENTS,
    "spans": SPANS,
    "offsets": OFFSETS,
    "shapes": SHAPES,
    "ddl": DDL,
    "tables": TABLES,
    "rebuilds": REBUILDS,
    "reprocessing": REPROCESSING,
    "cuts": CUTS,
    "transactions": TRANSACTIONS,
    "checks": CHECKS,
    "contradictions": CONTRADICTIONS,
    "unknown_members": UNKNOWN_MEMBERS,
    "source_files": SOURCE_FILES,
    "reconciliations": RECONCILIATIONS,
    "erasures": ERASURES,
}

NAMES = tuple(SCHEMAS)
"""Tables of the ledger, in the namespace ``ledger``."""
