"""Whether before images may differ from the row before: a cheap look at the images that the fold collects.

A few images are compared, in this process. An image that hashes of texts do not prove (``folding.row_images``) is
compared with what the event behind left. The image of the oldest event of a key is compared with the stored row. The
look decides nothing: where an image differs, ``contradictions.before_images`` compares all of them, by every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import contradictions, stored_samples
from tidemark.compaction.candidate import Prepared
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.keyed import Totals
from tidemark.folding.row_images import IMAGES, Wanted
from tidemark.positions import DELIVERY
from tidemark.tables.plan import Plan
from tidemark.values import images
from tidemark.values.image_reader import UNREADABLE, field

log = structlog.get_logger(__name__)

_IMAGES = 2_000
"""About so many before images of a table and a run are read."""

_MOST = 10
"""Where one in so many before images is not the image behind it, texts prove nothing of this producer."""

_Mask = npt.NDArray[np.bool_]


def wanted(plan: Plan, events: int) -> Wanted | None:
    """Return which before images the fold of a batch collects; None: before images are not compared.

    Pairs cost a copy of each row. Large batches have them where texts do not prove images: an old image of Canal has
    the changed columns alone.
    """
    share = max(1, events // _IMAGES)
    return Wanted(share, pairs=share == 1 or plan.ranks_copies) if plan.compares_images else None


def are_of_deletes(plan: Plan, totals: Totals) -> bool:
    """Return whether the before image of a DELETE says what the row was.

    PostgreSQL logs the key alone, unless it is configured otherwise, and Debezium fills in zeros, empty texts and
    defaults. Then UPDATEs have no before image.
    """
    return plan.found.halves or bool(totals.telling and not totals.silent)


def images_of(folded: DataFrame, apart: Sequence[str] = ()) -> pa.Table:
    """Return the before images that rows of a fold collected (``folding.row_images.IMAGES``), a row for each.

    Args:
        folded: ``folding.keyed.fold``, with images.
        apart: columns that say which table a row is of; they stay.
    """
    return folded.select(*apart, F.explode(IMAGES).alias("image")).select(*apart, "image.*").toArrow()


def differ(prepared: Prepared, plan: Plan, collect: Callable[[], pa.Table], totals: Totals, start: int) -> bool:
    """Return whether a before image may not be the row before.

    Args:
        prepared: the table.
        plan: the plan that its events were read by.
        collect: returns ``images_of`` its fold.
        totals: of it.
        start: the snapshot that the rows were merged into.
    """
    if totals.images < totals.unproved and totals.unproved * _MOST <= totals.following:
        return True
    if not totals.images:
        return False
    rows = collect()
    if not are_of_deletes(plan, totals):
        rows = rows.filter(pc.invert(rows.column("deletes")))
    rows = rows.filter(pa.array(_rise(plan, rows, prepared)))
    is_oldest = rows.column("is_oldest")
    look = _Look(prepared, plan)
    return look.left_otherwise(rows.filter(pc.invert(is_oldest))) or look.stand_otherwise(rows.filter(is_oldest), start)


def _rise(plan: Plan, rows: pa.Table, prepared: Prepared) -> _Mask:
    """Return which events are certainly no copies of others (``folding.row_needs.rises``)."""
    if not plan.ranks_copies and not plan.has_deliveries:
        return np.ones(rows.num_rows, np.bool_)
    at, latest = rows.column("at"), pa.scalar(contradictions.seen(prepared), pa.int64())
    if "behind" in rows.schema.names:
        latest = pc.max_element_wise(pc.struct_field(rows.column("behind"), "at"), latest)
    later = pc.and_(pc.is_valid(at), pc.fill_null(pc.greater(at, latest), pa.scalar(value=True)))
    is_placed = pc.match_substring(rows.column("position"), DELIVERY)
    return np.asarray(later if plan.ranks_copies else pc.or_(is_placed, later))


@dataclass(frozen=True)
class _Look:
    """A look at some before images of a table."""

    prepared: Prepared
    plan: Plan
    """The plan that the events were read by."""

    def left_otherwise(self, pairs: pa.Table) -> bool:
        """Return whether what an event left of a row differs from the before image of the next event."""
        if not pairs.num_rows:
            return False
        behind = pairs.column("behind").combine_chunks()
        others = {n: pc.struct_field(behind, ["left", field(n)]) for n in self._numbers}
        return self._any(self._read(pairs), others, are_whole=not self.plan.found.partial)

    def stand_otherwise(self, oldest: pa.Table, start: int) -> bool:
        """Return whether a stored row differs from the before image of the first new event of its key."""
        if not oldest.num_rows:
            return False
        was, keys = self._read(oldest), key_names(self.plan)
        wanted = pa.table(
            [*oldest.column("key").combine_chunks().flatten(), np.arange(oldest.num_rows)], [*keys, "sample"]
        )
        met, found = 0, False
        for rows in stored_samples.read(self.prepared, self._numbers, start):
            own = rows.select(keys).append_column("row", pa.array(np.arange(rows.num_rows)))
            both = own.join(wanted, keys, join_type="inner")
            stands, samples = rows.take(both.column("row")), both.column("sample")
            older = pa.array(stored_samples.are_older(stands, oldest.column("position").take(samples)), pa.bool_())
            stands, samples = stands.filter(older), samples.filter(older)
            met += stands.num_rows
            others = {n: stands.column(field(n)) for n in self._numbers if field(n) in stands.schema.names}
            found = found or self._any({n: was[n].take(samples) for n in others}, others, are_whole=True)
        log.info("before_images_compared", table=self.plan.found.object, rows=met, of=oldest.num_rows)
        return found

    @cached_property
    def _numbers(self) -> list[int]:
        """The columns that are compared: images have no masks."""
        return [n for n in value_numbers(self.plan) if self.plan.columns[n].name not in self.plan.masks.kinds]

    @cached_property
    def _added(self) -> set[str]:
        return contradictions.added_columns(self.prepared)

    def _any(self, was: Mapping[int, pa.Array], others: Mapping[int, pa.Array], *, are_whole: bool) -> bool:
        """Return whether a value of an image differs from the value in the row; a null in the row may be no value."""
        differing = {n: _differs(was[n], other) for n, other in others.items()}
        if any(pc.any(pc.and_(mask, pc.is_valid(others[n]))).as_py() for n, mask in differing.items()):
            return True
        nulls = (self.plan.columns[n].name for n, mask in differing.items() if pc.any(mask).as_py())
        return are_whole and any(name not in self._added for name in nulls)

    def _read(self, rows: pa.Table) -> dict[int, pa.Array]:
        """Return the values of before images by column, null for what an image does not show."""
        reader = images.reader(self.plan.columns, self.plan.found.shapes, self.plan.found.names)
        cells = reader.read(*(rows.column(name).combine_chunks() for name in ("shape", "was")))
        sound, lacking = pc.is_null(cells.field(UNREADABLE)), self._lacking(rows)
        nothing = np.zeros(rows.num_rows, np.bool_)
        known = {n: pc.and_(sound, pa.array(~lacking.get(n, nothing))) for n in self._numbers}
        return {n: pc.if_else(mask, cells.field(field(n)), None) for n, mask in known.items()}

    def _lacking(self, rows: pa.Table) -> dict[int, _Mask]:
        """Return by column which events say that they did not capture its value."""
        found, places = self.plan.found, {self.plan.columns[n].name: n for n in self._numbers}
        lacking: dict[int, _Mask] = {}
        for row in np.flatnonzero(pc.fill_null(pc.list_value_length(rows.column("absent")), 0)):
            shape, absent = (rows.column(name)[row].as_py() for name in ("shape", "absent"))
            for name, own in images.by_table_name(shape, found.shapes[shape], found.names):
                if own.name in absent and name in places:
                    lacking.setdefault(places[name], np.zeros(rows.num_rows, np.bool_))[row] = True
        return lacking


def _differs(was: pa.Array, other: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return which values are not null and differ from these others; NaN equals itself."""
    never, other = pa.scalar(value=False), other.cast(was.type)
    same = pc.fill_null(pc.equal(was, other), never)
    if pa.types.is_floating(was.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(was), pc.is_nan(other)), never))
    return pc.and_(pc.is_valid(was), pc.invert(same))
