"""Checks that ``tidemark init`` proposes: what all rows of the sample have in common. A person knows what is meant.

Rows of a sample are few, and of one time. So a proposal is a comment, and only what many rows agree on is proposed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from tidemark.cli.column_lines import scalar
from tidemark.errors import UnreadableValueError
from tidemark.events import ChangeEvent, Column
from tidemark.values.plain import read_value

_FEWEST = 30
"""Rows of a table from which on something is proposed."""

_MOST = 10_000
"""Rows of a table that are looked at."""

_SET, _TIMES, _LONGEST = 8, 5, 40
"""A column is a set of words if it has at most so many, each so often on average, none of them longer."""

_SHOWN = 12
"""Most proposals for a table."""

_NUMBERS = ("int", "long", "float", "double", "decimal")

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(slots=True)
class _Values:
    """What the rows have in one column."""

    column: Column
    values: int = 0
    """Values that are not null."""
    negative: bool = False
    unread: bool = False
    """Whether a value is no number."""
    words: set[str] | None = field(default_factory=set)
    """The texts; None: there are too many, or values that are no short text."""

    def add(self, raw: bytes) -> None:
        self.values += 1
        value = _read(raw, self.column)
        if isinstance(value, Decimal):
            self.negative |= value < 0
        else:
            self.unread = True
        if self.words is not None and isinstance(value, str) and raw[:1] == b'"' and len(value) <= _LONGEST:
            self.words.add(value)
            self.words = self.words if len(self.words) <= _SET else None
        else:
            self.words = None


def _read(raw: bytes, column: Column) -> object:
    """Return a value; where the messages have no type, a number in JSON is a number. None if it cannot be read."""
    kind = column.type or ("decimal" if raw[:1] in b"-0123456789" else "")
    try:
        if not kind.startswith(_NUMBERS):
            return read_value(raw, column)
        number = Decimal(str(read_value(raw, column)))
    except (UnreadableValueError, ArithmeticError):
        return None
    return number if number.is_finite() else None


class Rows:
    """The rows that the sample has of one table: whole after images."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.rows = 0
        self._columns: dict[str, _Values] = {}

    def add(self, event: ChangeEvent) -> None:
        """Take note of the row that an event leaves, if the event has the whole row."""
        if event.after is None or event.partial or event.shape is None or self.rows >= _MOST:
            return
        self.rows += 1
        members = _members.decode(event.after)
        for column in event.shape.columns:
            raw = bytes(members.get(column.name, b"null"))
            if raw != b"null":
                self._columns.setdefault(column.name, _Values(column)).add(raw)

    def checks(self, kinds: Mapping[str, str]) -> list[str]:
        """Return the proposals as entries of ``checks``.

        Args:
            kinds: column -> its type in the published table, for the columns that something may be proposed for.
        """
        if self.rows < _FEWEST:
            return []
        found = {name: values for name, values in self._columns.items() if name in kinds}
        telling = [line for name, values in found.items() for line in _telling(name, values, kinds[name])]
        whole = [scalar(name) for name, values in found.items() if values.values == self.rows]
        return [*telling, *(f"{{type: expect_column_values_to_not_be_null, column: {name}}}" for name in whole)][
            :_SHOWN
        ]


def _telling(name: str, values: _Values, kind: str) -> Iterator[str]:
    """Yield what the values of a column have in common."""
    if values.values < _FEWEST:
        return
    if kind.startswith(_NUMBERS) and not values.negative and not values.unread:
        yield f"{{type: expect_column_values_to_be_between, column: {scalar(name)}, min_value: 0}}"
    if kind == "string" and values.words and values.values >= _TIMES * len(values.words):
        words = ", ".join(map(json.dumps, sorted(values.words)))
        column = scalar(name)
        yield f"{{type: expect_column_values_to_be_in_set, column: {column}, value_set: [{words}], severity: warn}}"
