"""Build the planned tables: small ones side by side, folded together where that is the same, large ones alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

from pyspark.sql import SparkSession

from tidemark.compaction import guessed_types, rebuilding, shared_folds
from tidemark.compaction.bag_candidate import BagCandidate
from tidemark.compaction.candidate import Candidate, Cut, Fold
from tidemark.compaction.deciding import plan_all
from tidemark.lake.branches import MARKER
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Row
from tidemark.sources.model import SchemaPolicy, Source
from tidemark.spark.session import is_small, tuned_for
from tidemark.tables.plan import Found, Plan


def candidate_of(plan: Plan) -> type[Candidate]:
    """The kind of candidate that a table has."""
    return Candidate if plan.key else BagCandidate


_SIDE_BY_SIDE = 4
"""Tables that are built at once: a commit waits for the catalog longer than it computes."""

_BATCH_PROPERTY = f"spark.sql.iceberg.snapshot-property.{MARKER}batch"


def build(
    session: SparkSession,
    lake: Lake,
    source: Source,
    finds: Mapping[str, Found],
    sizes: Mapping[str, int],
    cut: Cut,
    stands: Mapping[str, int],
    default: int,
    asked: Mapping[str, str],
) -> list[Row]:
    """Build every table that has something to build, and return the rows for the ledger."""
    with tuned_for(session, sizes.values()):
        planned, rows = plan_all(session, lake, source, finds, cut, stands, default, asked)
    if any("anew" in row for row in rows):
        return rows
    small: list[tuple[Plan, int]] = []
    large: list[tuple[Plan, int]] = []
    for plan, after in planned:
        (small if is_small(sizes[plan.found.object]) else large).append((plan, after))
    for tables in filter(None, (small, large)):
        rows += _build_side_by_side(session, lake, source, tables, sizes, cut, asked, alone=tables is large)
    return rows


def _build_side_by_side(
    session: SparkSession,
    lake: Lake,
    source: Source,
    tables: Sequence[tuple[Plan, int]],
    sizes: Mapping[str, int],
    cut: Cut,
    asked: Mapping[str, str],
    *,
    alone: bool,
) -> list[Row]:
    """Build the tables; each is folded in a plan of its own where ``alone``."""
    # Making a frame makes the session the active one of a thread. Where there is none, Spark's cache takes the settings
    # that Spark has by itself, and refuses tables with columns whose names differ in case only.
    activate = partial(session.createDataFrame, [], "nothing int")
    again = [plan for plan, _ in tables if plan.found.object in asked]
    candidates = [
        (candidate_of(plan)(session, lake, source.source, plan, cut), after)
        for plan, after in tables
        if plan.found.object not in asked
    ]
    pool = ThreadPoolExecutor(_SIDE_BY_SIDE, initializer=activate)
    with _marked(session, cut.batch), ExitStack() as views, pool:
        deque(pool.map(Candidate.prepare, (candidate for candidate, _ in candidates)), maxlen=0)
        folds: Mapping[str, Fold] = {}
        if not alone:
            folds = shared_folds.folds(session, lake, source.source, candidates, cut.batch, pool, views)
        with tuned_for(session, [sizes[plan.found.object] for plan, _ in tables]):
            jobs = [
                pool.submit(rebuilding.build, session, lake, source.source, plan, cut, asked[plan.found.object])
                for plan in again
            ]
            jobs += [
                pool.submit(_build_one, session, lake, source, candidate, after, folds.get(candidate.plan.found.object))
                for candidate, after in candidates
            ]
            return [job.result() for job in jobs]


def _build_one(
    session: SparkSession, lake: Lake, source: Source, candidate: Candidate, after: int, fold: Fold | None
) -> Row:
    plan, row = candidate.plan, candidate.build(after, fold)
    follows = source.schema_policy is not SchemaPolicy.STRICT
    if (
        follows
        and row["quarantined"]
        and guessed_types.are_outgrown(session, lake, source, plan, candidate.changes(after))
    ):
        row["anew"] = "a number does not fit a type that was guessed from values"
    return row


@contextmanager
def _marked(session: SparkSession, batch: int) -> Iterator[None]:
    """Put the marker into every commit of the session: what was done is told in the commit that does it."""
    session.conf.set(_BATCH_PROPERTY, str(batch))
    try:
        yield
    finally:
        session.conf.unset(_BATCH_PROPERTY)
