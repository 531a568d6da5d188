"""Makes published rows and versions of whole ones, where the source file says ``where`` or ``derive`` (docs/adr/0049).

Events are folded into a table of whole rows, as into any table. What a cut changed there is in its files: of the rows
in them, those that the filter lets through come into the published table, changed or new, and the others go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import StructField

from tidemark.compaction import accounting, history_tables, merging
from tidemark.compaction.accounting import Merged
from tidemark.compaction.candidate import put_on_branch
from tidemark.compaction.decisions import Built
from tidemark.compaction.run import Run
from tidemark.lake import changed_files
from tidemark.lake.branches import head
from tidemark.lake.changed_rows import SIDE
from tidemark.lake.names import Identifier
from tidemark.lake.statistics import rows_in
from tidemark.ledger.rows import Snapshots
from tidemark.spark.changed_frames import rows_of
from tidemark.tables import layouts
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, DELETED, IS_CURRENT, POSITION, VALID_FROM, VALID_TO
from tidemark.text import quoted
from tidemark.values.computed_columns import computed

_INTERVAL = (VALID_FROM, VALID_TO, IS_CURRENT)


def show(run: Run, plan: Plan, built: Built, *, anew: bool = False) -> Built:
    """Return what was built, with the candidates that readers will see; as it is where no whole rows are kept.

    Args:
        run: the run.
        plan: the table's plan.
        built: the candidate of the whole rows.
        anew: whether it was built from all events, beside what is published.
    """
    if not plan.keeps_whole:
        return built
    table = put_on_branch(run, plan.of_published)
    layouts.follow(table, run.source.table_for(plan.found.object).layout, plan.of_published)
    own = (POSITION, COMMITTED_AT, *([DELETED] if plan.soft else []))
    rows = _Shown(run, plan, plan, (plan.rows, plan.target), own, tuple(plan.key) or (POSITION,))
    merged = rows.write(anew=anew)
    if plan.keeps_versions:
        go_on = [history_tables.goes_on(run, each) for each in (plan, plan.of_published)]
        whole = replace(plan, soft=False, today=plan.today if go_on[0] else {})
        shown = history_tables.prepare(run, replace(plan.of_published, soft=False), on=go_on[1])
        identifiers = (whole.versions, shown.versions)
        own = (*_INTERVAL, POSITION, COMMITTED_AT)
        _Shown(run, whole, shown, identifiers, own, (*whole.key, POSITION)).write(anew=not all(go_on) or anew)
        history_tables.record_tracking(run, plan.of_published)
    candidate = head(run.lake.load(plan.target), run.cut.branch)
    deleted = built.deleted  # where all rows are shown, as many as the fold counts
    if plan.where is not None:
        deleted = merged.deleted if plan.key else max(0, -merged.grown)
    return replace(built, rows_change=merged.grown, deleted=deleted, snapshots=Snapshots(head(table), candidate))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A table, or a history, whose readers see what the expressions make of its rows."""

    run: Run
    plan: Plan
    """Whose columns the whole table has."""
    published: Plan
    """The same; its columns have the names that they have in the published table until the cut is published."""
    identifiers: tuple[Identifier, Identifier]
    """The whole table, and the published one."""
    own: tuple[str, ...]
    """Tidemark's own columns of both."""
    identity: tuple[str, ...]
    """Columns that tell its rows apart."""

    @property
    def _stored(self) -> dict[str, str]:
        """The columns of the whole table: name of today to the name until the cut is published."""
        return {column.name: self.plan.stored(column.name) for column in self.plan.columns} | {
            name: name for name in self.own
        }

    def write(self, *, anew: bool) -> Merged:
        """Write what changed into the branch of the published table; return how many rows changed there."""
        branch = self.run.cut.branch
        place = self.run.lake.spark_name(self.identifiers[1], branch)
        start = head(self.run.lake.load(self.identifiers[1]), branch)
        if anew or not rows_in(self.run.lake.load(self.identifiers[0])):  # where no row was whole, none was published
            cells = [F.col(quoted(stored)).alias(name) for name, stored in self._stored.items()]
            whole = self.run.read(self.identifiers[0], branch).select(*cells)
            made = whole.where(self._inside()).select(*(cell.alias(name) for name, cell in self._made().items()))
            merging.overwrite_made(made, self.published, place)
        elif (changes := self._changes()) is not None:
            merging.replace_made(changes, self.published, place, self.identity)
        return accounting.merged(self.run.lake.load(self.identifiers[1]), start, branch)

    def _inside(self) -> Expression:
        """Return whether a whole row is published: a condition that is neither true nor false publishes nothing."""
        where = self.plan.where
        return F.lit(True) if where is None else F.coalesce(computed(where, self._columns()), F.lit(False))

    def _made(self) -> dict[str, Expression]:
        """Return the cells of a published row, by today's names."""
        cells = {name: F.col(quoted(name)) for name in self._stored}
        return cells | {name: computed(term, self._columns()) for name, term in self.plan.derived.items()}

    def _columns(self) -> Mapping[str, Expression]:
        return {column.name: F.col(quoted(column.name)) for column in self.plan.columns}

    def _changes(self) -> DataFrame | None:
        """Return each row that the cut may change, with ``merging.INSIDE``; None where the cut changed no file."""
        table = self.run.lake.load(self.identifiers[0])
        files = changed_files.between(table, head(table), head(table, self.run.cut.branch))
        if not files:
            return None
        types = self.run.session.table(self.run.lake.spark_name(self.identifiers[0], self.run.cut.branch)).schema
        ids = {field.name: field.field_id for field in table.schema().fields}
        own = {name: f"c{number}" for number, name in enumerate(self._stored)}  # a column may be called `side`
        columns = [(ids[stored], StructField(own[n], types[stored].dataType)) for n, stored in self._stored.items()]
        rows = rows_of(self.run.session, changed_files.file_system(table), files, columns)
        identity = [F.col(own[name]).alias(f"i{place}") for place, name in enumerate(self.identity)]
        came = F.first(F.when(F.col(SIDE) > 0, F.struct(*own.values())), ignorenulls=True).alias("row")
        changed = rows.groupBy(*identity).agg(came)
        values = [F.col(f"i{self.identity.index(n)}" if n in self.identity else f"row.{own[n]}").alias(n) for n in own]
        there = F.col("row").isNotNull().alias(merging.THERE)
        rows = changed.select(*values, there)
        inside = (F.col(quoted(merging.THERE)) & self._inside()).alias(merging.INSIDE)
        return rows.select(*(cell.alias(name) for name, cell in self._made().items()), inside)
