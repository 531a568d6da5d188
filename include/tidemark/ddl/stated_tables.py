"""Which table of the source a statement means."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby

from tidemark.ddl.changes import Change, Name, RenameTable, Unparsed
from tidemark.ddl.migrations import originals
from tidemark.ddl.stated import Stated
from tidemark.events import TableId
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow, StatementRow


def meant(named: Name | None, row: StatementRow) -> TableId:
    """Return the table that a statement names; the message completes the parts of its name that are missing."""
    of_message = TableId(row.database, row.schema, row.name or "")
    if named is None:
        return of_message
    parts = named.parts
    if len(parts) == 3:
        return TableId(*parts)
    if len(parts) == 1:
        return TableId(of_message.database, of_message.schema, parts[0])
    return TableId(parts[0], None, parts[1]) if row.dialect == "mysql" else TableId(of_message.database, *parts)


_NAMES = re.compile(r"[\w$#]+")

_AS_IN_THE_CATALOG = frozenset({"oracle", "postgres"})
"""Dialects whose names are read as the catalog has them, with their case (``words.identifier``)."""

_OF_A_DATABASE = re.compile(r"\s*drop\s+(?:database|schema)\b", re.IGNORECASE)


class KnownTables:
    """The tables that have events, as statements name them: in their own spelling, or in another case."""

    def __init__(self, objects: Iterable[str]) -> None:
        """Take the tables, as source files name them."""
        self._alike = {
            folded: tuple(names) for folded, names in groupby(sorted(set(objects), key=_by_case), key=str.casefold)
        }
        self._normal: Callable[[str], str] = (
            str if any(len(names) > 1 for names in self._alike.values()) else str.casefold
        )
        self._has_capitals = any((folded,) != names for folded, names in self._alike.items())

    def alike(self, name: str) -> tuple[str, ...]:
        """Return the tables that have a name, in whatever case."""
        return self._alike.get(name.casefold(), ())

    def __contains__(self, name: str) -> bool:
        """Return whether a table has events, by its name in its own spelling."""
        return name in self.alike(name)

    def claimants(self, named: Name | None, row: StatementRow, *, renames: bool = False) -> tuple[str, ...]:
        """Return the table that a statement means; none if it is not known.

        Returns several tables if it is not certain which one is meant: neither the statement nor its message spells one
        that is known. This is so in three cases. Known tables differ in case only. The statement spells a table without
        events, and a known one differs from it in case only. The message names no database, and several have a table of
        that name.

        Args:
            named: the name in the statement.
            row: the statement with its message.
            renames: whether the statement renames the table, or gives its name to another: then the message may name
                the other one, and says nothing of the case.
        """
        stated, of_message = str(meant(named, row)), str(meant(None, row))
        tables = self.alike(stated)
        spelled = [name for name in (stated, of_message) if name in tables]
        if not tables and named is not None and not row.name:
            tables = self._of_this_name(named, row)
            ending = "." + ".".join(named.parts)
            spelled = [name for name in tables if f".{name}".endswith(ending)]
            spelled = spelled if len(spelled) == 1 and len(set(map(str.casefold, tables))) == 1 else []
        if spelled or len(tables) != 1:
            return tuple(spelled[:1]) or tables
        names_it = bool(row.name) and not (renames and of_message.casefold() != stated.casefold())
        return (*tables, stated) if self._case_matters(row.dialect, names_it=names_it) else tables

    def _of_this_name(self, named: Name, row: StatementRow) -> tuple[str, ...]:
        """Return the known tables of a name whose message names no table: those of its database and schema, if any."""
        parts = (row.schema, *named.parts) if row.schema and len(named.parts) == 1 else named.parts
        ending = "." + ".".join(parts).casefold()
        begin = f"{row.database.casefold()}." if row.database else ""
        found = (names for folded, names in self._alike.items() if f".{folded}".endswith(ending))
        return tuple(name for name in chain.from_iterable(found) if name.casefold().startswith(begin))

    def _case_matters(self, dialect: str, *, names_it: bool) -> bool:
        """Return whether a statement in another case than that of the only known table may mean another one.

        MySQL keeps statements as they were written. Where no table has a capital letter, its server makes all names
        small (``lower_case_table_names=1``, the default of Windows and of several clouds). Names of SQL Server do not
        differ by their case.
        """
        return dialect in _AS_IN_THE_CATALOG or (dialect == "mysql" and names_it and self._has_capitals)

    def perhaps_meant(self, table: Name | None, row: StatementRow) -> tuple[str, ...]:
        """Return the tables that a statement may concern if neither it nor its message names one; else none.

        These are the tables whose names occur in its text. If none occurs, they are all tables of the database or owner
        that the text names. If it names none, they are all tables. If some of these are of the message's database, or
        of one that the text names, only they are returned.
        """
        if table is not None or row.name:
            return ()
        words = set(_NAMES.findall(row.statement.casefold()))
        named = [folded for folded in self._alike if folded.rpartition(".")[2] in words]
        owned = [folded for folded in self._alike if not words.isdisjoint(folded.split(".")[:-1])]
        if _OF_A_DATABASE.match(row.statement):
            found = owned
        else:
            found = named or owned or list(self._alike)
            databases = words | {row.database.casefold()} if row.database else words
            theirs = {folded for folded in found if not databases.isdisjoint(folded.split(".")[:-1])}
            found = [folded for folded in found if folded in theirs or "." not in folded] if theirs else found
        return tuple(chain.from_iterable(self._alike[folded] for folded in found))

    def made_for(self, name: str) -> tuple[str, ...]:
        """Return the tables for which a schema-change tool may have made one of a name; none for any other name."""
        database, dot, own = name.casefold().rpartition(".")
        return tuple(chain.from_iterable(map(self.alike, originals(database + dot, own, self._alike))))

    def normal(self, named: Name | None, row: StatementRow) -> str:
        """Return a name as names are compared: without its case, unless two tables differ in it alone."""
        return self._normal(str(meant(named, row)))

    def renamed_by(self, later: Iterable[Change], named: Name | None, row: StatementRow) -> Name | None:
        """Return the name that a table has behind the rest of a statement, which may rename it, too.

        Events from the statement's position on have that name, and the changes of the statement are for these.
        """
        for change in later:
            if isinstance(change, RenameTable) and self.normal(change.table, row) == self.normal(named, row):
                named = change.new
        return named


def certain(change: Change, claimants: Sequence[str]) -> Change:
    """Return a change of a table, or why it is not followed: it may be of any of several tables."""
    if len(claimants) == 1 or isinstance(change, Unparsed):
        return change
    return Unparsed(change.table, f"it may mean {' or '.join(claimants)}")


def _by_case(name: str) -> tuple[str, str]:
    return name.casefold(), name


def with_events(ledger: Ledger) -> set[str]:
    """Return the tables of a source that have events, as source files name them."""
    return {row["object"] for row in ledger.read(ContentRow.TABLE, columns=("object",))}


def in_turn(rows: Collection[StatementRow], known: KnownTables) -> Iterator[tuple[Stated, Sequence[Change], set[str]]]:
    """Yield the changes by statements, in the order of the source's log.

    Each comes with what the text changes after it, and with the tables that the text renames to.
    """
    if not rows:
        return
    from tidemark.ddl.statements import parse_each  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    for row in sorted(rows, key=lambda row: (row.position, row.batch)):
        parts = enumerate(parse_each(row.statement, row.dialect))
        stated = [Stated(row, change, (number,)) for number, changes in parts for change in changes]
        renames = [each.change for each in stated if isinstance(each.change, RenameTable)]
        arrived = {name for change in renames for name in known.claimants(change.new, row, renames=True)}
        for number, each in enumerate(stated, start=1):
            yield each, [later.change for later in stated[number:]], arrived
