"""Which name and which key of a table hold at which place of the log, as its properties record (docs/adr/0044).

Compact writes the properties for the table as it was built. So whoever reads the events of a published table reads the
events that it was folded from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyiceberg.expressions import And, BooleanExpression, Or
from pyiceberg.table import Table
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.lineages import Segment
from tidemark.lake.filters import at_least, below, equals
from tidemark.lake.properties import ERAS_PROPERTY, OBJECT_PROPERTY, SEGMENTS_PROPERTY
from tidemark.tables.plan import Found, KeyEra, Plan
from tidemark.tables.schemas import key_of


class Era(NamedTuple):
    """The events of a table from the time in which one key held."""

    key: tuple[str, ...]
    """Empty: the table had no key."""
    segments: tuple[Segment, ...]
    """The names that they came under, in the order of the log."""


def of_table(table: Table) -> list[Era]:
    """Return the eras of a published table, in the order of the log; the last has the key that the table has now."""
    segments, eras = segments_of(table), _recorded(table)
    ends = [*(era.begins for era in eras[1:]), None]
    keys = [*(era.key for era in eras[:-1]), tuple(key_of(table))]
    begins = [era.begins for era in eras] or [""]
    spans = zip(keys, begins, ends or [None], strict=True)
    return [Era(key, tuple(_within(segments, first, end))) for key, first, end in spans]


def segments_of(table: Table) -> tuple[Segment, ...]:
    """Return the names that the events of a published table came under; of most tables it is one, all along."""
    entries = json.loads(table.properties.get(SEGMENTS_PROPERTY, "[]"))
    return tuple(Segment(*each) for each in entries) or (Segment(table.properties[OBJECT_PROPERTY], "", None),)


def names_of(segments: Iterable[Segment]) -> list[str]:
    """Return the names of segments, each once."""
    return list(dict.fromkeys(segment.object for segment in segments))


def keyed_since(table: Table | None) -> str:
    """Return the position from which on a table has its key; empty if it has had this key always."""
    eras = _recorded(table) if table is not None else []
    return eras[-1].begins if eras else ""


def properties(plan: Plan) -> dict[str, str]:
    """Return the properties of a table that say which names and keys its events have."""
    found, known = plan.found, plan.found.published
    eras = found.eras or (_recorded(known) if found.goes_on and known is not None else ())
    stored = known.properties if known is not None else {}
    segments = json.dumps(found.segments)
    if found.goes_on:  # the rows that are there came under these names
        segments = stored.get(SEGMENTS_PROPERTY, segments)
    texts = {ERAS_PROPERTY: _eras_text(eras, plan.today), SEGMENTS_PROPERTY: segments}
    return {name: text for name, text in texts.items() if text != "[]" or name in stored}


def _eras_text(eras: Iterable[KeyEra], today: Mapping[str, str | None]) -> str:
    return json.dumps([[[today.get(name) or name for name in era.key], era.begins] for era in eras])


def _recorded(table: Table) -> list[KeyEra]:
    return [KeyEra(tuple(key), begins) for key, begins in json.loads(table.properties.get(ERAS_PROPERTY, "[]"))]


def _within(segments: Iterable[Segment], first: str, end: str | None) -> Iterator[Segment]:
    """Yield the parts of segments from a position on, before another one."""
    for segment in segments:
        begins = max(segment.begins, first)
        ends = min((each for each in (segment.ends, end) if each is not None), default=None)
        if ends is None or begins < ends:
            yield Segment(segment.object, begins, ends)


def condition(segments: Sequence[Segment]) -> BooleanExpression:
    """Return the condition that a row of the change log is of these segments."""
    each = []
    for segment in segments:
        one: BooleanExpression = equals("object", segment.object)
        if segment.begins:
            one = And(one, at_least("position", segment.begins))
        each.append(one if segment.ends is None else And(one, below("position", segment.ends)))
    return reduce(Or, each)


def are_of(found: Found) -> Column:
    """Return whether rows of the change log are of a table, by the names that they came under."""
    return are_within(found.segments) if found.segments else F.col("object").isin(*found.objects)


def are_within(segments: Sequence[Segment]) -> Column:
    """Return whether rows of the change log are of these segments."""
    position, always = F.col("position"), F.lit(True)
    return reduce(
        or_,
        [
            (F.col("object") == each.object)
            & (position >= each.begins)
            & (always if each.ends is None else position < each.ends)
            for each in segments
        ],
    )
