"""Which tables of a source are folded into one: its known tables by the names that they have together."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field

from tidemark.compaction import tool_tables
from tidemark.events import TableId
from tidemark.ledger.ledger import BY_HAND, Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import LEFT_BEHIND
from tidemark.sources import routes
from tidemark.sources.model import Source
from tidemark.sources.routes import Route
from tidemark.values.declared_types import matched

_IDENTITY = ("object", "database", "schema", "name", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Where the tables of a source go."""

    folded: Mapping[str, Route] = field(default_factory=dict)
    """By the source's names, the tables that are folded with others."""
    first: Mapping[str, int] = field(default_factory=dict)
    """Batch that the first event of a table came in; empty where nothing is, or was, folded."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """By ``name_of``, the newest batch that has events, up to the batch of the last cut."""
    former: Collection[str] = ()
    """Names that tables were folded under, and are no more."""

    @classmethod
    def of(cls, source: Source, ledger: Ledger, published: Iterable[str], batch: int) -> Routing:
        """Return where the tables that have events go.

        Args:
            source: the source file.
            ledger: of the source.
            published: what was published of it, folded or not.
            batch: of the last cut.
        """
        there = set(published)
        were_folded = set(filter(routes.is_folded, there))
        if not were_folded and not routes.folds_any(source):
            return cls()
        first: dict[str, int] = {}
        newest: dict[str, int] = {}
        rows = ledger.read("contents", columns=_IDENTITY)
        tables = {row["object"]: TableId(row["database"], row["schema"], row["name"]) for row in rows}
        found = {name: routes.route_of(source, table) for name, table in tables.items()}
        for name in _left_out(source, tables, found, there):
            del found[name]
        for row in rows:
            if (name := row["object"]) not in found:
                continue
            first[name] = min(row["batch"], first.get(name, row["batch"]))
            if row["batch"] <= batch:
                into = found[name].folded or name
                newest[into] = max(row["batch"], newest.get(into, 0))
        folded = {name: route for name, route in found.items() if route.folded}
        former = were_folded - {route.folded for route in folded.values()}
        return cls(folded=folded, first=first, newest=newest, former=former)

    def name_of(self, table: str) -> str:
        """Return the name that a table is built by: its own, or the name of the tables that it is folded with."""
        route = self.folded.get(table)
        return table if route is None or route.folded is None else route.folded

    @property
    def names(self) -> set[str]:
        """The names of what tables are folded into."""
        return {self.name_of(table) for table in self.folded}

    def shards_of(self, name: str) -> list[str]:
        """Return the tables that are folded under a name, sorted; none for a table of its own."""
        return sorted(table for table in self.folded if self.name_of(table) == name) if routes.is_folded(name) else []

    def stays(self, name: str, own: Container[str], published: Container[str]) -> bool:
        """Return whether a table of a schema-change tool is published already, alone or with others of tools.

        Args:
            name: of the table.
            own: the tables that tools made.
            published: what is published.
        """
        into = self.name_of(name)
        return into in published and all(each in own for each in self.shards_of(into))

    def current(self, published: Mapping[str, TableRow]) -> dict[str, TableRow]:
        """Return the rows of tables that are still made as they were published."""
        names = self.names
        return {
            name: row
            for name, row in published.items()
            if name not in self.folded and (name in names or not routes.is_folded(name))
        }

    def behind(self, published: Mapping[str, TableRow]) -> dict[str, int]:
        """Return what lacks events of the last cut or an earlier one, each with the batch that it stands at.

        Its tables were folded otherwise then: so it was not built, or was never there.

        Args:
            published: ``current``.
        """
        entries = {routes.entry_of(name) for name in self.former}
        own = self.first.keys() - self.folded.keys()
        apart = {name for name in own if any(matched(each, name) for each in entries)}
        never = {name: 0 for name in self.names | apart if name in self.newest and name not in published}
        there = {name: row for name, row in published.items() if row.state not in LEFT_BEHIND}
        late = {name: row.batch for name, row in there.items() if row.batch < self.newest.get(name, 0)}
        return late | never

    def requests(self, ledger: Ledger) -> dict[str, str]:
        """Return the requests to build tables again; one of a folded table is one of what it is folded into."""
        requests = ledger.rebuild_requests()
        if moved := requests.keys() & self.folded.keys():
            by_hand = any(requests[table].endswith(BY_HAND) for table in moved)
            ledger.request_rebuild((self.name_of(table) for table in moved), by_hand=by_hand)
            ledger.answered({table: requests[table] for table in moved})
            requests = ledger.rebuild_requests()
        return requests


def _left_out(
    source: Source, tables: Mapping[str, TableId], found: Mapping[str, Route], published: Collection[str]
) -> list[str]:
    """Return the tables that schema-change tools made, and that go where none but others of these do.

    They are not published, but for those that were: so nothing is behind for their sake.

    Args:
        source: the source file.
        tables: that have events, by the source's names.
        found: where each of them goes.
        published: what was published of the source.
    """
    own = tool_tables.unpublished(source, {name: table.name for name, table in tables.items()})
    into = {name: route.folded or name for name, route in found.items()}
    kept = {into[name] for name in tables.keys() - own} | {*published}
    return [name for name in own if into[name] not in kept]
