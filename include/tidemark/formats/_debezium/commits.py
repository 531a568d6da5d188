r"""Places of commits in PostgreSQL's log: messages have them in ``source.sequence``, beside the places of changes.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html (``source.sequence``):

    "source": {"connector": "postgresql", "lsn": 24023128, "sequence": "[\"24023119\",\"24023128\"]"}

The first number is where the last commit ends that the connector has read; null if it has read none. A replication slot
sends transactions in the order of their commits, so this number rises in the order of delivery, while ``lsn``, the
place of the change, does not: a change may lie anywhere before its own commit. All commits before the event's own lie
at or below it, and so do the changes of their transactions.

The connector keeps the number with its offsets. After a restart it goes on with the number of the offset and sends the
changes from there once more. Rows of a load have the number from before the load.
"""

from __future__ import annotations

import re

from tidemark.events import Operation
from tidemark.formats._debezium.source import Source, is_streamed, whole_number

_SEQUENCE = re.compile(r'\s*\[\s*"?([0-9]{1,18})"?\s*,.*', re.ASCII | re.DOTALL)
"""Eighteen digits are more than a log of PostgreSQL has ever reached, and fit into 64 bits."""

_MOST = 10**18


def last_commit(source: Source, operation: Operation) -> tuple[str, int] | None:
    """Return the connector, and where the newest commit before the event's own lies; None if the message is silent."""
    text = source.sequence
    if source.connector != "postgresql" or type(text) is not str or operation is Operation.SNAPSHOT:
        return None
    found = _SEQUENCE.fullmatch(text)
    lsn = source.lsn if type(source.lsn) is int else whole_number(source.lsn)
    if found is None or lsn is None or not 0 < lsn < _MOST or not is_streamed(source):
        return None
    place = int(found[1])
    return (source.name if type(source.name) is str else "", place) if place else None
