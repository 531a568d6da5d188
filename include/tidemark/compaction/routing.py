"""Which tables of a source are folded into one: its known tables by the names that they have together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidemark.events import TableId
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.sources import routes
from tidemark.sources.model import Source
from tidemark.sources.routes import Route

_IDENTITY = ("object", "database", "schema", "name", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Where the tables of a source go."""

    folded: Mapping[str, Route] = field(default_factory=dict)
    """By the source's names, the tables that are folded with others."""
    first: Mapping[str, int] = field(default_factory=dict)
    """Batch that the first event of a table came in; empty where nothing is, or was, folded."""

    @classmethod
    def of(cls, source: Source, ledger: Ledger, published: Iterable[str]) -> Routing:
        """Return where the tables that have events go.

        Args:
            source: the source file.
            ledger: of the source.
            published: what was published of it, folded or not.
        """
        folds = any(routes.folds(name, entry) for name, entry in source.tables.items())
        if not folds and not any(map(routes.is_folded, published)):
            return cls()
        known: dict[str, TableId] = {}
        first: dict[str, int] = {}
        for row in ledger.read("contents", columns=_IDENTITY):
            known[row["object"]] = TableId(row["database"], row["schema"], row["name"])
            first[row["object"]] = min(row["batch"], first.get(row["object"], row["batch"]))
        found = {name: routes.route_of(source, table) for name, table in known.items()}
        return cls(folded={name: route for name, route in found.items() if route.folded}, first=first)

    def name_of(self, table: str) -> str:
        """Return the name that a table is built by: its own, or that of the tables that it is folded with."""
        route = self.folded.get(table)
        return table if route is None or route.folded is None else route.folded

    @property
    def names(self) -> set[str]:
        """The names of what tables are folded into."""
        return {self.name_of(table) for table in self.folded}

    def shards_of(self, name: str) -> list[str]:
        """Return the tables that are folded under a name, sorted; none for a table of its own."""
        return sorted(table for table in self.folded if self.name_of(table) == name) if routes.is_folded(name) else []

    def current(self, published: Mapping[str, TableRow]) -> dict[str, TableRow]:
        """Return the rows of tables that are still made as they were published."""
        names = self.names
        return {
            name: row
            for name, row in published.items()
            if name not in self.folded and (name in names or not routes.is_folded(name))
        }

    def begins(self, published: Mapping[str, TableRow], batch: int) -> set[str]:
        """Return what was never published as it is made now, and has events of the batches up to ``batch``."""
        earlier = {self.name_of(table) for table, first in self.first.items() if first <= batch}
        return earlier - published.keys()

    def requests(self, ledger: Ledger) -> dict[str, str]:
        """Return the requests to build tables again; one of a folded table is one of what it is folded into."""
        asked = ledger.rebuild_requests()
        if moved := asked.keys() & self.folded.keys():
            ledger.request_rebuild(self.name_of(table) for table in moved)
            ledger.answered(asked[table] for table in moved)
            asked = ledger.rebuild_requests()
        return asked
