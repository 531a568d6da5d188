"""Members of messages that their format does not know, in the cut whose messages have them for the first time.

A producer that was upgraded writes more members than before. Most of them are of no use for the rows; but a flag may
say that a message has not all of its row. So each member is reported once, with its name and a place, and a person
decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.ledger.member_rows import UnknownMemberRow
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.text import harmless

UNKNOWN_MEMBERS = "members of messages that the format does not know"
"""Name of the check."""


def judged(source: str, format_name: str, rows: Sequence[UnknownMemberRow], severity: Severity) -> SourceResult:
    """Return the finding about unknown members, with the place of a message that has each.

    Args:
        source: name of the source.
        format_name: of its messages.
        rows: of the cut; at least one.
        severity: what the source file says.
    """
    result = CheckResult.of_findings(UNKNOWN_MEMBERS, severity, len(rows))
    sentences = tuple(
        f"{source}: {format_name} does not know the member {harmless(row.member)} of message {row.place} of "
        f"{harmless(row.file)}, and passes over it. Look up what it says: a flag may mark messages that are not whole. "
        "This is reported once"
        for row in sorted(rows, key=lambda row: row.member)
    )
    return SourceResult(result, sentences)
