"""What names the table of a row of Replicate, beside its schema id.

Tables of one structure may have one schema id, and the metadata message of one of them may land later than that of
another. So a row whose id is known is not of the known table if it names another one.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.events import TableId


class TableNames(NamedTuple):
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

        Any name may be that of a topic with rows of several tables. So None is returned for a topic that is not called
        like the table: it denies the table if it is the name of another known one (``schema.table``).
        """
        if self.unique:
            return True
        if self.own is not None:
            schemas = {self.own.schema, table.schema} - {None}
            return self.own.name == table.name and len(schemas) < 2
        return True if self.topic is None or self.topic == str(table) else None
