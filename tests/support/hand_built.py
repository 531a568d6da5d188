"""Cuts of tables with one column, built without Spark."""

from __future__ import annotations

from itertools import count

import pyarrow as pa

from tidemark.lake.branches import branch_from_main
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, candidate_branch, moved_together
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState

SCHEMA = pa.schema([("id", pa.int64())])
TABLES = ("one", "two")
_numbers = count(1)


class Source:
    """A source with tables of one column, whose candidates are built without Spark."""

    def __init__(self, lake: Lake, name: str | None = None) -> None:
        self.lake = lake
        self.name = name or f"cuts_{next(_numbers)}"
        self.ledger = Ledger(lake, self.name)

    def target(self, table: str) -> Identifier:
        """Return where a table is published."""
        return Identifier(self.name, table)

    def build(self, number: int, state: CutState = CutState.CHECKED, *, stopped: str | None = None) -> CutRow:
        """Build the cut: each table gets the row ``number``; one may be stopped instead."""
        rows = []
        for table in TABLES:
            if table == stopped:
                rows.append(
                    TableRow(cut=number, object=table, state=TableState.STOPPED, reason="why", batch=number - 1)
                )
                continue
            for identifier in moved_together(self.target(table)):
                made = self.lake.ensure(identifier, SCHEMA, {})
                branch = branch_from_main(made, candidate_branch(number))
                branch.append(pa.table({"id": [number]}, SCHEMA), branch=candidate_branch(number))
            rows.append(
                TableRow(
                    cut=number,
                    object=table,
                    target=str(self.target(table)),
                    state=TableState.CANDIDATE,
                    batch=number,
                    rebuilt="asked" if table == "two" and number == 1 else None,
                    rows_before=number - 1,
                    rows_after=number,
                )
            )
        cut = CutRow(cut=number, state=state, batch=number)
        self.ledger.replace(TableRow, rows, equals("cut", number))
        self.ledger.replace(CutRow, [cut], equals("cut", number))
        return cut

    def publish(self, number: int) -> None:
        """Build and publish a cut."""
        cuts.publish(self.lake, self.ledger, self.build(number))

    def rows(self, table: str) -> list[int]:
        """Return what readers of a table see."""
        return sorted(self.lake.load(self.target(table)).scan().to_arrow().column("id").to_pylist())

    def seen(self) -> dict[str, object]:
        """Return all that a crash could leave half done."""
        refs = {
            str(identifier): sorted(self.lake.load(identifier).refs())
            for table in TABLES
            for identifier in moved_together(self.target(table))
        }
        states = {row.cut: row.state for row in self.ledger.cuts()}
        tables = {(row.cut, row.object): row.state for row in self.ledger.tables()}
        return {
            "rows": {table: self.rows(table) for table in TABLES},
            "refs": refs,
            "cuts": states,
            "tables": tables,
            "requests": self.ledger.rebuild_requests(),
        }
