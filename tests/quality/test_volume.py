"""The number of events of a table is compared with its own past."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidemark.ledger.rows import TableRow
from tidemark.quality.volume import VOLUME, UsualVolume, invariants_of, usual
from tidemark.sources.choices import Consequence, Severity


def _row(
    cut: int, events: int, *, table: str = "shop.t", state: str = "published", rebuilt: str | None = None
) -> TableRow:
    return TableRow(cut=cut, object=table, state=state, batch=cut, events=events, rebuilt=rebuilt)


@pytest.mark.parametrize(
    ("past", "band"),
    [
        ([], None),
        ([100] * 9, None),
        ([100] * 10, UsualVolume(24, 403)),
        ([100] * 9 + [100_000], UsualVolume(24, 403)),
        ([90, 95, 100, 100, 105, 110, 98, 102, 97, 103], UsualVolume(24, 403)),
        ([0] * 10, UsualVolume(0, 3)),
        # Ups and downs of every day widen the band, up to a factor of a hundred.
        ([10, 1000] * 5, UsualVolume(0, 10492)),
    ],
)
def test_what_is_usual(past: list[int], band: UsualVolume | None) -> None:
    """Ten cuts are enough; one that was far off moves nothing; the band is a factor of four at least."""
    assert usual(past) == band


def test_far_more_and_far_fewer_events_are_told() -> None:
    """The invariant holds the number and the band; what was rebuilt, not published, or came later does not count.

    Nor do erasures: a list of erased rows has a cut for each of them.
    """
    past = [_row(cut, 100) for cut in range(1, 11)]
    noise = [
        _row(11, 9000, state="stopped"),
        _row(12, 9000, rebuilt="asked"),
        _row(40, 9000),
        _row(1, 7, table="shop.o"),
    ]
    for events, holds in ((100, True), (24, True), (23, False), (403, True), (404, False)):
        found = invariants_of([_row(20, events, state="candidate")], [*past, *noise], Consequence.WARN)
        invariant = found["shop.t"][VOLUME]
        assert invariant.minimum is not None
        assert invariant.maximum is not None
        assert (invariant.minimum <= invariant.value <= invariant.maximum, invariant.severity) == (holds, Severity.WARN)
    moved: dict[str, Any] = {"held": 2, "target": "inn.t", "snapshot": 9}
    erasures = [msgspec.structs.replace(_row(cut, 3 - cut % 2), erased=1 - cut % 2, **moved) for cut in range(11, 30)]
    assert invariants_of([_row(30, 5)], [*past, *erasures], Consequence.WARN) == invariants_of(
        [_row(30, 5)], past, Consequence.WARN
    )
    new = [_row(20, 5, table="shop.o", state="candidate"), _row(20, 5, state="candidate", rebuilt="asked")]
    assert invariants_of(new, [*past, *noise], Consequence.BLOCK) == {}
    assert invariants_of([_row(20, 1, state="candidate")], past, Consequence.OFF) == {}
    (blocked,) = invariants_of([_row(20, 1, state="candidate")], past, Consequence.BLOCK).values()
    assert blocked[VOLUME].severity is Severity.BLOCK
