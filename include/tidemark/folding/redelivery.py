"""Finds copies among the changes at one place of the log by their order, where contents alone do not show them.

Plain Python, without Spark: workers run it over the few places in question. A place is in question if equal changes
and different changes stand at it. There are two reasons for equal ones:

- a transaction made several, for example two INSERTs of the same row into a table without a key;
- a connector that was restarted sent changes again.

A connector sends all changes of a place in the order of the log, and after a restart again from the first. So what was
delivered is cut into runs. Each run repeats the beginning of the place's changes. A change occurs as often as in the
run that has it most often; every further one is a copy. A new run begins

- where the number in the transaction does not rise, if the changes have numbers;
- else behind a gap in the delivery, if what follows is the beginning of what was there before;
- else where the whole of what was there, at least two different changes, follows once more.

The last rule is a guess, as a transaction may have made the same changes twice. ``Judged.is_guess`` says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from tidemark.positions import DELIVERY, DELIVERY_END

JUDGED = pa.schema([("position", pa.string()), ("judged_copy", pa.bool_()), ("judged_guess", pa.bool_())])
"""One row for each change in question: its position, and what became of it."""

_NO_NUMBER = "010"
"""The encoded number 0."""


class PlacedChange(NamedTuple):
    """A change at the place: its encoded position, and a hash of what it says."""

    position: str
    content: int


class Judged(NamedTuple):
    """What became of a change."""

    is_copy: bool
    is_guess: bool
    """Whether only the contents show that it is a copy."""


class _Sent(NamedTuple):
    """A change as it was delivered."""

    nth: int
    what: tuple[str, int]
    """What the copies of the change have in common."""
    number: str
    """Its encoded number in the transaction."""
    stream: str
    """The part of the dump whose order is known: a Kafka partition, or all files."""
    file: str
    place: int


Run = list[_Sent]


def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield for each place a batch of ``JUDGED``.

    Args:
        batches: places of the log, encoded positions, and hashes of what the changes say; sorted by place.
    """
    rows = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    for _, of_place in groupby(rows, key=lambda row: row[0]):
        changes = [PlacedChange(position, content) for _, position, content in of_place]
        columns = zip(
            *((change.position, *said) for change, said in zip(changes, judge(changes), strict=True)), strict=True
        )
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, JUDGED, strict=True)], schema=JUDGED
        )


def judge(changes: Sequence[PlacedChange]) -> list[Judged]:
    """Return what became of each change.

    Args:
        changes: all changes at one place of the log, each position once, in any order.
    """
    sent = sorted(map(_sent, range(len(changes)), changes), key=lambda one: (one.stream, one.file, one.place))
    groups = _numbered(sent) if sent and all(one.number != _NO_NUMBER for one in sent) else _unnumbered(sent)
    verdicts = [Judged(is_copy=False, is_guess=False)] * len(changes)
    for runs in groups:
        known: Counter[tuple[str, int]] = Counter()
        for run, is_guess in runs:
            found: Counter[tuple[str, int]] = Counter()
            for one in run:
                found[one.what] += 1
                is_copy = found[one.what] <= known[one.what]
                verdicts[one.nth] = Judged(is_copy, is_guess and is_copy)
            known |= found
    return verdicts


def _sent(nth: int, change: PlacedChange) -> _Sent:
    _, _, behind = change.position.partition(DELIVERY)
    delivery, _, rest = behind.rpartition(DELIVERY_END)
    number, kind, *order, place = delivery.split(".")
    # Kafka: its partition. Files: the interval and the file, whose texts sort in the order of the dump.
    where = ".".join(order)
    in_kafka = kind != _NO_NUMBER
    return _Sent(
        nth, (rest, change.content), number, where if in_kafka else "", "" if in_kafka else where, int(place[2:])
    )


Runs = list[tuple[Run, bool]]
"""Runs of one stream, each with whether it is a guess from contents alone."""


def _numbered(sent: Run) -> list[Runs]:
    """Return the runs of changes that have numbers in their transaction."""
    if len({one.stream for one in sent}) > 1:
        # Nothing orders the streams. The number itself says which changes are the same.
        by_number: dict[object, Runs] = defaultdict(list)
        for one in sent:
            by_number[one.number, one.what].append(([one], False))
        return list(by_number.values())
    runs: Runs = []
    for one in sent:
        if not runs or (len(one.number), one.number) <= (len(runs[-1][0][-1].number), runs[-1][0][-1].number):
            runs.append(([], False))
        runs[-1][0].append(one)
    return [runs]


def _unnumbered(sent: Run) -> list[Runs]:
    by_stream: dict[str, Run] = defaultdict(list)
    for one in sent:
        by_stream[one.stream].append(one)
    streams = [_runs(stream) for stream in by_stream.values()]
    if len({one.what for one in sent}) > 1:
        return streams
    # Equal changes alone, over several streams: what was sent again may come in another one.
    return [[run for runs in streams for run in runs]]


def _runs(sent: Run) -> Runs:
    """Return the runs of one stream."""
    longest: Run = []
    runs: Runs = []
    for piece, is_guess in _pieces(sent):
        if not runs:
            runs.append((piece, False))
            longest = piece
            continue
        current = runs[-1][0]
        if current is not longest and _is_beginning([*current, *piece], longest):
            current += piece
        elif _is_beginning(piece, longest):
            runs.append(([*piece], is_guess))
        elif _is_beginning(longest, piece) and _differ(longest):
            runs.append((piece, is_guess))
            longest = piece
        else:
            current += piece
            longest = longest if len(longest) > len(current) else current
    return runs


def _pieces(sent: Run) -> Runs:
    """Return what was delivered without a gap, cut also where all of it follows once more."""
    pieces: list[Run] = []
    for one in sent:
        if not pieces or _is_gap(pieces[-1][-1], one):
            pieces.append([])
        pieces[-1].append(one)
    return [part for piece in pieces for part in _repeated(piece)]


def _is_gap(earlier: _Sent, later: _Sent) -> bool:
    """Return whether anything else was delivered between two changes.

    Entries of MySQL's log hold numbered rows of several tables, which may share a file. Such a gap says nothing there.
    """
    if later.what[0] and not later.stream:
        return False
    return (earlier.file, earlier.place + 1) != (later.file, later.place)


def _repeated(piece: Run) -> Runs:
    parts: Runs = []
    is_guess = False
    while True:
        whats = [one.what for one in piece]
        matches = _matches(whats)
        different = next((place for place, what in enumerate(whats) if what != whats[0]), len(whats))
        cut = next((place for place in range(different + 1, len(piece)) if matches[place] >= place), None)
        if cut is None:
            return [*parts, (piece, is_guess)]
        for start in range(0, matches[cut] // cut * cut, cut):
            parts.append((piece[start : start + cut], is_guess))
            is_guess = True
        piece = piece[matches[cut] // cut * cut :]


def _matches(whats: Sequence[object]) -> list[int]:
    """Return for each place how many changes from there on are the first ones again (the Z function)."""
    matches = [0] * len(whats)
    left = right = 0
    for place in range(1, len(whats)):
        if place < right:
            matches[place] = min(right - place, matches[place - left])
        while place + matches[place] < len(whats) and whats[matches[place]] == whats[place + matches[place]]:
            matches[place] += 1
        if place + matches[place] > right:
            left, right = place, place + matches[place]
    return matches


def _is_beginning(some: Run, all_: Run) -> bool:
    return len(some) <= len(all_) and all(one.what == other.what for one, other in zip(some, all_, strict=False))


def _differ(run: Run) -> bool:
    return any(one.what != run[0].what for one in run)
