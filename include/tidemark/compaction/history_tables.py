"""The table of a history: its branch and columns, whether it goes on from what is published, and what it records."""

from __future__ import annotations

import json
from dataclasses import replace

from tidemark.compaction.run import Run
from tidemark.lake import pending_schema
from tidemark.lake.branches import MARKER, branch_from_main, cut_tags, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.names import cut_tag
from tidemark.lake.properties import (
    KEY_PROPERTY,
    OBJECT_PROPERTY,
    RULES_PROPERTY,
    SOURCE_PROPERTY,
    STATE_PROPERTIES,
    WHOLE_PROPERTIES,
)
from tidemark.tables import schemas
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import IS_CURRENT

_TRACKING = "tracking"
"""Marker of a history: what the source file said of the columns that make versions."""

_EVERY = "every event"

_FANOUT = {"write.spark.fanout.enabled": "true"}  # a version that ends goes to the other partition


def records_tracking(run: Run, plan: Plan) -> bool:
    """Return whether the history of the plan records which columns make versions."""
    return marker(run.lake.load(plan.versions), _TRACKING) is not None


def record_tracking(run: Run, plan: Plan) -> None:
    """Record in the history of the plan, on the branch of the cut, which columns make versions."""
    history = run.lake.load(plan.versions)
    if plan.tracking is not None or marker(history, _TRACKING) is not None:
        summary = {MARKER + _TRACKING: plan.tracking or _EVERY}
        commit_files(history, [], summary=summary, branch=run.cut.branch)


def prepare(run: Run, plan: Plan, *, on: bool) -> Plan:
    """Put the branch of the history where ``main`` stands, and return the plan with what becomes of its columns.

    A history that does not go on (``on``) is made again with the names of today. If there is one already, its other
    columns go when the cut is published: the source file may leave one out because nobody may read it.
    """
    key = {KEY_PROPERTY: json.dumps(plan.readers_key)}
    own = {OBJECT_PROPERTY: plan.found.object, SOURCE_PROPERTY: run.source.source}
    properties = WHOLE_PROPERTIES if plan.keeps_whole else STATE_PROPERTIES
    rules = {RULES_PROPERTY: plan.column_rules} if plan.column_rules is not None else {}
    schema = schemas.history_schema(plan)
    made_with = {**properties, **_FANOUT, **key, **own, **rules}
    table = run.lake.ensure(plan.versions, schema, made_with, partition_by=[IS_CURRENT])
    if on and not rules.items() <= table.properties.items():  # its versions have the masks of the table
        with table.transaction() as transaction:
            transaction.set_properties(rules)
    if not on:
        others = set(table.schema().column_names).difference(schema.column_names)
        plan = replace(plan, today=dict.fromkeys(sorted(others)))
    table = schemas.evolve(table, plan)
    branch_from_main(pending_schema.plan_pending(table, run.cut.number, plan.today, key), run.cut.branch)
    return plan


def goes_on(run: Run, plan: Plan) -> bool:
    """Return whether a history was published with the table's last cut, and by the same rule for tracked columns.

    If there was none, nobody asked for it then. Where a tracked column goes, versions that only it told apart are one.
    """
    if plan.found.positions[0]:
        return True
    history = run.lake.find(plan.versions)
    published = cut_tags(run.lake.load(plan.rows))
    kept = history is not None and bool(published) and cut_tag(published[-1]) in history.refs()
    likewise = (marker(history, _TRACKING) or _EVERY) == (plan.tracking or _EVERY)
    return kept and likewise and (plan.tracked is None or not set(plan.leaving) - plan.begun.keys())
