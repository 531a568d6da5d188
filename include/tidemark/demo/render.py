"""Rendering the history as the dumps of a source, in the layout of its landing folder.

A new format needs one module with a function from a history to dump files, and one line in ``SOURCES``. The files of
the same names in ``include/sources`` describe the sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tidemark.demo.renderers import (
    canal_json,
    cdl_json,
    datahub_blob,
    datahub_tuple,
    debezium_json,
    dts_avro,
    lindorm,
    replicate_avro,
    replicate_json,
    shareplex_json,
)
from tidemark.demo.renderers.dump import DumpFile, Entry, MessageKind
from tidemark.demo.story.model import ShopHistory
from tidemark.demo.story.renames import renamed
from tidemark.demo.story.shards import sharded
from tidemark.errors import UnknownNameError

SOURCES: Mapping[str, Callable[[ShopHistory], list[DumpFile]]] = {
    "shop_canal": canal_json.dump,
    "shop_cdl": cdl_json.dump,
    "shop_datahub_blob": datahub_blob.dump,
    "shop_datahub_tuple": datahub_tuple.dump,
    "shop_debezium": lambda history: debezium_json.dump(renamed(history)),
    "shop_debezium_bare": debezium_json.dump_bare,
    "shop_dts": dts_avro.dump,
    "shop_lindorm": lindorm.dump,
    "shop_options": lambda history: canal_json.dump(sharded(history)),
    "shop_replicate": replicate_json.dump,
    "shop_replicate_avro": replicate_avro.dump,
    "shop_shareplex": shareplex_json.dump,
}
"""Source -> its renderer."""

STAGING = "late"
"""Folder beside the folders of the sources. ``late/<source>/<day>/`` has the files that ``deliver_late`` delivers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The content of a delivery. Numbers count messages, unless their docstring says otherwise."""

    messages: int = 0
    rows: int = 0
    """Row events. A message of Canal has many; a change of a key is two in Debezium."""
    duplicates: int = 0
    """Row events that were delivered before."""
    ddl: int = 0
    control: int = 0
    """Heartbeats, transaction markers, tombstones."""
    broken: int = 0
    unknown_operation: int = 0

    def __add__(self, other: Counts) -> Counts:
        mine, others = self._parts(), other._parts()
        return Counts(**{name: mine[name] + others[name] for name in mine})

    def _parts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The dumps of one source, which were written."""

    source: str
    files: tuple[Path, ...]
    """In the landing folder, sorted."""
    late_files: tuple[Path, ...]
    """In the staging folder, sorted."""
    days: Mapping[date, Counts]
    """Interval -> its content, without late files."""
    late: Counts

    @property
    def total(self) -> Counts:
        """Everything that was written, late files too."""
        return sum(self.days.values(), self.late)


def render(source: str, history: ShopHistory, landing: Path) -> Rendered:
    """Write the dumps of a source below ``landing/<source>/<YYYY-MM-DD>/``.

    Late files go below ``landing/late/<source>/``. The same history gives the same bytes.

    Raises:
        UnknownNameError: the source is not in ``SOURCES``.
    """
    if source not in SOURCES:
        raise UnknownNameError(f"Unknown demo source '{source}'. Known: {', '.join(SOURCES)}.")
    written: dict[bool, list[Path]] = {False: [], True: []}
    days: defaultdict[date, Counts] = defaultdict(Counts)
    late = Counts()
    for file in SOURCES[source](history):
        first = file.entries[0]
        root = landing / STAGING if first.late else landing
        path = root / source / first.day.isoformat() / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.container(file.entries))
        written[first.late].append(path)
        if first.late:
            late += _count(file.entries)
        else:
            days[first.day] += _count(file.entries)
    return Rendered(
        source=source,
        files=tuple(sorted(written[False])),
        late_files=tuple(sorted(written[True])),
        days=dict(sorted(days.items())),
        late=late,
    )


def deliver_late(source: str, landing: Path) -> list[Path]:
    """Move the late files of a source to the folders of their days; return their new paths.

    A second call finds no files and does nothing.
    """
    staging = landing / STAGING
    delivered = []
    for path in sorted((staging / source).glob("*/*")):
        destination = landing / path.relative_to(staging)
        destination.parent.mkdir(parents=True, exist_ok=True)
        delivered.append(path.replace(destination))
    return delivered


def _count(entries: Iterable[Entry]) -> Counts:
    return sum((_count_one(entry) for entry in entries), Counts())


def _count_one(entry: Entry) -> Counts:
    kind = entry.kind
    return Counts(
        messages=1,
        rows=entry.rows,
        duplicates=entry.rows if entry.duplicate else 0,
        ddl=int(kind is MessageKind.DDL),
        control=int(kind is MessageKind.CONTROL),
        broken=int(kind is MessageKind.BROKEN),
        unknown_operation=int(kind is MessageKind.UNKNOWN_OPERATION),
    )
