"""The order of PostgreSQL's commits: a new log is found within the old one, and no log that goes on is in doubt."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from support.postgres_logs import SECOND, Committed, Sent, Written, in_runs, loaded, sent, transactions
from support.rounds import how_many
from tidemark.lake.log_schemas import RAW
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.tally import Tally
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.new_logs import NewLogs
from tidemark.normalization.tasks import Decoding
from tidemark.positions import changed, encode_position
from tidemark.quality.doubts import LOG_WENT_BACK, TIME_WENT_BACK, doubts_about
from tidemark.sources.model import Source

NOON = 1_790_000_000 * SECOND
SOURCE = Source.model_validate({"source": "shop", "format": "debezium_json", "landing": "/landing/*"})
NO_LOGS = NewLogs()
Placed = tuple[int, int, Sent]
"""Partition, offset and message."""


def _tally(batch: int, messages: Sequence[Placed], logs: NewLogs = NO_LOGS, part: int = 1000) -> Tally:
    """Decode a batch, in parts of some messages."""
    decode = Decoding(format_name="debezium_json", options={}, new_logs=logs).decode()
    decoder = Decoder(batch, decode, lambda *_: None, lambda *_: None)
    landed = {"batch": batch, "landed_at": datetime(2026, 1, 1, tzinfo=UTC), "file": f"{batch:04}"}
    raw = [
        {**landed, "place": place, "value": message.message()}
        | {"topic": message.change.table, "partition": partition, "offset": offset}
        for place, (partition, offset, message) in enumerate(messages, 1)
    ]
    for first in range(0, len(raw), part):
        decoder.add(pa.RecordBatch.from_pylist(raw[first : first + part], schema=RAW))
    tally = decoder.close()
    assert tally.decoded == len(messages)
    return tally


def _spans(batch: int, messages: Sequence[Placed], logs: NewLogs = NO_LOGS, part: int = 1000) -> list[SpanRow]:
    return [SpanRow.of(batch, name, span) for name, span in _tally(batch, messages, logs, part).spans.items()]


def _placed(messages: Sequence[Sent]) -> list[Placed]:
    return [(0, offset, each) for offset, each in enumerate(messages)]


def _doubts(*batches: Sequence[Placed], logs: NewLogs = NO_LOGS) -> set[str]:
    """The doubts about the last batch."""
    spans = [span for number, batch in enumerate(batches, 1) for span in _spans(number, batch, logs)]
    return _found(spans, len(batches) - 1)


def _told(*batches: Sequence[Placed]) -> set[int]:
    """The moments that the doubts about the last batch name as the beginning of a new log; epoch µs."""
    spans = [span for number, batch in enumerate(batches, 1) for span in _spans(number, batch)]
    doubts = [doubt for doubts in doubts_about(SOURCE, spans, len(batches) - 1).values() for doubt in doubts]
    assert {doubt.invariant for doubt in doubts} <= {LOG_WENT_BACK}
    found = [re.search(r"log_restarts: \[(\S+)\]", doubt.reason) for doubt in doubts]
    return {round(datetime.fromisoformat(each[1]).timestamp() * 1e6) for each in found if each}


def _found(spans: Sequence[SpanRow], published: int) -> set[str]:
    return {doubt.invariant for doubts in doubts_about(SOURCE, spans, published).values() for doubt in doubts}


def _is_alone(before: Sequence[Placed], now: Sequence[Placed]) -> bool:
    """Whether all of a batch was written below what is published: a long transaction looks like a new log then."""
    return max(each.change.lsn for *_, each in now) < max(each.change.lsn for *_, each in before)


def _sent(last: int | None, lsn: int, second: int, key: int = 1, **fields: Any) -> Sent:
    return Sent(Written(lsn, "t", key, "x"), NOON + second * SECOND, last, **fields)


A_DAY = [_sent(None, 500, 0), _sent(510, 520, 1), _sent(530, 540, 2), _sent(550, 560, 3)]
"""A run whose last transaction ends at 570."""

CASES: dict[str, tuple[list[list[Sent]], set[str]]] = {
    "the_log_goes_on": ([A_DAY, [_sent(570, 580, 4), _sent(590, 600, 5)]], set()),
    "a_long_transaction_and_others": ([A_DAY, [_sent(570, 511, 4), _sent(570, 531, 4), _sent(610, 620, 5)]], set()),
    "a_long_transaction_in_one_run": ([[*A_DAY, _sent(570, 480, 4), _sent(610, 490, 5), _sent(640, 650, 6)]], set()),
    "sent_again": ([A_DAY, [_sent(510, 520, 1), _sent(530, 540, 2), _sent(550, 560, 3), _sent(570, 580, 4)]], set()),
    "sent_again_in_one_run": ([[*A_DAY, *A_DAY[1:], _sent(570, 580, 4)]], set()),
    "sent_again_since_the_first_offset": ([A_DAY, [_sent(None, 500, 0), *A_DAY[1:], _sent(570, 580, 4)]], set()),
    "commits_of_one_time": ([A_DAY, [_sent(570, 580, 3), _sent(590, 600, 3)]], set()),
    "commits_of_one_time_in_another_order": ([A_DAY[2:], [_sent(510, 520, 2), _sent(590, 600, 3)]], set()),
    "the_clock_is_set_back": ([A_DAY, [_sent(570, 580, -5), _sent(590, 600, -4)]], set()),
    "the_clock_is_set_back_in_one_run": ([[*A_DAY, _sent(570, 580, -5), _sent(590, 600, -4)]], set()),
    "a_load_and_the_first_changes": (
        [[_sent(None, 900, 4, snapshot="true")], [_sent(None, 910, 5), _sent(920, 930, 6)]],
        set(),
    ),
    "a_load_between_changes": (
        [[*A_DAY, _sent(570, 572, 4, snapshot="true")], [_sent(570, 580, 5), _sent(590, 600, 6)]],
        set(),
    ),
    "no_sequence": ([A_DAY, [_sent(None, 505, 4, has_sequence=False), _sent(None, 700, 5, has_sequence=False)]], set()),
    "no_sequence_before": (
        [[_sent(None, at, 0, has_sequence=False) for at in (505, 560)], [_sent(510, 520, 4), _sent(700, 710, 5)]],
        set(),
    ),
    "late_events": ([A_DAY[2:], A_DAY[:2]], set()),
    "a_new_log_within_the_old_one": ([A_DAY, [_sent(505, 515, 60), _sent(525, 700, 61)]], {LOG_WENT_BACK}),
    "a_new_log_behind_an_offset": ([A_DAY, [_sent(550, 515, 60), _sent(525, 700, 61)]], {LOG_WENT_BACK}),
    "a_new_log_without_an_offset": ([A_DAY, [_sent(None, 515, 60), _sent(525, 700, 61)]], {LOG_WENT_BACK}),
    "a_new_log_in_one_run": ([[*A_DAY, _sent(550, 515, 60), _sent(525, 700, 61)]], {LOG_WENT_BACK}),
    "a_new_log_that_is_sent_again": (
        [[*A_DAY, _sent(550, 515, 60), _sent(525, 700, 61), _sent(550, 515, 60), _sent(525, 700, 61)]],
        {LOG_WENT_BACK},
    ),
    "the_log_of_an_old_server_comes_late": (
        [[_sent(505, 515, 600), _sent(525, 530, 601)], A_DAY],
        {TIME_WENT_BACK},
    ),
    "a_new_log_of_one_transaction": ([A_DAY, [_sent(570, 555, 60), _sent(570, 575, 60)]], set()),
}
"""Batches; the last one is judged. That the last case is not found is a limit that the documents name."""


@pytest.mark.parametrize("name", CASES)
def test_what_commits_tell(name: str) -> None:
    """Each thing that happens in one log, and new logs."""
    batches, expected = CASES[name]
    assert _doubts(*map(_placed, batches)) == expected


def test_partitions_have_an_order_of_their_own() -> None:
    """A partition that is read after another one holds earlier changes."""
    one, other = ([(partition, n, each) for n, each in enumerate(A_DAY[partition::2])] for partition in (0, 1))
    assert _doubts([*one, *other]) == _doubts([*other, *one]) == set()
    assert _doubts(one, other) == _doubts(other, one) == set()


@pytest.mark.more
@pytest.mark.parametrize(("partitions", "back"), [(1, 9), (3, 0)])
def test_a_log_that_goes_on_is_never_in_doubt(partitions: int, back: int) -> None:
    """Long transactions, restarts, loads, commits of one time, a clock that is set back, in any number of runs.

    Partitions are read unevenly. What is left out is both at once: a clock that is set back, and a partition that is
    read later than another by no more than that.
    """
    judged = alone = fell = 0
    seeds = how_many(usually=20, proving=70)
    for seed in range(seeds):
        dice = random.Random(seed)  # noqa: S311  a test's own mixing
        log = transactions(dice, 60, start=dice.choice([8, 10**8]), at=NOON, mark="a", back=back)
        messages = sent(dice, log, restarts=0.03)
        if dice.random() < 0.5:
            messages = [*loaded(NOON - SECOND, log[0].changes[0].lsn - 8, ("t", "u")), *messages]
        if dice.random() < 0.3:  # a load between two messages, as a signal starts one
            place = dice.randrange(1, len(messages))
            now = messages[place - 1]
            messages[place:place] = loaded(now.at, now.change.lsn, ("t",), now.last)
        before: list[Placed] = []
        spans: list[SpanRow] = []
        for number, batch in enumerate(in_runs(dice, messages, dice.choice([1, 2, 5, 25]), partitions), 1):
            if batch:
                spans += _spans(number, batch, part=7)
                places = [each.change.lsn for *_, each in batch]
                fell += places != sorted(places)
                judged += 1
                found = _found(spans, number - 1)
                alone += bool(found)
                assert not found or _is_alone(before, batch), seed
                before += batch
    assert judged > 450 / 70 * seeds
    assert fell > 150 / 70 * seeds
    assert alone < judged / 50


def _second_log(
    dice: random.Random, old: Sequence[Committed], *, last: int | None
) -> tuple[list[Committed], list[Sent]]:
    """A replica that was promoted some commits back, and what is sent of its log, with or without the old offset."""
    behind = dice.randint(1, len(old) - 1)
    later = max(done.at for done in old) + dice.choice([1, SECOND, 60 * SECOND])
    new = transactions(dice, 30, start=old[-behind - 1].end, at=later + 30 * SECOND, mark="b")
    return new, sent(dice, new, last=last)


def _is_known(message: Sent, new: Sequence[Committed]) -> bool:
    """Whether the last commit that a message carries is one of its own log, and lies below the change."""
    return message.last in {done.end for done in new} and message.last <= message.change.lsn


@pytest.mark.more
def test_a_new_log_within_the_old_one_is_found() -> None:
    """In a run of its own or together with the old one, wherever its places would make newer changes older.

    Two kinds of changes are not found: changes up to the first commit alone, which carry a commit of the old log or
    none, and changes of transactions that were under way at a commit behind them.
    """
    found = passed = exact = held = 0
    seeds = how_many(usually=30, proving=120)
    for seed in range(seeds):
        dice = random.Random(seed)  # noqa: S311  a test's own mixing
        old = transactions(dice, 40, start=10**6, at=NOON, mark="a")
        before = sent(dice, old)
        new, now = _second_log(dice, old, last=dice.choice([None, before[-1].last, old[-1].end]))
        highest = {each.change.table: 0 for each in (*before, *now)}
        for each in before:
            highest[each.change.table] = max(highest[each.change.table], each.change.lsn)
        lost = [each for each in now if _is_known(each, new) and each.change.lsn < highest[each.change.table]]
        in_two = _told(_placed(before), _placed(now))
        in_one = _told(_placed([*before, *now]))
        if lost:
            assert in_two, seed
            assert in_one, seed
        of_new = {each.at for each in now}
        assert (in_two | in_one) <= of_new, seed
        for moments in (in_two, in_one):
            exact += min(of_new) in moments
            held += bool(moments)
        found += bool(lost)
        passed += not in_two
    assert found > seeds / 2
    assert passed > seeds / 24
    assert exact > 0.9 * held


@pytest.mark.more
def test_once_the_source_file_says_so_nothing_is_in_doubt() -> None:
    """In two runs, in one, or with the old log behind the new one."""
    for seed in range(how_many(usually=6, proving=30)):
        dice = random.Random(seed)  # noqa: S311  a test's own mixing
        old = transactions(dice, 40, start=10**6, at=NOON, mark="a")
        behind = dice.randint(5, 30)
        kept = old[:-behind]
        new = transactions(dice, 40, start=kept[-1].end, at=NOON + 3600 * SECOND, mark="b")
        logs = NewLogs(source=(min(done.at for done in new),))
        batches = [_placed(sent(dice, old)), _placed(sent(dice, new, last=old[-1].end))]
        assert _doubts(*batches, logs=logs) == set()
        assert _doubts(batches[0] + batches[1], logs=logs) == set()
        assert _doubts(batches[1], batches[0], logs=logs) == set()


def test_connectors_side_by_side_are_not_compared() -> None:
    """Two servers whose tables have one name: each has a log of its own."""
    dice = random.Random(7)  # noqa: S311  a test's own mixing
    logs = [
        sent(dice, transactions(dice, 80, start=start, at=NOON, mark="a", back=0), server=server, restarts=0)
        for server, start in (("one", 10**9), ("two", 8))
    ]
    both = sorted((each for log in logs for each in log), key=lambda each: each.at)
    half = max(number for number, each in enumerate(both) if each.at <= both[len(both) // 2].at) + 1
    by_one = [each for each in both[half:] if each.server == "two"]
    assert _doubts(_placed(both[:half]), _placed(both[half:])) == set()
    assert _doubts(_placed(both[:half]), _placed(by_one)) <= {LOG_WENT_BACK}  # all below all: as before
    assert _doubts(_placed(both)) == set()


def test_what_a_batch_spans() -> None:
    """Rows of loads and changes without a commit before them are left out."""
    (done, then) = transactions(random.Random(3), 2, start=800, at=NOON, mark="a", tables=("t",))  # noqa: S311
    messages = [*loaded(NOON, 10**9, ("t",)), *sent(random.Random(3), [done, then], restarts=0)]  # noqa: S311
    span = _tally(1, _placed(messages)).spans["d.s.t"]
    assert span.commits_from == encode_position(changed(done.end))
    assert span.changes_to == encode_position(changed(max(each.lsn for each in then.changes)))
    assert span.commits_by == "shop"
