"""What an erasure refuses, because rows of the subject might stay: nothing shows that they are the subject's."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.compaction import renamed
from tidemark.ddl.lineages import Lineages, Segment
from tidemark.erasure import cut as erasing_cut
from tidemark.erasure.subject import ErasedRow
from tidemark.errors import ConfigurationError
from tidemark.lake import foreign, names
from tidemark.lake.branches import marker
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.ledger.folders import folders
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.erased_keys import EVERYWHERE
from tidemark.sources.layout import sharing
from tidemark.sources.model import Source


def require_known(lake: Lake, ledger: Ledger, source: Source, subject: ErasedRow) -> None:
    """Refuse an erasure if a new name or key of the table is not published, or a feed cannot show the subject's rows.

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
            f"{subject.object} got another name or another key at the source, and that is not published yet: nothing "
            f"was erased. Run the source (`tidemark run {source.source}`), then erase"
        )
    _require_own_feeds(lake, ledger, subject, known)


def _require_own_feeds(lake: Lake, ledger: Ledger, subject: ErasedRow, known: Lineages) -> None:
    """Refuse a feed that shows rows of two tables which had its name: the same key may be another row there."""
    for name, target in erasing_cut.targets_of(ledger, subject).items():
        others = [each for own, each in known.tables.items() if own != subject.object and name in known.names_of(own)]
        shared = any(_overlap(subject.segments, each.segments, name) for each in others)
        feed = lake.find(names.feed(target))
        if feed is None:
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


def _overlap(own: Sequence[Segment], other: Sequence[Segment], name: str) -> bool:
    """Return whether there are positions at which either of two tables may have been published under a name."""
    return all(first[0].begins < _lost(second, name) for first, second in ((own, other), (other, own)))


def _lost(segments: Sequence[Segment], name: str) -> str:
    """Return the position from which on a table has a name no more; above all positions if it has it still."""
    return max(EVERYWHERE if each.ends is None else each.ends for each in segments if each.object == name)


def require_own(lake: Lake, ledger: Ledger, subject: ErasedRow) -> None:
    """Refuse tables that another writer changed, as the cut would publish what it did, and folders of two tables.

    Raises:
        ConfigurationError: one was changed, or an erasure would remove files of another table.
    """
    tables = erasing_cut.tables_of(lake, ledger, subject)
    own = {".".join(table.name()) for _, table, _ in tables}
    if shared := sorted(own & sharing(folders(lake, ledger))):
        raise ConfigurationError(
            f"{', '.join(shared)}: the folder is, holds or lies in that of another table, whose files would go. "
            "Nothing was erased. Write another `layout.location`, drop the table, and `tidemark rebuild` it, then erase"
        )
    problems = [text for _, table, _ in tables if (text := foreign.changes(table))]
    if problems:
        again = f"`tidemark rebuild {subject.source} {subject.object}`"
        raise ConfigurationError(f"{'. '.join(problems)}. Undo it, or {again}, then erase")
