"""Published tables as they were: as a cut showed them, or as they were published at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.table import Table

from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.lake.branches import cut_tags
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, beside, cut_tag
from tidemark.lake.properties import SOURCE_PROPERTY
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.text import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A point in the published past. Either cuts are given, or a time."""

    cuts: Sequence[str] = ()
    """``7``, where the query reads tables of one source; else ``erp=7`` for each of them."""
    at: datetime | None = None
    """For each source, the newest cut that was published at this time."""

    def __bool__(self) -> bool:
        """Return whether a point is given; else tables are read as they are."""
        return bool(self.cuts) or self.at is not None


def snapshots(lake: Lake, tables: Mapping[Identifier, Table], as_of: AsOf) -> dict[Identifier, int]:
    """Return for each table the snapshot that it stood on.

    Raises:
        ConfigurationError: a table is not published, or was not then; a cut is not published, not kept any more, or
            the number of another source; or cuts and a time are given.
    """
    if as_of.cuts and as_of.at is not None:
        raise ConfigurationError("give cuts or a time, not both")
    of_source: dict[str, list[Identifier]] = {}
    for identifier, table in sorted(tables.items(), key=lambda each: each[0]):
        if SOURCE_PROPERTY not in table.properties:
            raise ConfigurationError(f"{identifier} is not in any cut: --cut and --at are for published tables")
        of_source.setdefault(table.properties[SOURCE_PROPERTY], []).append(identifier)
    numbers = _numbers(as_of.cuts, list(of_source))
    found: dict[Identifier, int] = {}
    for source, identifiers in of_source.items():
        ledger = Ledger(lake, source)
        cut = numbers[source] if as_of.at is None else _cut_at(ledger, source, as_of.at)
        for identifier in identifiers:
            found[identifier] = _snapshot(ledger, identifier, tables[identifier], cut)
    return found


def _numbers(given: Sequence[str], sources: Sequence[str]) -> dict[str, int]:
    """Return the number of the cut of each source; nothing if no cut is given."""
    numbers: dict[str, int] = {}
    for text in given:
        name, named, number = text.rpartition("=")
        if not named and len(sources) > 1:
            example = " ".join(f"--cut {source}={number}" for source in sources)
            raise ConfigurationError(
                f"each source numbers its own cuts, and the query reads {' and '.join(sources)}: write {example}, "
                "or --at TIME for all of them"
            )
        source = name if named else "".join(sources)
        if source not in sources:
            raise UnknownNameError(f"--cut {text}: the query reads no table of '{source}'.{suggestion(name, sources)}")
        if not number.isdecimal():
            raise ConfigurationError(f"--cut {text}: write a number, as `tidemark status` shows it")
        numbers[source] = int(number)
    if given and (missing := [source for source in sources if source not in numbers]):
        raise ConfigurationError(f"no cut of {missing[0]} is given: write --cut {missing[0]}=N too, or --at TIME")
    return numbers


def _cut_at(ledger: Ledger, source: str, at: datetime) -> int:
    published = [row for row in ledger.cuts(equals("state", CutState.PUBLISHED)) if row.written_at is not None]
    past = [row.cut for row in published if row.written_at is not None and row.written_at <= at]
    if not past:
        first = min((row.written_at for row in published if row.written_at is not None), default=None)
        since = f"its oldest known cut was published at {first.isoformat()}" if first else "it has no published cut"
        raise ConfigurationError(f"{source} had published nothing at {at.isoformat()}: {since}")
    return max(past)


def _snapshot(ledger: Ledger, identifier: Identifier, table: Table, cut: int) -> int:
    """Return the snapshot that a cut showed of a table: the one of the newest cut up to it that changed the table."""
    shown = cuts.shown_by(ledger, cut)
    row = next((row for row in shown.values() if identifier in {row.identifier, *beside(row.identifier)}), None)
    if row is None:
        raise ConfigurationError(f"{identifier} was not published yet in cut {cut}")
    ref = table.refs().get(cut_tag(row.cut))
    if ref is None:
        kept = cut_tags(table)
        retention = f"kept since cut {kept[0]}" if kept else "no cut of it is kept"
        raise ConfigurationError(
            f"{identifier} as of cut {cut} is no longer kept: maintenance (`keep_cuts`, `keep_days`) or an erasure "
            f"removed its snapshot; {retention}"
        )
    return ref.snapshot_id
