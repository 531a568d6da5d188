"""What changed in a source file since messages were last read by it, and what applies it to what landed before.

A changed source file counts for what lands from then on. What landed before stays as it was read, and that does not
show by itself. So a run reports it, and ``tidemark plan`` shows it before a run. The ledger keeps what the source file
said when messages were last read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import structlog

from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import SourceFileRow
from tidemark.sources.choices import MaskAt, OnFail
from tidemark.sources.model import Source, Table
from tidemark.sources.schema_policy import SchemaPolicies

log = structlog.get_logger(__name__)


class Need(StrEnum):
    """What a change needs before it takes effect on what landed before."""

    NOTHING = "nothing"
    """It counts from the next run on, and has no effect on what landed before."""
    RUN = "run"
    """The next run that has new events of the table applies it."""
    RETRY = "quarantine retry"
    REBUILD = "rebuild"
    REPROCESS = "run --reprocess"


NEEDS: Final[Mapping[str, Need]] = {
    "format": Need.REPROCESS,
    "options": Need.REPROCESS,
    "encodings": Need.REPROCESS,
    "log_restarts": Need.REPROCESS,
    "reloads": Need.REPROCESS,
    "mask_at": Need.REPROCESS,
    "columns": Need.REBUILD,
    "key": Need.REBUILD,
    "max_message_mib": Need.RETRY,
    "target": Need.RUN,
    "add": Need.RUN,
    "schema": Need.RUN,
    "deletes": Need.RUN,
    "history": Need.RUN,
    "feed": Need.RUN,
    "migration_tables": Need.RUN,
    "undelivered": Need.RUN,
    "transactions": Need.RUN,
    "select": Need.RUN,
    "exclude": Need.RUN,
    "rename": Need.RUN,
    "mask": Need.RUN,
    "where": Need.RUN,
    "derive": Need.RUN,
    "layout": Need.RUN,
}
"""Part of the source file -> what it needs. A part that is not here needs nothing."""

_AGAIN: Final = "`tidemark run {0} --reprocess` reads it again, `tidemark quarantine retry {0}` what was set aside"

_ANEW: Final = "`tidemark rebuild {0} TABLE` folds a table again, `tidemark quarantine retry {0}` what was set aside"

_COMMANDS: Final[Mapping[Need, str]] = {
    Need.REPROCESS: _AGAIN,
    Need.REBUILD: _ANEW,
}
"""Need -> the commands that a run names. Other needs are met without a person, or concern the quarantine alone."""

KEEPING_BACK: Final = frozenset({OnFail.QUARANTINE, OnFail.KEEP_LAST_GOOD})
"""``on_fail`` of checks that decide which rows a table is built of."""

_NAMED: Final = frozenset({"options", "columns", "encodings", "maintenance"})
"""Parts that are compared name by name."""

_NEVER_SHOWN: Final = "landing"
"""A path may hold the keys of its store: only its digest is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFileChange:
    """One thing that the source file says otherwise than before."""

    part: str
    """Key of the source file, or of an entry of ``tables``."""
    entry: str | None = None
    """The entry of ``tables``; None for a part of the source."""
    name: str | None = None
    """Column or option, where the part is a mapping."""
    before: Any = None
    """None: it was not given, and the default counted."""
    after: Any = None
    at_landing: bool = False
    """Whether the source masks at landing: then only the messages have the values that another mask needs."""

    @property
    def place(self) -> str:
        """Where it stands in the source file: ``tables.shop.orders.columns.total``."""
        table = f"tables.{self.entry}." if self.entry else ""
        return f"{table}{self.part}{f'.{self.name}' if self.name else ''}"

    @property
    def need(self) -> Need:
        """What the change needs, judged by the source file alone."""
        if self.part == "checks" and any(
            each.get("on_fail") in KEEPING_BACK for each in (*(self.before or ()), *(self.after or ()))
        ):
            return Need.RUN
        if self.part == "mask" and self.at_landing:
            return Need.REPROCESS
        return NEEDS.get(self.part, Need.NOTHING)

    def __str__(self) -> str:
        """Return the place, with the value before and now."""
        if self.part == _NEVER_SHOWN:
            return f"{self.place}: another path"
        return f"{self.place}: {_shown(self.before)} -> {_shown(self.after)}"


def declared_by(source: Source) -> dict[str, Any]:
    """Return what the source file says, without defaults, as JSON's own types, in the order of names."""
    return dict(json.loads(json.dumps(said_by(source), sort_keys=True)))


def said_by(source: Source) -> dict[str, Any]:
    """Return what the source file says, without defaults, in its own order."""
    said: dict[str, Any] = source.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"source"})
    said["format"] = source.format
    said["options"] = source.options.model_dump(mode="json", exclude_defaults=True)
    said[_NEVER_SHOWN] = hashlib.sha256(source.landing.encode()).hexdigest()[:16]
    said["tables"] = {name: _said_by_entry(table) for name, table in source.tables.items()}
    return said


def _said_by_entry(table: Table) -> dict[str, Any]:
    said = table.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if isinstance(table.schema_policy, SchemaPolicies):  # a policy that is written counts before that of the source
        said["schema"] = table.schema_policy.model_dump(mode="json", exclude_unset=True)
    return said


def since(before: Mapping[str, Any], source: Source) -> list[SourceFileChange]:
    """Return what the source file says otherwise than ``declared_by`` did; parts of the source come first."""
    now = declared_by(source)
    found = list(_compared(_but_tables(before), _but_tables(now), None))
    then_tables, now_tables = before.get("tables", {}), now["tables"]
    for entry in sorted(then_tables.keys() | now_tables.keys()):
        found += _compared(then_tables.get(entry, {}), now_tables.get(entry, {}), entry)
    return [replace(change, at_landing=source.mask_at is MaskAt.LANDING) for change in found]


def known(ledger: Ledger) -> dict[str, Any] | None:
    """Return what the source file said when messages were last read; None if none were, or if nobody noted it."""
    rows = ledger.source_files()
    return json.loads(rows[-1].declared) if rows else None


def remember(ledger: Ledger, source: Source, batch: int) -> None:
    """Note what the source file says, as all new messages up to a batch were read by it."""
    said = json.dumps(declared_by(source), sort_keys=True)
    if said not in {row.declared for row in ledger.source_files()}:
        ledger.note_source_file(SourceFileRow(batch=batch, declared=said))


def without_effect(source: Source, ledger: Ledger) -> list[SourceFileChange]:
    """Return the changes that have no effect on what landed before, judged by the source file alone."""
    before = known(ledger)
    return [] if before is None else [change for change in since(before, source) if change.need in _COMMANDS]


def warn(source: Source, changes: Sequence[SourceFileChange]) -> None:
    """Log changes that have no effect on what landed before, part by part."""
    for part in NEEDS:
        if of_part := [change for change in changes if change.part == part]:
            log.warning(
                "source_file_changed",
                source=source.source,
                part=part,
                changes="; ".join(map(str, of_part)),
                effect="counts for what lands from now on; what landed before stays as it was read",
                command=_command(source.source, of_part[0].need),
            )


def remarks(source: str, changes: Iterable[SourceFileChange]) -> Iterator[str]:
    """Yield a sentence for each change, with the command that applies it to what landed before."""
    for change in changes:
        yield f"source file of {source}: {change}; what landed before stays: {_command(source, change.need)}"


def _command(source: str, need: Need) -> str:
    return _COMMANDS[need].format(source)


def _but_tables(said: Mapping[str, Any]) -> dict[str, Any]:
    return {part: value for part, value in said.items() if part != "tables"}


def _compared(then: Mapping[str, Any], now: Mapping[str, Any], entry: str | None) -> Iterator[SourceFileChange]:
    for part in sorted(then.keys() | now.keys()):
        before, after = then.get(part), now.get(part)
        if before == after:
            continue
        if part not in _NAMED:
            yield SourceFileChange(part=part, entry=entry, before=before, after=after)
            continue
        one, other = before or {}, after or {}
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                yield SourceFileChange(part=part, entry=entry, name=name, before=one.get(name), after=other.get(name))


def _shown(value: object) -> str:
    if value is None:
        return "(default)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
