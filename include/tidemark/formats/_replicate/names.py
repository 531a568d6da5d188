"""What names the table of a row of Replicate, beside its schema id.

Tables of one structure may have one schema id, and the metadata message of one of them may land later than that of
another. So a row whose id is known is not of the known table if it names another one.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from tidemark.events import TableId

_SPELLING = re.compile(r"[^0-9a-z]")
"""What a topic may have in another way than its table: Kafka allows few characters, and some topics are lower case."""


class Names(NamedTuple):
    """The names of a row's table."""

    own: TableId | None = None
    """The table that the message itself names."""
    topic: str | None = None
    option: TableId | None = None
    """The table that the option names, for messages that name none."""
    unique: bool = False
    """Whether the source file says that each schema id is of one table."""

    def fit(self, table: TableId) -> bool | None:
        """Return whether a row with a schema id of this table may be of it, as the message or else its topic says.

        None is returned for a topic that says it only if it is the name of another known table.
        """
        if self.unique:
            return True
        if self.own is not None:
            schemas = {self.own.schema, table.schema} - {None}
            return self.own.name == table.name and len(schemas) < 2
        return self.topic is None or _fits(self.topic, table)


@functools.lru_cache(maxsize=4096)
def _fits(topic: str, table: TableId) -> bool | None:
    """Return whether a topic may have rows of a table; None if it may be called after a table of another schema.

    Replicate calls the topic of one table ``schema.table``. A topic for several tables may have any name.
    """
    schema, _, name = topic.partition(".")
    if not name or "." in name or table.schema is None or topic == str(table):
        return True
    if _spelled(schema) != _spelled(table.schema):
        return None
    return _spelled(name) == _spelled(table.name)


def _spelled(name: str) -> str:
    return _SPELLING.sub("_", name.casefold())
