"""The order in which changes of a table are delivered, beside their positions.

A log goes on: what is delivered behind a change has a higher position, or was sent again. A change with a lower
position shows that the log began anew, if it and all changes behind it are later than all changes before it.

In PostgreSQL, transactions are delivered in the order of their commits, and a change lies anywhere before its own. So a
lower position proves nothing. There a change carries the last commit before its own (``ChangeEvent.after_commit``),
which lies above all changes of all transactions that were delivered before the change. Otherwise the change is of
another log.

Partitions of Kafka are delivered each for itself, and connectors read each a log of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.ledger.tally import Span, is_placed
from tidemark.positions import is_by_time

_IN_FILES = ""
"""The log of messages that are no records of Kafka."""

_NEVER = int(np.iinfo(np.int64).min)
"""In place of a time that is not known."""

_ODD = pa.array(list("13579"))

Which = np.ndarray[Any, np.dtype[np.bool_]]
"""For each row, whether something holds."""

Times = np.ndarray[Any, np.dtype[np.int64]]
"""Epoch µs."""

Ranks = np.ndarray[Any, np.dtype[np.int64]]
"""Of places, in the order of the log."""


class Logs:
    """The partitions that the messages of one batch of ``raw`` are of."""

    def __init__(self, raw: pa.RecordBatch) -> None:
        records = pa.Table.from_batches([raw.select(["topic", "partition", "offset"])])
        self._of_message: pa.Array | None = None
        if records["offset"].null_count == len(records):
            self._names = [_IN_FILES]
            return
        names = pc.binary_join_element_wise(
            pc.fill_null(records["topic"], _IN_FILES), records["partition"].cast(pa.string()), "/"
        )
        names = pc.fill_null(names, _IN_FILES).combine_chunks().dictionary_encode()
        self._names = names.dictionary.to_pylist()
        if len(self._names) > 1:
            self._of_message = names.indices

    def parts(self, rows: pa.RecordBatch, indexes: Sequence[int]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each partition; ``indexes`` are the indexes of their messages."""
        if self._of_message is None:
            yield self._names[0], rows
            return
        logs = self._of_message.take(pa.array(indexes, pa.int32()))
        for number in pc.unique(logs).to_pylist():
            yield self._names[number], rows.filter(pc.equal(logs, number))


class _Turn(msgspec.Struct):
    """Where a log may have begun anew. It did not if a change follows that is no later than the changes before it."""

    ended: int
    """Latest commit time before it, epoch µs."""
    began: int
    """Earliest commit time from it on."""
    position: str
    """Of the first change from it on."""


class _Reached(msgspec.Struct):
    """How far the changes of one table have come in one partition, or in all files."""

    newest: str = ""
    """Their highest position; where they carry commits, the highest place of a change."""
    last: int = _NEVER
    """Their latest commit time, epoch µs."""
    turn: _Turn | None = None


class DeliveryOrder:
    """Follows the changes of all tables through one batch, as one task sees them."""

    def __init__(self) -> None:
        self._reached: dict[tuple[str, str], _Reached] = {}
        self._by_commits: dict[tuple[str, str, str], _Reached] = {}

    def follow(self, table: str, rows: pa.RecordBatch, logs: Logs, indexes: Sequence[int]) -> None:
        """Go on through the next change events of a table.

        Args:
            table: as source files name it.
            rows: what ``spans.delivered`` returns.
            logs: of the messages.
            indexes: of the message of each row.
        """
        for log, part in logs.parts(rows, indexes):
            if "commit" in part.schema.names:
                for reader in pc.unique(part.column("reader").drop_null()).to_pylist():
                    read = part.filter(pc.equal(part.column("reader"), reader))
                    _follow_commits(read, self._by_commits.setdefault((table, log, reader), _Reached()))
            if "commit" not in part.schema.names or (table, log) in self._reached or part.column("reader").null_count:
                _follow(part, self._reached.setdefault((table, log), _Reached()))

    def turns(self) -> Iterator[tuple[str, Span]]:
        """Yield where the logs of tables began anew, after all changes were seen.

        A table whose changes carry commits is judged by these alone, because its positions do not rise with them; but
        where changes before them are ordered by their time, positions of two kinds tell.
        """
        telling = {table for table, *_ in self._by_commits}
        by_positions = [
            (table, reached)
            for (table, _), reached in self._reached.items()
            if table not in telling or is_by_time(reached.newest)
        ]
        by_commits = [(table, reached) for (table, *_), reached in self._by_commits.items()]
        for table, reached in [*by_positions, *by_commits]:
            if reached.turn is not None:
                yield table, Span(back=reached.turn.began, back_to=reached.turn.position)


def _follow(rows: pa.RecordBatch, reached: _Reached) -> None:
    """Go on through rows."""
    positions = pc.fill_null(rows.column("position"), "")
    times = pc.fill_null(rows.column("committed_at").cast(pa.int64()), _NEVER).to_numpy()
    placed = _placed(positions)
    _settle(times[placed], reached)
    if placed.all() and positions[0].as_py() >= reached.newest and _rise(positions):
        reached.newest, reached.last = positions[-1].as_py(), max(reached.last, int(times.max()))
    elif placed.any():
        positions = positions.filter(pa.array(placed))
        _turn(_Places(positions, positions, positions), times[placed], reached)


def _follow_commits(rows: pa.RecordBatch, reached: _Reached) -> None:
    """Go on through rows that carry the last commit before their own, all from one reader of the log."""
    times = pc.fill_null(rows.column("committed_at").cast(pa.int64()), _NEVER).to_numpy()
    _settle(times, reached)
    places = _Places(rows.column("commit"), rows.column("change"), rows.column("position"))
    _turn(places, times, reached, late=True)


def _settle(times: Times, reached: _Reached) -> None:
    """Forget a turn if one of the changes behind it is no later than those before it; count the earliest of them."""
    if len(times) and reached.turn is not None:
        reached.turn.began = min(reached.turn.began, int(times.min()))
        if reached.turn.began <= reached.turn.ended:
            reached.turn = None


class _Places(NamedTuple):
    """Where changes stand in a log, in the order of their delivery; all texts sort as the places do."""

    begin: pa.Array
    """What must not lie below the end of a change that was delivered before it."""
    end: pa.Array
    position: pa.Array


def _turn(places: _Places, times: Times, reached: _Reached, *, late: bool = False) -> None:
    """Go on through changes that are not in order; note where the log begins anew.

    Args:
        places: of the changes.
        times: of the changes.
        reached: what is known of the changes before.
        late: whether the first change of a new log may lie above, and only a later one below. So it is with commits:
            the first transaction of a new log carries a commit of the old log, which the connector remembers.
    """
    count = len(times)
    texts = pa.concat_arrays([pa.array([reached.newest]), places.begin, places.end])
    ranks = pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)
    begins, ends = ranks[1 : count + 1], np.concatenate([ranks[:1], ranks[count + 1 :]])
    highest = np.maximum.accumulate(ends)
    latest = np.maximum.accumulate(np.concatenate([[reached.last], times]))
    earliest = np.minimum.accumulate(times[::-1])[::-1]
    parted = (latest[:-1] != _NEVER) & (earliest > latest[:-1])
    lowest = np.minimum.accumulate(begins[::-1])[::-1] if late else begins
    if reached.turn is None and (parted & (lowest < highest[:-1])).any():
        first = _first_of_new(begins, ends, np.flatnonzero(parted))
        if first is not None:
            reached.turn = _Turn(int(latest[first]), int(earliest[first]), places.position[first].as_py())
    if highest[-1] > ends[0]:
        reached.newest = places.end[int(np.argmax(ends[1:]))].as_py()
    reached.last = int(latest[-1])


def _first_of_new(begins: Ranks, ends: Ranks, parted: Ranks) -> int | None:
    """Return the index of the first change of a new log; None if no place that parts the changes by time tells one.

    A change that begins below the end of an earlier one is of another log than that. The new log begins behind the last
    such end, where the times part: what comes between them ends below the change, as in one log.

    Args:
        begins: of the changes.
        ends: of what was before them, then of the changes.
        parted: indexes at which all changes on are later than all before.
    """
    for index in np.flatnonzero(begins < np.maximum.accumulate(ends)[:-1]):
        behind = np.flatnonzero(ends[: index + 1] > begins[index])[-1]  # one more than its index
        found = int(np.searchsorted(parted, behind))
        if found < len(parted) and parted[found] <= index:
            return int(parted[found])
    return None


def _rise(positions: pa.Array) -> bool:
    return bool(pc.all(pc.less_equal(positions[:-1], positions[1:])).as_py())


def _placed(positions: pa.Array) -> Which:
    """Return which positions are places in the log (``tally.is_placed``); mostly they begin with the same part."""
    ends = pc.min_max(positions).as_py()
    if ends["min"].partition(".")[0] == ends["max"].partition(".")[0]:
        return np.full(len(positions), is_placed(ends["min"]))
    first = pc.list_element(pc.split_pattern(positions, ".", max_splits=1), 0)
    return np.asarray(pc.is_in(pc.utf8_slice_codeunits(first, -1), value_set=_ODD))
