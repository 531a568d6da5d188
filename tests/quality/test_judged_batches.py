"""Which messages a cut is judged by: those of its new batches, and of batches that were derived again; without Spark.

The cuts are written by hand, as compact writes them, and have no tables: what is judged is the messages alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.histories import deliver
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts, reprocessings
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

Make = Callable[..., Source]

ORDER = {"type": "INSERT", "database": "shop", "isDdl": False, "mysqlType": {"id": "int"}, "pkNames": ["id"],
         "old": None, "es": 1767225600000}  # fmt: skip


def _named(number: int) -> bytes:
    return json.dumps({**ORDER, "table": "orders", "data": [{"id": str(number)}]}).encode()


def _nameless(number: int) -> bytes:
    return json.dumps({**ORDER, "data": [{"id": str(number)}]}).encode()


class _Shop:
    """A source whose cuts a test writes: each batch is normalized, no table is built."""

    def __init__(self, source: Source, lake: Lake) -> None:
        self.source, self.lake, self.ledger = source, lake, Ledger(lake, source.source)

    def named(self) -> Source:
        """Return the source with an option that says which table messages without one belong to."""
        return Source.model_validate({**self.source.model_dump(by_alias=True), "options": {"table": "shop.orders"}})

    def land(self, name: str, lines: Sequence[bytes], source: Source | None = None) -> None:
        deliver(Path(self.source.landing).parent, name, lines)
        for stage in ("land", "normalize"):
            run_stage(stage, source or self.source, None, None)

    def normalize_again(self, source: Source, **interval: Any) -> None:
        run_stage("normalize", source, interval.get("start"), interval.get("end"), reprocess=True)

    def build(self, number: int, state: CutState = CutState.CANDIDATE) -> CutRow:
        """Write the cut that compact would build now."""
        batch = max(row.batch for row in self.ledger.batches())
        newest = reprocessings.newest(self.ledger) or None
        cut = CutRow(cut=number, state=state, batch=batch, reprocessed=newest)
        self.ledger.replace(CutRow, [cut], equals("cut", number))
        return cut

    def judge(self, number: int, source: Source | None = None) -> tuple[str, ...]:
        """Build a cut and judge it."""
        self.build(number)
        return self.check(source)

    def check(self, source: Source | None = None) -> tuple[str, ...]:
        """Return what check holds the newest cut for, without the words of the approval."""
        report = run_stage("check", source or self.source, None, None)
        return tuple(text for text in report.problems if "of messages" not in text and "cannot be read" in text)

    def publish(self, number: int) -> None:
        """Publish a cut that a person approved, or that passed."""
        cut = next(row for row in self.ledger.cuts() if row.cut == number)
        cuts.publish(self.lake, self.ledger, cut)


@pytest.fixture
def shop(source: Make, lake: Lake) -> _Shop:
    """Return a source without any batch."""
    return _Shop(source("canal_json"), lake)


def test_messages_that_no_longer_decode_hold_the_cut(shop: _Shop) -> None:
    """However long ago they were published, and once: a person who approved the cut is not asked again."""
    named = shop.named()
    for batch in (1, 2):
        first = 100 * batch
        sound, nameless = range(first, first + 12), range(first + 12, first + 20)
        shop.land(str(batch), [*map(_named, sound), *map(_nameless, nameless)], named)
    assert shop.judge(1, named) == ()
    shop.publish(1)
    shop.normalize_again(shop.source)
    (problem,) = shop.judge(2)
    assert problem.startswith(
        f"16 of 40 messages of {shop.source.source} that were derived again cannot be read (allowed: 9). One is "
    )
    # A cut that was held is built again by the next run, with what landed since.
    shop.land("3", [_named(number) for number in range(300, 700)])
    assert shop.judge(2) == (problem,)
    shop.publish(2)
    shop.land("4", [_named(number) for number in range(700, 710)])
    assert shop.judge(3) == ()
    shop.publish(3)
    # Derived again by the option of before, all of it is read.
    shop.normalize_again(named)
    assert shop.judge(4, named) == ()


def test_derived_again_and_new_messages_do_not_hide_each_other(shop: _Shop) -> None:
    """The share of each is judged on its own: many sound messages of the others do not make it small."""
    named = shop.named()
    shop.land("1", list(map(_named, range(400))), named)
    shop.judge(1, named)
    shop.publish(1)
    shop.normalize_again(named)
    shop.land("2", [*map(_named, range(500, 505)), *map(_nameless, range(510, 525))])
    (problem,) = shop.judge(2)
    assert problem.startswith(f"15 of 20 messages of {shop.source.source} cannot be read (allowed: 9).")


def test_a_limit_of_zero_holds_for_batches_that_are_derived_again(source: Make, lake: Lake) -> None:
    """One message is too many, and one that stays in another batch of the interval is not counted."""
    shop = _Shop(source("canal_json", max_quarantined=0), lake)
    shop.land("1", [_named(1), _nameless(2)], shop.named())
    shop.land("2", [_named(3)], shop.named())
    assert shop.judge(1, shop.named()) == ()
    shop.publish(1)
    shop.normalize_again(shop.source)
    (problem,) = shop.judge(2)
    assert problem.startswith(f"1 of 3 messages of {shop.source.source} that were derived again")


def test_messages_of_published_batches_that_are_retried_hide_none_of_a_new_batch(shop: _Shop) -> None:
    """Messages count with the batch that they landed with, though a retry is a batch of its own."""
    shop.land("1", [*map(_named, range(5)), *map(_nameless, range(10, 40))])
    assert len(shop.judge(1)) == 1
    shop.publish(1)
    shop.land("2", [*map(_named, range(50, 55)), *([b"{"] * 15)])
    run_stage("retry", shop.named(), None, None)
    (problem,) = shop.judge(2)
    assert problem.startswith(f"15 of 20 messages of {shop.source.source} cannot be read (allowed: 9).")


def test_messages_that_are_retried_before_their_cut_is_published_are_read(shop: _Shop) -> None:
    """They are subtracted from those of their batch."""
    shop.land("1", [*map(_named, range(5)), *map(_nameless, range(10, 40))])
    assert len(shop.judge(1)) == 1
    run_stage("retry", shop.named(), None, None)
    assert shop.judge(1, shop.named()) == ()


def test_a_cut_from_before_answers_for_nothing_that_was_derived_since(shop: _Shop) -> None:
    """Publishing was cut short, events were derived again, and then the cut was published to its end."""
    named = shop.named()
    shop.land("1", [*map(_named, range(5)), *map(_nameless, range(10, 40))], named)
    shop.build(1, CutState.PUBLISHING)
    shop.normalize_again(shop.source)
    cuts.finish(shop.lake, shop.ledger)
    (problem,) = shop.judge(2)
    assert problem.startswith(f"30 of 35 messages of {shop.source.source} that were derived again")
    shop.publish(2)
    assert shop.judge(3) == ()
    shop.ledger.forget(CutRow, above("cut", 1))  # as a restore of the first cut does
    assert shop.judge(2) == (problem,)
