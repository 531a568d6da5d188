"""How a source file says that messages are read, and whether the change log was written by another one.

A changed source file counts for what lands from then on. What landed before stays as it was read, and that does not
show by itself: so a run tells it, with the command that reads it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import structlog
from pyiceberg.table import Table

from tidemark.lake.branches import marker
from tidemark.sources.model import Source

log = structlog.get_logger(__name__)

MARKER = "read_as"
"""Marker of the change log: what its newest batch was read by (``told_by``)."""

_AGAIN = "`tidemark run {0} --reprocess` reads it again, `tidemark quarantine retry {0}` what was set aside"

_COMMANDS: Mapping[str, str] = {
    "format": _AGAIN,
    "options": _AGAIN,
    "encodings": _AGAIN,
    "log_restarts": _AGAIN,
    "reloads": _AGAIN,
    "columns": "`tidemark rebuild {0} TABLE` folds a table again, `tidemark quarantine retry {0}` what was set aside",
}
"""Part of the source file -> what applies it to earlier messages."""


def told_by(source: Source) -> str:
    """Return a digest of each part of the source file that decides how messages are read, as JSON."""
    parts = {
        "format": source.format,
        "options": source.options.model_dump(mode="json", exclude_defaults=True),
        "encodings": {name: table.encodings for name, table in source.tables.items() if table.encodings},
        "columns": {name: table.columns for name, table in source.tables.items() if table.columns},
        "log_restarts": source.log_restarts,
        "reloads": {name: table.reloads for name, table in source.tables.items() if table.reloads},
    }
    digests = {name: json.dumps(part, sort_keys=True, default=str).encode() for name, part in parts.items()}
    return json.dumps({name: hashlib.sha256(text).hexdigest()[:16] for name, text in digests.items()})


def warn_of_changes(source: Source, changelog: Table) -> list[str]:
    """Log which parts of the source file are other than when the change log was written, and return them."""
    before = marker(changelog, MARKER)
    if before is None:
        return []
    then, now = json.loads(before), json.loads(told_by(source))
    changed = [part for part in _COMMANDS if then.get(part, now[part]) != now[part]]
    for part in changed:
        log.warning(
            "source_file_changed",
            source=source.source,
            part=part,
            effect="counts for what lands from now on; what landed before stays as it was read",
            command=_COMMANDS[part].format(source.source),
        )
    return changed
