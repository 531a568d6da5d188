"""Changes of a key that come as a DELETE and an INSERT at one place of the log, as Debezium writes them.

Nothing in the two messages says that they belong together. Their place does (docs/adr/0031): the position without its
last two parts, and without where they were delivered. At a place with several rows, it shows which are a pair only
where the log counts the rows of an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And

from tidemark.events import Operation
from tidemark.lake import names
from tidemark.lake.filters import among, equals
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.properties import SOURCE_PROPERTY
from tidemark.positions import DELIVERY, identity, is_by_time
from tidemark.queries.row_events import Identity, RowEvents
from tidemark.queries.row_life import Key, Step
from tidemark.queries.row_life_scan import FIELDS, LogRow, log_rows
from tidemark.tables import eras

Spot = tuple[str, str | None]
"""A place of the log, and the transaction."""


class KeyMove(NamedTuple):
    """A change of a row's key that two events make."""

    key: Key
    """The other key."""
    later: bool
    """Whether the row had it afterwards."""
    lends: bool = False
    """Whether the row took over values that only the events of the key before have."""


class MovesFound(NamedTuple):
    """What was found of the events of one key."""

    pairs: Sequence[KeyMove] = ()
    unpaired: int = 0
    """Events that may be one half of a change of the key: which one is the other half is not known."""


def spot_of(position: str, transaction: str | None) -> Spot | None:
    """Return the place that both halves of a change of a key share; None where a position shows no such place.

    >>> spot_of("011.013.03120.~.010.011.015.~.017.010", "t"), spot_of("011.011.010.015.010", "t")
    (('011.013.03120', 't'), None)
    """
    if is_by_time(position):
        return ".".join(position.split(".")[:2]), transaction
    if DELIVERY not in position:
        return None
    return identity(position).rsplit(".", 2)[0], transaction


def of_row(events: RowEvents, each: Identity, steps: Iterable[Step]) -> MovesFound:
    """Return the changes of a row's key that two events make.

    Args:
        events: of the table.
        each: the row's key, with its era.
        steps: what the events of the era do to the row.
    """
    halves = [step for step in steps if step.operation in {Operation.DELETE, Operation.INSERT}]
    halves.sort(key=lambda step: step.position)
    own = {(step.file, step.place, step.row) for step in halves}
    spots = list(dict.fromkeys(spot for step in halves if (spot := _spot_of(step)) is not None))
    rows = _rows_at(events, each, spots) if spots else {}
    found, unpaired = list[KeyMove](), 0
    for spot in spots:
        mine = [row for row in rows.get(spot, ()) if (row.file, row.place, row.row) in own]
        for row in _each_once(mine):
            partner, is_known = partner_of(row, rows[spot])
            unpaired += not is_known
            if partner is None:
                continue
            keys = replace(events.reader, key=each.era.key).keys(partner)
            later = row.operation == Operation.DELETE
            lends = later and bool(partner.partial and partner.absent)
            found += [move for key in keys if (move := KeyMove(key, later, lends)) not in found]
            unpaired += not keys
    return MovesFound(found, unpaired)


def partner_of(row: LogRow, at_place: Iterable[LogRow]) -> tuple[LogRow | None, bool]:
    """Return the other half of a change of a key, and whether it is known which one that is, or that there is none.

    Args:
        row: a DELETE or an INSERT.
        at_place: those at its place, itself among them.
    """
    rows = _each_once(at_place)
    deletes = [each for each in rows if each.operation == Operation.DELETE]
    inserts = [each for each in rows if each.operation == Operation.INSERT]
    if row.operation == Operation.DELETE:
        own, others = deletes, [each for each in inserts if _order(each) > _order(row)]
    else:
        own, others = inserts, [each for each in deletes if _order(each) < _order(row)]
    if not others:
        return None, True
    if len(own) == 1 and len(others) == 1:
        return others[0], True
    of_entry = [each for each in others if DELIVERY in each.position and _entry(each) == _entry(row)]
    return (of_entry[0], True) if len(of_entry) == 1 else (None, False)


def _entry(row: LogRow) -> str:
    """Return the identity of an event without which half it is: in MySQL's log, the row of an entry."""
    return identity(row.position).rpartition(".")[0]


def _order(row: LogRow) -> tuple[object, ...]:
    """Return what orders events at one place by the log and the transaction."""
    place, has_delivery, behind = row.position.partition(DELIVERY)
    if not has_delivery:
        return (row.position,)
    return (place, behind.partition(".")[0], identity(row.position))


def _each_once(rows: Iterable[LogRow]) -> list[LogRow]:
    """Return events without their copies."""
    return list({(identity(row.position), row.before, row.after): row for row in rows}.values())


def _spot_of(row: Step) -> Spot | None:
    transaction = row.transaction.get("id") if row.transaction else None
    return spot_of(row.position, None if transaction is None else str(transaction))


def _rows_at(events: RowEvents, each: Identity, spots: Sequence[Spot]) -> Mapping[Spot, list[LogRow]]:
    """Return the DELETEs and INSERTs of a table at some places."""
    log = events.lake.load(names.change_log(events.table.properties[SOURCE_PROPERTY]))
    halves = And(equals("kind", RowKind.CHANGE), among("operation", [Operation.DELETE, Operation.INSERT]))
    scan = log.scan(row_filter=And(halves, eras.condition(each.era.segments)), selected_fields=FIELDS)
    found: dict[Spot, list[LogRow]] = {spot: [] for spot in spots}
    places = pa.array(sorted({place for place, _ in spots}))
    for batch in scan.to_arrow_batch_reader():
        near = pc.is_in(_places(batch), value_set=places)
        for row in log_rows(batch.filter(near)):
            spot = spot_of(row.position, row.transaction_id)
            if spot in found:
                found[spot].append(row)
    return found


def _places(batch: pa.RecordBatch) -> pa.Array:
    spots = (spot_of(position, None) for position in batch.column("position").to_pylist())
    return pa.array([None if spot is None else spot[0] for spot in spots], pa.string())
