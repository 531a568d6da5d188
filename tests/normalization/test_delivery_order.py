"""What the order of delivery shows of positions: a log that begins anew."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest

from tidemark.lake.log_schemas import CHANGE_LOG, RAW
from tidemark.ledger.tally import Span
from tidemark.normalization.delivery_order import DeliveryOrder, Logs
from tidemark.positions import Position, changed, encode_position, loaded


class Told(NamedTuple):
    """An event as it is delivered."""

    position: Position
    at: int | None
    partition: int | None = None
    """None: it comes in a file."""
    file: str = "a"


def _seen(events: Sequence[Told], cuts: Sequence[int] = ()) -> int | None:
    """When the log began anew; in one batch, or in several that are cut before these events."""
    order, found = DeliveryOrder(), Span()
    for begin, end in itertools.pairwise([0, *cuts, len(events)]):
        _follow(order, events[begin:end])
    for _, turn in order.turns():
        found.add(turn)
    return found.back


def _follow(order: DeliveryOrder, events: Sequence[Told]) -> None:
    raw = [
        {"file": each.file, "place": place, "topic": "t", "partition": each.partition, "offset": place}
        if each.partition is not None
        else {"file": each.file, "place": place}
        for place, each in enumerate(events)
    ]
    rows = [{"position": encode_position(each.position), "committed_at": each.at, "file": each.file} for each in events]
    log = pa.RecordBatch.from_pylist(rows, schema=CHANGE_LOG)
    order.follow("t", log, Logs(pa.RecordBatch.from_pylist(raw, schema=RAW)), range(len(events)))


def _change(place: int, at: int | None, partition: int | None = None, *, of: int = 3, file: str = "a") -> Told:
    return Told(changed(of, place), at, partition, file)


def _loaded(at: int | None, partition: int | None = None, file: str = "a") -> Told:
    return Told(loaded(7), at, partition, file)


CASES: dict[str, tuple[list[Told], int | None]] = {
    "a_log": ([_change(1, 1), _change(2, 2), _change(3, 2)], None),
    "sent_again": ([_change(1, 1), _change(2, 2), _change(1, 1), _change(2, 2), _change(3, 3)], None),
    "sent_again_behind_a_long_statement": ([_change(1, 5), _change(2, 1), _change(1, 5)], None),
    "a_new_log": ([_change(1, 1, of=9), _change(1, 2), _change(2, 3)], 2),
    "a_new_log_in_another_file": ([_change(1, 1, of=9), _change(1, 2, file="b")], 2),
    "partitions_that_are_not_equally_far": (
        [_change(8, 8, 0), _change(9, 1, 0), _change(2, 2, 1), _change(3, 3, 1)],
        None,
    ),
    "a_new_log_in_one_partition": ([_change(8, 8, 0, of=9), _change(1, 9, 1), _change(1, 10, 0)], 10),
    "a_new_log_in_two_partitions": (
        [_change(8, 8, 0, of=9), _change(8, 8, 1, of=9), _change(1, 10, 0), _change(1, 12, 1)],
        10,
    ),
    "a_new_log_in_two_partitions_the_later_one_first": (
        [_change(8, 8, 0, of=9), _change(8, 8, 1, of=9), _change(1, 12, 0), _change(1, 10, 1)],
        10,
    ),
    "a_new_log_and_then_the_old_one": ([_change(1, 1, of=9), _change(1, 4), _change(2, 1, of=9)], None),
    "a_new_log_that_is_sent_again": (
        [_change(1, 1, of=9), _change(1, 4), _change(2, 3), _change(1, 4), _change(2, 3)],
        3,
    ),
    "times_that_go_to_and_fro_in_disorder": (
        [_change(4, 2), _change(2, 3), _change(3, 1), _change(1, 4), _change(5, 2)],
        None,
    ),
    "a_time_that_is_not_known_behind_a_turn": ([_change(1, 1, of=9), _change(1, 2), _change(2, None)], None),
    "events_without_times": ([_change(2, None), _change(1, None)], None),
    "a_load_and_changes": ([_loaded(5), _loaded(6), _change(1, 3)], None),
    "a_load_behind_changes": ([_loaded(1), _change(1, 3), _loaded(4), _loaded(5)], None),
    "a_load_in_another_file": ([_change(1, 3), _loaded(4, file="b")], None),
    "a_load_in_another_partition": ([_change(1, 3, 0), _loaded(4, 1)], None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_order_of_delivery_tells(name: str) -> None:
    """Wherever the messages are cut into batches of the task."""
    events, expected = CASES[name]
    places = range(1, len(events))
    for cuts in itertools.chain.from_iterable(itertools.combinations(places, count) for count in range(len(events))):
        assert _seen(events, cuts) == expected, cuts
