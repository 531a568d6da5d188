"""What both kinds of source database offer: the columns of a table, a place in the log, the answers to queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, ClassVar

from tidemark.errors import SourceDatabaseError
from tidemark.events import TableId
from tidemark.reconciliation.connections import Address
from tidemark.reconciliation.kinds import SourceColumn

BATCH = 20_000
"""Rows that are fetched at once."""

CONNECT_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMoment:
    """A moment of the source database: all that a snapshot shows was committed by then."""

    at: datetime
    """By the clock of the database, UTC."""
    text: str | None
    """Place in its log, as it writes it; None if it gives none."""
    sequence: tuple[int, ...] = ()
    """The same as numbers that rise: the log sequence number, or the number of the log file and the offset in it."""
    is_copy: bool = False
    """Whether the database copies another one, and may be behind it."""
    copied: datetime | None = None
    """Of a copy: it had all that the other one had committed by then; None if it does not tell."""

    @property
    def through(self) -> datetime | None:
        """All that the source had committed by then is shown by the snapshot; None if that is not known."""
        return self.copied if self.is_copy else self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table as the source database has it."""

    namespace: str
    """Schema of PostgreSQL, database of MySQL."""
    name: str
    columns: tuple[SourceColumn, ...]


class Database(AbstractContextManager["Database"], ABC):
    """A connection that only reads. Every method raises ``SourceDatabaseError`` if the database fails or refuses."""

    dialect: ClassVar[str]
    _errors: ClassVar[tuple[type[Exception], ...]]
    """Errors of the driver."""
    _address: Address
    _connection: Any

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @abstractmethod
    def begin(self) -> LogMoment:
        """Begin a transaction that sees one moment of the database, and return a place that is not before it."""

    def end(self) -> None:
        """End the transaction."""
        with self._source_errors():
            self._connection.rollback()

    @abstractmethod
    def find(self, table: TableId) -> SourceTable | None:
        """Return a table by the name that the messages have for it; None if the user sees no such table."""

    @abstractmethod
    def rows(self, statement: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows of a query in lists, as they come, without keeping them."""

    @contextmanager
    def _source_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            what = f"the source database of connection '{self._address.name}' failed or refused"
            reason = self._address.without_secrets(error)
            self._recover()
            # Without the driver's error, which may have parts of the address.
            raise SourceDatabaseError(f"{what}: {reason}") from None

    def _recover(self) -> None:
        """Make the connection usable after an error, where that takes anything."""
