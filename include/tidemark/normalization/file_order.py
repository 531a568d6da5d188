"""The order of the files of a source, and change logs that were written in the order of an earlier version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from tidemark.dumps.file_names import FileOrder, widths
from tidemark.errors import ConfigurationError
from tidemark.lake.properties import BY_NUMBERS, BY_NUMBERS_WITH_LENGTHS, FILE_ORDER_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import DisorderRow
from tidemark.ledger.rows import FileRow
from tidemark.normalization.file_times import Disorder
from tidemark.values.iso8601 import to_micros


def order_of(changelog: Table, files: Iterable[FileRow]) -> FileOrder:
    """Return the order of files by which a change log is written.

    Args:
        changelog: the change log.
        files: the files of its source.

    Raises:
        ConfigurationError: it is written by an order of a newer version of Tidemark.
    """
    kept = changelog.properties.get(FILE_ORDER_PROPERTY)
    if kept == BY_NUMBERS:
        return _by_numbers(files)
    if kept == BY_NUMBERS_WITH_LENGTHS:
        return replace(_by_numbers(files), lengths_in_place=True)
    if kept is not None:
        raise ConfigurationError(
            f"the change log {'.'.join(changelog.name())} has its files in the order '{kept}', which this Tidemark "
            "does not know: a newer Tidemark wrote it. Install that version or a newer one. Nothing was changed."
        )
    return FileOrder()


def is_by_numbers(changelog: Table) -> bool:
    """Return whether all numbers in paths count as numbers in the positions of a change log."""
    return changelog.properties.get(FILE_ORDER_PROPERTY) == BY_NUMBERS


def adopted(changelog: Table, files: Sequence[FileRow], *, anew: bool) -> Table:
    """Let numbers in paths count as numbers in a change log from before they did, if no position in it is wrong then.

    Args:
        changelog: the change log.
        files: the files whose events it has.
        anew: whether all of these events are being derived again.
    """
    if is_by_numbers(changelog):
        return changelog
    kept, now = order_of(changelog, files), _by_numbers(files)
    if not anew and any(kept.text(row.path) != now.text(row.path) for row in files):
        return changelog
    with changelog.transaction() as transaction:
        transaction.set_properties({FILE_ORDER_PROPERTY: BY_NUMBERS})
    return changelog.refresh()


def misordered(changelog: Table, files: Sequence[FileRow]) -> str:
    """Return how a change log of an earlier version orders files in another way than by the numbers in their paths.

    Args:
        changelog: the change log.
        files: the files whose events it has.

    Returns:
        A clause, or no text if the files are ordered by their numbers.
    """
    kept = order_of(changelog, files)
    now, before = (
        sorted((row.path for row in files), key=places(files, order)) for order in (_by_numbers(files), kept)
    )
    if now == before:
        return ""
    return _LENGTHS_FIRST if kept.width_at else _AS_TEXT


def remarks(source: str, ledger: Ledger, changelog: Table, newest: int) -> list[str]:
    """Return what to do where a change log of an earlier version orders files in another way than by their numbers.

    Args:
        source: name of the source.
        ledger: of the source.
        changelog: its change log.
        newest: the last batch that it has.
    """
    if is_by_numbers(changelog):
        return []
    order = misordered(changelog, ledger.landed_files(newest))
    again = f"because events were decoded so before. `tidemark run {source} --reprocess` orders them as numbers"
    return [f"{order}, {again}"] if order else []


_AS_TEXT = "names of files have numbers of different lengths, which are ordered as text here (10 before 9)"

_LENGTHS_FIRST = (
    "names of files have one number in several lengths (2 and 02), which are ordered by that length here, before the "
    "numbers behind it"
)


def places(files: Iterable[FileRow], order: FileOrder) -> Callable[[str], tuple[int, str]]:
    """Return a function from the path of a file to its place in the order of files."""
    starts = {row.path: row.interval_start for row in files}

    def place(path: str) -> tuple[int, str]:
        start = starts.get(path)
        return to_micros(start) if start else 0, order.text(path)

    return place


def sizes(files: Iterable[FileRow]) -> dict[str, int]:
    """Return by checksum the bytes that files had when they were landed, for files that grew later."""
    newest: dict[str, FileRow] = {}
    found: dict[str, int] = {}
    for row in sorted(files, key=lambda row: row.batch):
        before = newest.get(row.path)
        if before is not None:
            found[before.checksum] = before.size
        newest[row.path] = row
    return found


def _by_numbers(files: Iterable[FileRow]) -> FileOrder:
    # Within a batch by length and text, so that they are the same each time.
    landed = sorted(files, key=lambda row: (row.batch, len(row.path), row.path))
    return FileOrder(width_at=widths(row.path for row in landed))


def note_disorders(ledger: Ledger, found: Iterable[Disorder], batch: int, replaced: BooleanExpression) -> None:
    """Write to the ledger which tables have files whose order contradicts the times of their events.

    Args:
        ledger: of the source.
        found: the disorders of this run.
        batch: its last batch.
        replaced: rows of the ledger that these take the place of.
    """
    rows = [
        DisorderRow(
            batch=batch,
            object=each.table,
            events=each.events,
            of=each.of,
            before=each.before,
            behind=each.behind,
        )
        for each in found
    ]
    if rows or ledger.disorders(replaced):
        ledger.replace(DisorderRow, rows, replaced)
