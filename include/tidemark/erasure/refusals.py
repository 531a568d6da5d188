"""What an erasure refuses, because rows of the subject might stay: nothing shows that they are the subject's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.table import Table

from tidemark.compaction import renamed
from tidemark.ddl.lineages import Lineages, Segment
from tidemark.erasure import certificate, sentences
from tidemark.erasure import cut as erasing_cut
from tidemark.erasure import matches as matching
from tidemark.erasure.search import Places, by_file
from tidemark.erasure.subject import ErasedRow
from tidemark.erasure.targets import Targets, targets_of
from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.lake import file_edits, names, other_writers
from tidemark.lake.branches import marker
from tidemark.lake.file_edits import Edit
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import keeps_whole
from tidemark.ledger.folders import folders
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.erased_keys import EVERYWHERE
from tidemark.sources.layout import sharing
from tidemark.sources.model import Source


def require_known(lake: Lake, ledger: Ledger, source: Source, subject: ErasedRow, *, begun: bool) -> None:
    """Refuse an erasure if a new name or key of the table is not published, or it cannot take the rows from a table.

    Such a table is a feed that cannot show whose its rows are, or one that no run writes any more.

    Raises:
        ConfigurationError: the erasure is refused.
    """
    newest = int(marker(lake.find(names.change_log(source.source)), "batch") or 0)
    known = renamed.known_to(ledger, source, newest)
    lineage = known.tables.get(subject.object)
    segments = lineage.segments if lineage else (Segment(subject.object, "", None),)
    landed = ledger.contents(above("batch", subject.standing.batch))
    keys = {frozenset(row.key) for row in landed if row.object in subject.names and row.key is not None}
    if segments != subject.segments or keys - {frozenset(subject.reader.key)}:
        raise ConfigurationError(
            f"{subject.object} got another name or another key at the source, and that is not published "
            f"yet.{_nothing(begun=begun)} Run the source (`tidemark run {source.source}`), then erase"
        )
    targets = targets_of(lake, ledger, subject)
    done = _nothing(begun=begun)
    _require_written(lake, subject, targets, done)
    _require_own_feeds(lake, targets, subject, known)
    _require_apart(lake, targets, subject, done)


def require_derived(lake: Lake, ledger: Ledger, source: str, *, begun: bool) -> None:
    """Refuse an erasure while events are still to be derived: nothing but their messages has them then.

    Args:
        lake: the lake.
        ledger: of the source.
        source: its name.
        begun: whether an attempt before was cut short. Then no other command works on the source, normalize neither.

    Raises:
        RetriableLakeError: something landed that is not normalized yet, or a reprocess was cut short.
    """
    raw, log = lake.find(names.raw(source)), lake.find(names.change_log(source))
    if int(marker(raw, "batch") or 0) > int(marker(log, "batch") or 0):
        raise RetriableLakeError(
            f"{source}: messages landed that are not normalized yet; run normalize, then erase again"
        )
    if ledger.reprocessing() and not begun:
        raise RetriableLakeError(
            f"{source}: a reprocess was cut short, and some events are in no log until it is done; run `tidemark "
            f"normalize {source}`, then erase again"
        )


def _nothing(*, begun: bool) -> str:
    """Return what to say of an erasure that is refused: one that an attempt before began has erased something."""
    return "" if begun else " Nothing was erased."


def _require_written(lake: Lake, subject: ErasedRow, targets: Targets, done: str) -> None:
    """Refuse tables that hold rows of the subject, and that no cut moves."""
    if targets.newest != subject.target:
        raise ConfigurationError(
            f"{subject.object} is published as {targets.newest} now, no more as {subject.target}.{done} Erase the row "
            f"from {targets.newest}"
        )
    if targets.left:
        raise ConfigurationError(
            f"{', '.join(map(str, targets.left))}: no run writes them any more, and they may hold the row, as "
            f"{' or '.join(subject.names)} was published there before.{done} Drop them together with "
            f"their files, in Spark by `DROP TABLE {lake.spark_name(targets.left[0])} PURGE`, then erase"
        )


def _require_own_feeds(lake: Lake, targets: Targets, subject: ErasedRow, known: Lineages) -> None:
    """Refuse a feed that shows rows of two tables which had its name: the same key may be another row there."""
    for name, target in targets.published.items():
        others = [each for own, each in known.tables.items() if own != subject.object and name in known.names_of(own)]
        shared = any(_overlap(subject.segments, each.segments, name) for each in others)
        feed = lake.find(names.feed(target))
        if feed is None or name not in subject.names:
            continue
        columns = {field.name for field in feed.schema().fields}
        why = "two tables had its name in turn, and the same key may be another row there" if shared else None
        if not all(each.key.keys() <= columns for each in subject.identities):
            why = "it has no column any more for a part of a key that the row had"
        if why:
            raise ConfigurationError(
                f"{names.feed(target)}: {why}. Nothing was erased. Take `feed` out of the source file, drop this "
                "table, then erase. A feed that is asked for again begins with all rows"
            )


def _require_apart(lake: Lake, targets: Targets, subject: ErasedRow, done: str) -> None:
    """Refuse what moves with a table that took the place of shards, if it has the key: as a row of whom is not known.

    The table itself and its state were built anew.
    """
    for name, target in targets.published.items():
        if name in subject.names:
            continue
        for each in (*names.beside(target), *names.whole_beside(target)):
            table = lake.find(each)
            if table is not None and _may_hold(table, subject):
                raise ConfigurationError(
                    f"{each}: {' or '.join(subject.names)} was folded into {target} before, and the key is in this "
                    f"table, as a row of it or of {name}.{done} Drop the table together with its files, "
                    f"in Spark by `DROP TABLE {lake.spark_name(each)} PURGE`, then erase. The next run with events of "
                    f"{name} makes it again"
                )


def _may_hold(table: Table, subject: ErasedRow) -> bool:
    columns, matches = set(table.schema().column_names), subject.matches()
    if not all(match.values.keys() <= columns for match in matches):
        return True
    edit = Edit(where=matching.condition(matches), holds=matching.holds(matches))
    try:
        return file_edits.find(table, edit).files > 0
    except (ValueError, pa.ArrowInvalid):
        return True  # its columns have other types than the key, so nothing shows that its rows are others


def _overlap(own: Sequence[Segment], other: Sequence[Segment], name: str) -> bool:
    """Return whether there are positions at which either of two tables may have been published under a name."""
    return all(first[0].begins < _lost(second, name) for first, second in ((own, other), (other, own)))


def _lost(segments: Sequence[Segment], name: str) -> str:
    """Return the position from which on a table has a name no more; above all positions if it has it still."""
    return max(EVERYWHERE if each.ends is None else each.ends for each in segments if each.object == name)


def require_possible(lake: Lake, ledger: Ledger, subject: ErasedRow, places: Places, *, begun: bool) -> None:
    """Refuse an erasure that could not be finished, or would publish or remove what is not the subject's.

    Args:
        lake: the lake.
        ledger: of the source.
        subject: whose rows.
        places: where they are.
        begun: whether an attempt before was cut short. Then no other command works on the source.

    Raises:
        RetriableLakeError: messages with the row stand in quarantine, and can be decoded now.
        ConfigurationError: another writer changed a table, or something of it is gone, or cannot be rewritten; or two
            tables have one folder.
    """
    if places.retriable and not begun:
        raise RetriableLakeError(
            f"{'. '.join(sentences.retriable(subject.source, by_file(places.retriable)))}. Nothing was erased"
        )
    again = f"`tidemark rebuild {subject.source} {subject.object}`"
    done = _nothing(begun=begun)
    moved = [table for _, table, _ in erasing_cut.tables_of(lake, ledger, subject)]
    if shared := sorted({".".join(table.name()) for table in moved} & sharing(folders(lake))):
        raise ConfigurationError(
            f"{', '.join(shared)}: the folder is, holds or lies in that of another table, whose files would go.{done} "
            "Write another `layout.location`, drop the table, and `tidemark rebuild` it, then erase"
        )
    if problems := [text for table in moved if (text := other_writers.changes(table))]:
        remedy = "Undo it, then give the same command again" if begun else f"Undo it, or {again}, then erase"
        raise ConfigurationError(f"{'. '.join(problems)}.{done} {remedy}")
    if gone := list(_gone(lake, ledger, subject)):
        raise ConfigurationError(
            f"{', '.join(map(str, gone))}: the cut of an erasure moves it with its table, and it is gone.{done} "
            f"{'Put it back' if begun else f'{again} and run'}, or drop the table too if nobody reads it, by `DROP "
            "TABLE ... PURGE`, then erase"
        )
    tables = certificate.tables_searched(lake, ledger, subject, places)
    if problems := [text for _, table, edit in tables if (text := file_edits.obstacle(table, edit))]:
        layout = "" if begun else f" Where only the layout is older, `tidemark maintain {subject.source}` does it too."
        raise ConfigurationError(
            f"{'. '.join(problems)}.{done} Rewrite the table's files as Parquet (`write.format.default`) with the "
            f"procedure `rewrite_data_files` of Iceberg, option `rewrite-all`, then erase.{layout}"
        )


def _gone(lake: Lake, ledger: Ledger, subject: ErasedRow) -> Iterator[Identifier]:
    """Yield what a cut has to move with the tables of an erasure, and is not there."""
    for target in targets_of(lake, ledger, subject).published.values():
        rows, _ = names.whole_beside(target)
        needed = (names.state(target), *((rows,) if keeps_whole(lake.load(target).properties) else ()))
        yield from (each for each in needed if lake.find(each) is None)
