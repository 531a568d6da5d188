"""New events that nothing ranks for certain: of a log that may have begun anew, of a load that may replace a table.

Both are found in the ledger alone (``spans``): by the times of new and of published events, and by the order in which
the events of one batch were delivered. A doubt holds the cut back, and a person decides: the source file says
``log_restarts`` or ``reloads``, or the cut is approved as it is (docs/adr/0030, docs/adr/0060, docs/adr/0082). The
source file may also say for good that loads only add rows: ``loaded_again`` (docs/adr/0083).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.tally import SEVERAL, is_placed, log_of
from tidemark.positions import DELIVERY, is_by_time
from tidemark.quality.doubt import Doubt
from tidemark.quality.file_places import Stem, ends_of, highest_beside, is_in_file, stem_at
from tidemark.quality.restarts import line_and_command, written
from tidemark.quality.several_databases import of_databases
from tidemark.quality.unplaced_loads import of_loads
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source

LOG_WENT_BACK = "tables whose log went back while time went on"

TIME_WENT_BACK = "tables whose times went back while their log went on"

_SET_BACK = timedelta(minutes=1)
"""By how much the clock of a server may be set back in one log, so that later changes have earlier times."""

_BELOW = "their positions begin below it"

_BEFORE_BY_NAME = "their files come before it by the order of names, which alone orders them"


def doubts_about(
    source: Source,
    spans: Iterable[SpanRow],
    published: int,
    offsets: Iterable[OffsetsRow] = (),
    landed: Callable[[], set[Stem]] = set,
) -> dict[str, list[Doubt]]:
    """Return the doubts about the events of new batches, by the table as source files name it.

    Args:
        source: the source.
        spans: what the events of each table span in each batch up to the cut's.
        published: the last batch that is published; later ones are new. Of tables behind it: ``doubts_of_cut``.
        offsets: of the records of Kafka in each batch up to the cut's.
        landed: returns the stems of the files that landed with the published batches, as far as the ledger knows them.
            It is called only where places in files may be in doubt.
    """
    old, new = defaultdict[str, list[SpanRow]](list), defaultdict[str, list[SpanRow]](list)
    for span in spans:
        (new if span.batch > published else old)[span.object].append(span)
    found = defaultdict[str, list[Doubt]](list)
    by_offset = source.traits.orders_by_offset
    begun_again = by_offset and _have_begun_again(offsets, published)
    ends = ends_of(span for rows in old.values() for span in rows)
    known = functools.cache(lambda: {stem_at(end) for end in ends} | landed())
    for tables in _logs(old, new, by_offset=by_offset):
        before, now = ([span for name in tables for span in of[name] if _placed(span)] for of in (old, new))
        if by_offset and is_in_file(max(span.newest for span in now)):
            doubts = _misnamed(source, before, now, known)
        else:
            doubts = [*_went_back(source, before, now), *_came_before(source, before, now)]
        for name in tables:
            before, now = (list(filter(_placed, of[name])) for of in (old, new))
            found[name] += doubts or _crossed(source, before, now, begun_again=begun_again)
    turned = [span for name, rows in new.items() for span in rows if _turned(source, span, (*old[name], *rows))]
    for name in {span.object for span in turned if not found[span.object]}:
        found[name].append(_turn(source, turned))
    for name, rows in new.items():
        found[name] += [*of_loads(source, name, old[name], rows), *of_databases(source, old[name], rows)]
    return {name: doubts for name, doubts in found.items() if doubts}


def invariants(doubts: Iterable[Doubt]) -> dict[str, Invariant]:
    """Return the doubts about one table as invariants; of one name, the one that blocks."""
    ordered = sorted(doubts, key=lambda doubt: doubt.severity is Severity.BLOCK)
    return {
        doubt.invariant: Invariant(value=doubt.value, severity=doubt.severity, approvable=True) for doubt in ordered
    }


def _logs(
    old: Mapping[str, Sequence[SpanRow]], new: Mapping[str, Sequence[SpanRow]], *, by_offset: bool
) -> list[list[str]]:
    """Return the tables with new and old changes, in groups whose positions can be compared.

    Where positions are offsets of Kafka, or places in files, each table is in a partition or in files of its own.
    Elsewhere all tables share the log of the source: in a log that is not in the order of commits, one table alone may
    well go back.
    """
    known = [name for name, rows in sorted(new.items()) if _any_placed(rows) and _any_placed(old.get(name, ()))]
    if by_offset:
        return [[name] for name in known if _is_dumped(max(span.newest for span in old[name] if _placed(span)))]
    return [known] if known else []


def _went_back(source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt about new changes of some tables that are all later than all old ones and lie below them.

    So it is too where the new log is higher by now, but began below all that is published, in each of the tables.
    """
    highest = max(span.newest for span in before)
    if max(span.newest for span in now) < highest:
        return _later(source, before, now)
    begun = _lowest(span for span in before if log_of(span.newest) == log_of(highest))
    if begun is None or source.traits.orders_by_offset:
        return []
    of_tables = [_lowest(span for span in now if span.object == name) for name in {span.object for span in now}]
    return _later(source, before, now) if all(lowest and lowest < begun for lowest in of_tables) else []


def _came_before(source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt about new changes that are all earlier than all old ones and lie above them."""
    lowest = min((span.oldest or "" for span in now), default="")
    return _earlier(source, before, now) if lowest > max(span.newest for span in before) else []


def _misnamed(
    source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow], known: Callable[[], set[Stem | None]]
) -> list[Doubt]:
    """Return the doubt about new changes that their files order otherwise among old ones than their times do.

    ``known`` returns the stems of files that had files before. It is called only if the times and all old places
    leave a doubt.
    """
    newest = max(span.newest for span in now)
    later = _later(source, before, now, _BEFORE_BY_NAME) if newest < max(ends_of(before)) else []
    earlier = _earlier(source, before, now)
    beside = highest_beside(before, newest, known) if later or earlier else None
    if beside is None:
        return []
    if newest < beside:
        return later
    return earlier if min((span.oldest or "" for span in now), default="") > beside else []


def _crossed(source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow], *, begun_again: bool) -> list[Doubt]:
    """Return the doubt about new changes of one table that times and positions rank differently among old ones.

    All are later, and one lies below an old one; or all are earlier, and one lies above. That is no doubt where
    positions do not rise with the commits. Offsets of several partitions are not compared, but for ``begun_again``.
    """
    all_of = (*before, *now)
    ends = [end for span in all_of for end in (span.oldest, span.newest) if end and is_placed(end)]
    if not any(source.traits.rises_with_commits(end) for end in ends):  # a load in the same log has another form
        return _crossed_by_commits(source, before, now)
    if source.traits.orders_by_offset and len({tuple(end.split(".")[:3]) for end in ends}) > 1:
        return _later(source, before, now) if begun_again else []
    lowest, lowest_before = _lowest(now), _lowest(before)
    # Loaded rows may have the place of the last change before them.
    highest, highest_before = (max(span.newest for span in spans).partition(DELIVERY)[0] for spans in (now, before))
    below = lowest is not None and lowest < highest_before
    above = lowest_before is not None and highest > lowest_before
    return (_later(source, before, now) if below else []) or (_earlier(source, before, now) if above else [])


def _crossed_by_commits(source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt of ``_crossed`` where positions do not rise with the commits, and changes carry the commits.

    In one log, the last commit before a change lies above all changes of all transactions that were committed before.
    Connectors side by side read several logs: new changes of one connector are compared with its old ones.
    """
    readers = {span.commits_by for span in now if span.commits_by is not None}
    if len(readers) != 1 or SEVERAL in readers:
        return []
    before = [span for span in before if span.commits_by in readers]
    last, last_before = (_lowest_commit(spans) for spans in (now, before))
    highest, highest_before = (max((span.changes_to or "" for span in spans), default="") for spans in (now, before))
    if last and last < highest_before:
        seen = (
            f"the last commit before one of them is at {_number(last)} of the log (`source.sequence`), below "
            f"{_number(highest_before)}, which is published"
        )
        if doubts := _later(source, before, now, seen):
            return doubts
    return _earlier(source, before, now) if last_before and highest > last_before else []


def _lowest_commit(spans: Iterable[SpanRow]) -> str | None:
    return min((span.commits_from for span in spans if span.commits_from), default=None)


def _number(place: str) -> str:
    """Return the number of an encoded place, without the log and the count of digits."""
    return place.partition(".")[2][2:]


def _have_begun_again(offsets: Iterable[OffsetsRow], published: int) -> bool:
    """Return whether each partition with old and new records began again at its first old one, or below it.

    Records that were sent again from the beginning look the same, but for their times.
    """
    lows: dict[tuple[str, int], dict[bool, int]] = defaultdict(dict)
    for row in offsets:
        of_partition, is_new = lows[row.topic, row.partition], row.batch > published
        low = min(each.low for each in row.parsed())
        of_partition[is_new] = min(low, of_partition.get(is_new, low))
    both = [low for low in lows.values() if len(low) > 1]
    return bool(both) and all(low[True] <= low[False] for low in both)


def _later(source: Source, before: Iterable[SpanRow], now: Sequence[SpanRow], crossing: str = _BELOW) -> list[Doubt]:
    """Return the doubt about new changes that are all later than all old ones, although some lie below old ones.

    ``crossing`` says by what they lie below.
    """
    begins = min((span.first for span in now if span.first), default=None)
    ended = max((span.last for span in before if span.last), default=None)
    if begins is None or ended is None or begins <= ended:
        return []
    later = f"its changes from {written(begins)} on are later than all that is published (to {written(ended)})"
    return [_new_log(source, f"{later}, and {crossing}", begins, _lowest(now))]


def _earlier(source: Source, before: Iterable[SpanRow], now: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt about new changes that are all earlier than all old ones, although some lie above old ones."""
    begun = min((span.first for span in before if span.first), default=None)
    ended = max((span.last for span in now if span.last), default=None)
    if begun is None or ended is None or ended > begun - _SET_BACK:
        return []
    reason = (
        f"its changes to {written(ended)} are earlier than all that is published (from {written(begun)}), and their "
        "positions reach above it, so they would replace newer rows. If they are of another log (of a server from "
        f"before, or sent once more), write {line_and_command(source, begun)}: they rank below; if they are newer, "
        "approve the cut"
    )
    return [Doubt(TIME_WENT_BACK, 1, reason, _lowest(now))]


def _turned(source: Source, span: SpanRow, spans: Iterable[SpanRow]) -> bool:
    """Return whether a batch holds the end of one log and the beginning of another, judged by its order of delivery.

    Where changes carry the commits, these tell the order (``normalization.delivery_order``). What was sent again there,
    and is later than the rest of its batch, as the clock was set back meanwhile, came in an earlier batch too.

    So does a batch with changes that are ordered by their time, and changes behind them that have a place in the log:
    times are above most places, and nothing ranks the ones among the others.
    """
    if not span.back_to or span.back is None:
        return False
    if DELIVERY in span.back_to and is_by_time(span.newest):
        return True
    if span.commits_from is None:
        return source.traits.rises_with_commits(span.back_to)
    return all(other.last is None or other.last < span.back for other in spans if other.batch < span.batch)


def _turn(source: Source, turned: Iterable[SpanRow]) -> Doubt:
    begins, position = min((span.back, span.back_to) for span in turned if span.back is not None)
    seen = (
        f"changes from {written(begins)} on were delivered behind changes that lie higher in the log, and are later "
        "than all of these"
    )
    return _new_log(source, seen, begins, position)


def _new_log(source: Source, seen: str, begins: datetime, position: str | None) -> Doubt:
    if is_in_file(position or ""):
        reason = (
            f"{seen}. If names of files do not rise with time (DD-MM-YYYY, random names), write "
            f"{line_and_command(source, begins)}, and see that later files do not need it: with fields of time in "
            "`landing`, or names that rise. If they are late events, or of other rows than those files, approve the cut"
        )
        return Doubt(LOG_WENT_BACK, 1, reason, position)
    reason = (
        f"{seen}. If the source's log began anew (failover, upgrade, restore, new topic), or messages have their place "
        "in the log only since then, write "
        f"{line_and_command(source, begins)}. Of several tables, the earliest moment counts, or the one at which the "
        "new server took over. If they are late events of the same log, approve the cut"
    )
    return Doubt(LOG_WENT_BACK, 1, reason, position)


def _placed(span: SpanRow) -> bool:
    return is_placed(span.newest)


def _lowest(spans: Iterable[SpanRow]) -> str | None:
    """Return the lowest position of spans; None where one is not known, or is no place in the log."""
    lows = [span.oldest or "" for span in spans]
    return min(lows) if all(map(is_placed, lows)) else None


def _any_placed(spans: Iterable[SpanRow]) -> bool:
    return any(map(_placed, spans))


def _is_dumped(position: str) -> bool:
    """Return whether a position is a place in the dump: the offset of a Kafka record, or a place in a file."""
    return position.partition(".")[2].startswith("011.") or is_in_file(position)
