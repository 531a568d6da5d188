"""A table that is being built: put on a branch where ``main`` stands, with the columns that its plan wants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import merging
from tidemark.compaction.event_log import EventLog
from tidemark.compaction.placing import place
from tidemark.compaction.run import Run
from tidemark.compaction.state import State
from tidemark.errors import IncompatibleSchemaError
from tidemark.folding import actions, frames
from tidemark.lake import names, pending_schema
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.properties import (
    KEPT_PROPERTIES,
    KEY_PROPERTY,
    NAMES_PROPERTY,
    OBJECT_PROPERTY,
    PARTS_PROPERTY,
    RULES_PROPERTY,
    SHARDS_EVER_PROPERTY,
    SHARDS_PROPERTY,
    SOURCE_PROPERTY,
    STATE_OF_PROPERTY,
    STATE_PROPERTIES,
    WHOLE_PROPERTIES,
)
from tidemark.lake.statistics import greatest
from tidemark.ledger.rows import Snapshots
from tidemark.tables import eras, schemas, shard_rules
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import POSITION
from tidemark.text import quoted
from tidemark.values.types import spark_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The table and its state on their branches, before anything is written to them."""

    run: Run
    plan: Plan
    table: Table
    """As it was before the cut, with the columns of the cut."""
    state: State

    @property
    def log(self) -> EventLog:
        """The change log of the table."""
        return EventLog(run=self.run, plan=self.plan)

    @property
    def branch(self) -> str:
        """Name of the candidate branch in Spark."""
        return self.run.lake.spark_name(self.plan.rows, self.run.cut.branch)

    @property
    def is_truncated(self) -> bool:
        """Whether a TRUNCATE, of this cut or of an earlier one, decides what events become."""
        found = self.plan.found
        return bool(found.truncates or found.history.emptyings or self.state.truncates)

    def current(self) -> Table:
        """Return the table as the catalog has it now."""
        return self.run.lake.load(self.plan.rows)

    def tip(self) -> int:
        """Return the snapshot that the candidate branch stands on."""
        return head(self.current(), self.run.cut.branch)

    def snapshots(self) -> Snapshots:
        """Return where the cut takes the table."""
        return Snapshots(head(self.table), self.tip())

    def stored(self) -> DataFrame:
        """Return the rows of the candidate, under the names that their columns will have when it is published."""
        return frames.of_today(self.run.read(self.plan.rows, self.run.cut.branch), self.plan)

    def stored_at(self, snapshot: int) -> DataFrame:
        """Return the rows of the candidate as they were at a snapshot, as ``stored``."""
        table = self.current()
        written = table.snapshot_by_id(snapshot)
        known = table.schemas()[written.schema_id] if written and written.schema_id is not None else table.schema()
        # Spark gives the names that columns had then: of a column that was renamed when the snapshot was published, the
        # old one.
        names = {field.field_id: field.name for field in known.fields}
        columns = [
            F.col(quoted(names[field.field_id])).alias(field.name)
            if field.field_id in names
            else F.lit(None).cast(spark_type(str(field.field_type))).alias(field.name)
            for field in table.schema().fields
        ]
        rows = self.run.at(self.plan.rows, snapshot)
        return frames.of_today(rows.select(*columns), self.plan)

    def is_below(self, oldest: str | None, snapshot: int) -> bool:
        """Return whether each row of a snapshot is older than all new events, as its files say.

        Args:
            oldest: no new event is older; None where that is not known.
            snapshot: of the table.
        """
        newest = greatest(self.current(), POSITION, snapshot)
        return oldest is not None and newest is not None and newest < oldest

    def has_names_of(self, snapshot: int) -> bool:
        """Return whether a snapshot was written under the names of today: Iceberg fails at a filter on another one."""
        table = self.current()
        written = table.snapshot_by_id(snapshot)
        return written is not None and written.schema_id == table.schema().schema_id

    def fill_defaults(self) -> None:
        """Give stored rows the defaults of columns that this cut's statements added; no event is delivered for them."""
        plan = self.plan
        for column, default in plan.new_defaults():
            older = self.stored().where(F.col(POSITION) < default.position)
            rows = older.select(*(frames.key_columns(plan) or [F.col(POSITION).alias("position")]))
            merging.fill(rows, plan, self.branch, {column.name: actions.default_value(plan, column, default.fill)})


def prepare(run: Run, plan: Plan) -> Prepared:
    """Put the branches of a table and its state where ``main`` stands, with the columns of the plan; without Spark.

    Raises:
        IncompatibleSchemaError: its state table is that of another table.
    """
    own = {**KEPT_PROPERTIES, STATE_OF_PROPERTY: str(plan.target)}
    state = run.lake.ensure(plan.state, schemas.state_schema(plan), own, partition_by=["kind"])
    _refuse_shared(run, plan, state)
    table = put_on_branch(run, plan)
    state = branch_from_main(schemas.widen_keys(state, plan), run.cut.branch)
    return Prepared(run=run, plan=plan, table=table, state=State.of(run, plan, state))


def _refuse_shared(run: Run, plan: Plan, state: Table) -> None:
    """Refuse a state table of another published table: each would take the other's deletes for its own."""
    owner = state.properties.get(STATE_OF_PROPERTY)
    if owner is None:  # an earlier version made it, for one of these
        owner = next((str(each) for each in names.with_same_state(plan.target) if run.lake.find(each)), None)
    if owner not in {None, str(plan.target)}:
        raise IncompatibleSchemaError(
            f"{plan.found.object} would be published as {plan.target} with the state table {plan.state}, which is that "
            f"of {owner}; give one of the two another name with `target:`"
        )


def put_on_branch(run: Run, plan: Plan) -> Table:
    """Put the branch of a table where ``main`` stands, with the columns and the properties of its plan."""
    lake, key = run.lake, {KEY_PROPERTY: json.dumps(plan.readers_key)}
    if plan.names_record is not None:
        key[NAMES_PROPERTY] = plan.names_record
    own = {OBJECT_PROPERTY: plan.found.object, SOURCE_PROPERTY: run.source.source}
    if plan.found.at_source.is_dotted and not plan.found.shards:
        own[PARTS_PROPERTY] = json.dumps(plan.found.at_source.parts)
    placed = eras.properties(plan)
    if plan.column_rules is not None:
        own[RULES_PROPERTY] = plan.column_rules
    if plan.found.shards:
        own[SHARDS_PROPERTY] = json.dumps({shard.object: dict(shard.added) for shard in plan.found.shards})
        own[SHARDS_EVER_PROPERTY] = json.dumps(sorted(shard.object for shard in plan.found.shards))
    where = None if plan.keeps_whole else place(run, plan)
    kept = WHOLE_PROPERTIES if plan.keeps_whole else STATE_PROPERTIES
    table = lake.ensure(plan.rows, schemas.table_schema(plan), {**kept, **key, **own, **placed}, location=where)
    if plan.column_rules not in {None, table.properties.get(RULES_PROPERTY)}:
        table = _with(table, {RULES_PROPERTY: plan.column_rules or "{}"})  # more masks than there are do no harm
    if own.get(SHARDS_PROPERTY) not in {None, table.properties.get(SHARDS_PROPERTY)}:
        table = _with(table, _shards(table, own))  # a shard that has no row yet does no harm
    table = schemas.evolve(table, plan)
    if not plan.today and plan.names_record not in {None, table.properties.get(NAMES_PROPERTY)}:
        table = _with(table, {NAMES_PROPERTY: plan.names_record or "{}"})
    if not plan.today and not placed.items() <= table.properties.items():
        table = _with(table, placed)  # of a table that no cut has published; later ones come with a rebuild
    table = pending_schema.plan_pending(table, run.cut.number, plan.today, {**key, **placed})
    return branch_from_main(schemas.soften(table) if plan.soft else table, run.cut.branch)


def _shards(table: Table, own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table about the tables that are folded into it, and about all that ever were."""
    found = {SHARDS_PROPERTY: own[SHARDS_PROPERTY]}
    before = shard_rules.ever_folded(table) if SHARDS_PROPERTY in table.properties else ()
    if before is not None:  # else it is not known
        found[SHARDS_EVER_PROPERTY] = json.dumps(sorted({*before, *json.loads(own[SHARDS_EVER_PROPERTY])}))
    return found


def _with(table: Table, properties: dict[str, str]) -> Table:
    with table.transaction() as transaction:
        transaction.set_properties(properties)
    return table
