"""The certificate of an erasure: what was searched, what was removed of each place, and what is left there.

It names no key. Who knows the key and the secret can make it again: ``tidemark erase --verify``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import Table

from tidemark.erasure import compared_keys, copies, logs
from tidemark.erasure import cut as erasing_cut
from tidemark.erasure.search import Places
from tidemark.erasure.subject import ErasedRow
from tidemark.lake import file_edits, names, purging
from tidemark.lake.file_edits import Edit, RowsFound
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import erasures
from tidemark.normalization.erased_keys import Erasure

FOLDER = "erasures"


class SearchedTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table that was searched."""

    files: int
    """Files in its folders."""
    unused_files: int
    """Files in its folders that no snapshot needs: none right after an erasure, but for files of the last hour in the
    ledger's comparisons, which all sources share."""
    removed_rows: int = 0
    removed_hidden_rows: int = 0
    """Rows in files that a delete hid from readers."""
    rewritten_files: int = 0
    unknown_files: int = 0
    """Files that are not the table's in a folder outside of its own (``write.data.path``): nobody knows whose."""
    found: int = 0
    """Rows of the subject that are there now."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, and what a search found afterwards."""

    source: str
    table: str
    names: list[str]
    """The names that the table had at the source."""
    key_columns: list[str]
    earlier_key_columns: list[list[str]]
    """The keys that the table had before."""
    digests: list[str]
    """Keyed hashes of the erased keys, under each name."""
    secret: str
    """By what the secret of the hashes is recognised."""
    erased_up_to: str
    """Events that were committed up to then are of the erased row."""
    cut: int | None
    searched_at: str
    places: dict[str, SearchedTable]
    newer_events: int
    """Events of the key that came after the erasure: they are of a new row."""
    unread_messages: dict[str, list[int]]
    """Undecoded messages in quarantine whose text has the table's name and the key: file and places."""
    unsearched_messages: dict[str, int]
    """By file, how many undecoded messages in quarantine may have the key: they are no JSON, are cut off, or write keys
    otherwise than a person does."""
    unfollowed: int
    """Events of batches up to this one were past their time at the erasure, so they could not show other keys that the
    row had, and what is left under these is not known. 0: the change log had all events."""
    dumps: dict[str, list[int]]
    """Dump files that held the rows, and the places in them. They belong to the owner of the source."""
    retriable_messages: dict[str, list[int]] = {}
    """Messages with the row that stand in quarantine and can be decoded now: file and places."""
    unpaired_events: int = 0
    """Events that may be half of a move of the row to another key, at a place of the log that several rows share: which
    one is the other half is not known."""
    copies: list[str] = []
    """The tables that schema-change tools made of the table, which were searched as well."""
    unkeyed_events: dict[str, int] = {}
    """By such a table, how many of its events do not show the key, so that nobody knows whose they are."""
    published_copies: dict[str, int] = {}
    """By such a table that is published by itself, how many of its events have the key. Nothing was erased from it."""

    @property
    def nothing_found(self) -> bool:
        """Whether no row of the subject is left, in any file; not so if some of its keys or messages may be unknown."""
        unknown = self.unfollowed or self.unread_messages or self.unsearched_messages or self.retriable_messages
        unknown = unknown or self.unkeyed_events or self.published_copies or self.unpaired_events
        return not (unknown or any(place.found or place.unknown_files for place in self.places.values()))

    def as_json(self) -> bytes:
        """Return the certificate as one JSON object."""
        fields = {**msgspec.to_builtins(self), "nothing_found": self.nothing_found}
        return msgspec.json.encode(fields)

    def write(self, home: Path) -> Path:
        """Write the certificate beneath a folder, and return its path."""
        folder = home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.table}-cut{self.cut}-{self.digests[0][:12]}.json"
        path.write_bytes(msgspec.json.format(self.as_json(), indent=2) + b"\n")
        return path


def searched(
    lake: Lake,
    ledger: Ledger,
    subject: ErasedRow,
    places: Places,
    removed: Mapping[str, RowsFound],
    erased: Sequence[Erasure] = (),
) -> dict[str, SearchedTable]:
    """Return every table of the subject's source that may hold its rows, with what is in its files now.

    Args:
        lake: the lake.
        ledger: of the source.
        subject: whose rows.
        places: what a search found now.
        removed: what was removed of each table.
        erased: the erasures; none: every row of the key counts.
    """
    return {
        name: _place(table, edit, removed.get(name, file_edits.NOTHING))
        for name, table, edit in tables_searched(lake, ledger, subject, places, erased)
    }


def compared(lake: Lake, edit: Edit, removed: RowsFound) -> dict[str, SearchedTable]:
    """Return the ledger's comparisons with the source database, as ``searched`` returns the other tables.

    Files that no snapshot has may be young ones, which stay (``purging.purge_shared``). They are searched too.

    Args:
        lake: the lake.
        edit: what takes the subject's keys out of them.
        removed: what was removed.
    """
    table = lake.find(compared_keys.TABLE)
    if table is None:
        return {}
    stored = purging.stored_data_files(table)
    place = _place_among(table, edit, removed, [path for _, path in stored])
    used = purging.files_of(table)
    unused = (files.open_input_file(path) for files, path in stored if path not in used)
    left = sum(pc.sum(edit.holds(rows)).as_py() or 0 for file in unused for rows in pq.ParquetFile(file).iter_batches())
    return {str(compared_keys.TABLE): msgspec.structs.replace(place, found=place.found + left)}


def tables_searched(
    lake: Lake, ledger: Ledger, subject: ErasedRow, places: Places, erased: Sequence[Erasure] = ()
) -> Iterable[tuple[str, Table, Edit]]:
    """Yield every table of the source that may hold rows of the subject, each with what takes them out of it."""
    of_source = subject.source
    erased = copies.apart(erased, subject.names)
    edits = {
        names.raw(of_source): erasures.messages_edit(places.erasable),
        names.change_log(of_source): logs.change_log_edit(subject, places.events),
        names.quarantine(of_source): logs.quarantine_edit(places, subject.names, (), unread=True),
    }
    for identifier, edit in edits.items():
        table = lake.find(identifier)
        if table is not None:
            yield str(identifier), table, edit
    for identifier, table, edit in erasing_cut.tables_of(lake, ledger, subject, erased):
        yield str(identifier), table, edit


def _place(table: Table, edit: Edit, removed: RowsFound) -> SearchedTable:
    return _place_among(table, edit, removed, [path for _, path in purging.stored_files(table)])


def _place_among(table: Table, edit: Edit, removed: RowsFound, stored: Sequence[str]) -> SearchedTable:
    found = file_edits.find(table, edit)
    used = purging.files_of(table)
    return SearchedTable(
        files=len(stored),
        unused_files=sum(path not in used for path in stored),
        removed_rows=removed.rows,
        removed_hidden_rows=removed.skipped,
        rewritten_files=removed.files,
        unknown_files=len(purging.unknown_files(table)),
        found=found.rows + found.skipped,
    )
