"""New events that contradict the rows of their table: looked for only where the counts of a merge show that there are.

A merge of sound events inserts a row for each key that begins without one, and deletes one for each key that loses its
row. The fold counts these keys. So the usual run costs no look at the table, and where the numbers differ, the batch
meets the keys of the table once more. (A key too many and one too few hide each other in these numbers, not for long:
the next events of either contradict the rows again.) Where deletes are soft or rows are written in parts, the numbers
show too little, and the folded keys are compared with the keys of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import idle_events, truncation
from tidemark.compaction.accounting import Merged
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built, Contradiction
from tidemark.events import Operation
from tidemark.folding import before_images as compared
from tidemark.folding import frames, row_needs
from tidemark.folding.keyed import Totals
from tidemark.folding.row_needs import TableBefore
from tidemark.lake.filters import equals
from tidemark.ledger.contradiction_rows import (
    BEFORE_IMAGES,
    DIFFERENT_COPIES,
    EXISTING_ROWS,
    IN_WORDS,
    INCOMPLETE_ROWS,
    MISSING_ROWS,
    ContradictionRow,
)
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.sources.choices import Consequence
from tidemark.spark.session import checkpointed
from tidemark.spark.tuning import gathered
from tidemark.tables.plan import Found
from tidemark.text import harmless, key_text
from tidemark.values.iso8601 import to_micros

_SHOWN = 5
"""Most examples of one kind that an entry shows."""


def are_there(totals: Totals, merged: Merged) -> bool:
    """Return whether a merge found other rows than the events need.

    Args:
        totals: of their fold.
        merged: what the commits of the merge did.
    """
    inserts_fit = totals.fresh <= merged.inserted <= totals.fresh + totals.maybe_fresh
    deletes_fit = totals.gone <= merged.deleted <= totals.gone + totals.maybe_gone
    return totals.breaks > 0 or not (inserts_fit and deletes_fit)


def may_be(prepared: Prepared, folded: DataFrame, totals: Totals, merged: Merged | None, start: int) -> bool:
    """Return whether new events may contradict the rows that they were merged into.

    Args:
        prepared: the table.
        folded: ``folding.keyed.fold`` of its new events.
        totals: of their fold.
        merged: what the commits of the merge did; None where that shows too little.
        start: the snapshot that they were merged into.
    """
    if merged is not None:
        return are_there(totals, merged)
    if totals.breaks:
        return True
    met = folded.join(idle_events.stood_at(prepared, start), frames.key_names(prepared.plan), "left")
    stood = F.coalesce("stands", F.lit(row_needs.NO_ROW))
    return not met.where(F.col("begins") * stood == -1).isEmpty()


def found(prepared: Prepared, acted: DataFrame, start: int) -> list[Contradiction]:
    """Return the contradictions between new events and the rows of a table.

    Args:
        prepared: the table.
        acted: ``folding.actions.actions`` of its new events.
        start: the snapshot that they were merged into.
    """
    plan = prepared.plan
    sound = acted.where(F.col("set_aside").isNull())
    if "idle" in acted.columns:
        sound = sound.where(~F.col("idle"))
    if plan.soft and (truncates := truncation.known(prepared)):  # elsewhere, events below a TRUNCATE are set aside
        sound = sound.where(F.col("position") > truncates.position(plan))
    stood, dead = idle_events.stood_at(prepared, start), idle_events.died_at(prepared)
    judged = row_needs.judged(sound, stood, dead, known(prepared), plan)
    judged = checkpointed(judged)
    counts = {row["needs"]: int(row["count"]) for row in judged.groupBy("needs").count().collect()}
    declared = prepared.run.source.invariants
    kinds = ((row_needs.ROW, MISSING_ROWS), (row_needs.NO_ROW, EXISTING_ROWS))
    return [
        entry(judged.where(F.col("needs") == needs), kind, counts[needs], prepared)
        for needs, kind in kinds
        if needs in counts and getattr(declared, kind) is not Consequence.OFF
    ]


def incomplete(prepared: Prepared, acted: DataFrame, judged: DataFrame) -> list[Contradiction]:
    """Return the rows that are known only in part, as at most one entry, which names the message of the first part.

    Args:
        prepared: a table whose cells have writers of their own.
        acted: ``folding.actions.actions`` of its new events.
        judged: ``folding.cells.combine`` of them.
    """
    if prepared.run.source.invariants.incomplete_rows is Consequence.OFF:
        return []
    keys = frames.key_names(prepared.plan)
    rows = checkpointed(judged.where("lacks").select(*keys))
    if not (count := rows.count()):
        return []
    parts = acted.where(F.col("set_aside").isNull() & F.col("partial")).join(rows, keys, "left_semi")
    return [entry(parts, INCOMPLETE_ROWS, count, prepared)]


def before_images(prepared: Prepared, changes: DataFrame, start: int, *, of_deletes: bool) -> list[Contradiction]:
    """Return the before images that are not the row before, at most one entry.

    Args:
        prepared: the table.
        changes: its new events.
        start: the snapshot that they were merged into.
        of_deletes: whether the before images of DELETEs are compared too.
    """
    plan = prepared.plan
    changed = changes.where(F.col("operation") != Operation.TRUNCATE)
    sides = gathered(compared.sides(changed, plan, of_deletes=of_deletes))
    if truncates := truncation.known(prepared):
        sides = sides.where(F.col("position") > truncates.newest[""].position)  # shards are not compared
    rows, dead = compared.stored(prepared.stored_at(start), plan), idle_events.died_at(prepared)
    differing = compared.differing(sides, rows, dead, plan, seen(prepared), added_columns(prepared))
    differing = checkpointed(differing)
    count = differing.count()
    return [entry(differing, BEFORE_IMAGES, count, prepared)] if count else []


def added_columns(prepared: Prepared) -> set[str]:
    """Return the columns that some events of the table were delivered without: it may have rows from before them."""
    shapes = prepared.run.ledger.shapes_of(*prepared.plan.found.objects).values()
    delivered = [{column.name for column in shape.columns} for shape in shapes]
    return {column.name for column in prepared.plan.columns if not all(column.name in names for names in delivered)}


def different_copies(prepared: Prepared, events: DataFrame, identity: Sequence[str]) -> list[Contradiction]:
    """Return the copies of events that say something else than the event, at most one entry.

    Args:
        prepared: the table.
        events: its new events: ``position``, ``file``, ``place``, ``content``, and what identifies them.
        identity: the columns that are the same for the copies of an event.
    """
    if prepared.run.source.invariants.different_copies is Consequence.OFF:
        return []
    by_identity = events.groupBy(*identity)
    differing = by_identity.agg(F.count_distinct("content").alias("contents")).where("contents > 1")
    differing = checkpointed(differing)
    count = differing.count()
    copies = events.join(differing.select(*identity), [*identity], "left_semi")
    return [entry(copies, DIFFERENT_COPIES, count, prepared)] if count else []


def entry(judged: DataFrame, kind: str, events: int, prepared: Prepared) -> Contradiction:
    """Return the entry for events that contradict the rows in one way; it names no keys if the table has no key.

    Args:
        judged: the events: ``position``, ``file``, ``place``, and the key columns.
        kind: how.
        events: how many there are.
        prepared: the table.
    """
    keys = frames.key_names(prepared.plan)
    first, *others = judged.orderBy("position").limit(_SHOWN).select(
        "position", "file", "place", *(F.col(key).cast("string") for key in keys)
    ).collect()  # fmt: skip
    names = [key_text(prepared.plan.key, (row[key] for key in keys)) for row in (first, *others)] if keys else []
    return Contradiction(
        kind=kind,
        events=events,
        position=first["position"],
        file=first["file"],
        place=int(first["place"]),
        keys=tuple(dict.fromkeys(names)),
    )


def known(prepared: Prepared) -> TableBefore:
    """Return what is known of a table before its new events."""
    run, of_table, spans = prepared.run, equals("object", prepared.plan.found.object), _spans(prepared)
    seen = _seen(prepared.plan.found, spans)
    if any(row.object == prepared.plan.found.object for row in run.ledger.erasures()):
        # An erased row is missing, and no event of it is lost.
        return TableBefore(emptied=False, loaded=None, seen=seen)
    loads = run.ledger.contents(of_table, equals("operation", Operation.SNAPSHOT))
    batches = {row.batch for row in loads if row.batch <= run.cut.batch}
    truncate = truncation.known(prepared).newest.get("")
    by_load = {each.position for each in prepared.plan.found.history.emptyings if each.load}
    emptied = truncate is not None and truncate.position not in by_load
    return TableBefore(emptied=emptied, loaded=_latest(row for row in spans if row.batch in batches), seen=seen)


def seen(prepared: Prepared) -> int | None:
    """Return ``TableBefore.seen`` of a table."""
    return _seen(prepared.plan.found, _spans(prepared))


def _spans(prepared: Prepared) -> list[SpanRow]:
    return prepared.run.ledger.spans(equals("object", prepared.plan.found.object))


def _seen(found: Found, spans: Iterable[SpanRow]) -> int | None:
    """Return ``TableBefore.seen`` of a table."""
    return _latest(row for row in spans if row.batch <= found.published_batch)


def _latest(spans: Iterable[SpanRow]) -> int | None:
    times = [time for row in spans for time in (row.last, row.unplaced_last) if time is not None]
    return to_micros(max(times)) if times else None


def note(ledger: Ledger, cut: int, built: Sequence[Built]) -> None:
    """Write the contradictions of a cut into the ledger, without keys, in place of what an earlier attempt wrote."""
    rows = [
        ContradictionRow(
            cut=cut,
            object=table.object,
            kind=each.kind,
            events=each.events,
            position=each.position,
            file=each.file,
            place=each.place,
        )
        for table in built
        for each in table.contradictions
    ]
    of_cut = equals("cut", cut)
    if rows or ledger.contradictions(of_cut):
        ledger.replace(ContradictionRow, rows, of_cut)


def sentences(built: Iterable[Built]) -> tuple[str, ...]:
    """Return a sentence for each contradiction of some tables, with keys of rows."""
    return tuple(
        f"{table.object}: {each.events} {IN_WORDS[each.kind]}{_keys(each)}. The first is message {each.place} of "
        f"{harmless(each.file)}, at position {each.position}"
        for table in built
        for each in table.contradictions
    )


def _keys(contradiction: Contradiction) -> str:
    if not contradiction.keys:
        return ""
    more = "; ..." if contradiction.events > len(contradiction.keys) else ""
    return harmless(f" ({'; '.join(contradiction.keys)}{more})")
