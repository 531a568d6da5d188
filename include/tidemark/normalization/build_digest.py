"""What a source file says about building tables, as one digest: a cut keeps it, so that no other file publishes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from tidemark.ledger.contradiction_rows import IN_WORDS
from tidemark.ledger.rows import CutRow
from tidemark.normalization.source_changes import KEEPING_BACK, NEEDS, Need, said_by
from tidemark.sources.choices import Consequence
from tidemark.sources.model import Source
from tidemark.sources.schema_policy import New
from tidemark.values.declared_types import is_pattern, matched

_WITHOUT: Final = " without "
_BUILDING: Final = {part for part, need in NEEDS.items() if need is not Need.RETRY} | {"mask_secret"}
"""Parts of a source file, and of its entries of ``tables``, that decide what a table is built of and how."""


def build_digest(source: Source) -> str:
    """Return a digest of what a source file says about building tables; limits and checks alone leave it as it is.

    The order of the file counts: of several patterns, the first that fits a table or a column does.
    """
    said = said_by(source)
    parts = {part: said[part] for part in sorted(said) if part in _BUILDING}
    building = {name: _of_entry(entry) for name, entry in said["tables"].items()}
    entries = [(name, entry) for name, entry in building.items() if entry or _has_effect(source, name, building)]
    return hashlib.sha256(json.dumps([parts, entries]).encode()).hexdigest()[:16]


def built_by(source: Source) -> str:
    """Return what a cut that is built now keeps: the digest, and the contradictions that nobody looks for.

    ``4a5be60cd12f4711 without before_images, missing_rows``, or the digest alone.
    """
    unsought = sorted(_unsought(source))
    return build_digest(source) + (f"{_WITHOUT}{', '.join(unsought)}" if unsought else "")


def is_built_by_another(cut: CutRow, source: Source) -> bool:
    """Return whether a cut was built when the source file said otherwise how to build; of old cuts nobody knows.

    Compact is what looks for contradictions. Of one that was off by then, the cut says nothing, and check would find
    none. One that is off by now changes nothing: check passes over it.
    """
    if cut.built_by is None:
        return False
    digest, _, unsought = cut.built_by.partition(_WITHOUT)
    return digest != build_digest(source) or not set(filter(None, unsought.split(", "))) <= _unsought(source)


def _unsought(source: Source) -> set[str]:
    return {kind for kind in IN_WORDS if getattr(source.invariants, kind) is Consequence.OFF}


def _of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    found = {part: entry[part] for part in sorted(entry) if part in _BUILDING}
    checks = [check for check in entry.get("checks", ()) if check.get("on_fail") in KEEPING_BACK]
    return {**found, "checks": checks} if checks else found


def _has_effect(source: Source, name: str, building: Mapping[str, object]) -> bool:
    """Return whether an entry that says nothing about building decides by its name how a table is built.

    It hides a pattern behind it, or it names a table that the source file has to name.
    """
    if source.policies_for(name).table is New.HOLD:
        return True
    patterns = [each for each, said in building.items() if said and is_pattern(each)]
    return any(is_pattern(name) or matched(each, name) for each in patterns)
