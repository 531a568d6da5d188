"""Ledgers of sources that never ran: their rows are written by hand, so that a test needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tidemark.lake import names
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, ContentRow, CutRow, LedgerRow, StatementRow, TableRow
from tidemark.ledger.schemas import BATCHES, FILES
from tidemark.values.iso8601 import EPOCH


class Written:
    """The ledger of one source, to which a test adds cuts."""

    def __init__(self, lake: Lake, source: str) -> None:
        self.lake, self.source = lake, source
        self.ledger = Ledger(lake, source)
        self._rows: dict[type[LedgerRow], list[Any]] = {}

    def cut(
        self,
        number: int,
        tables: Mapping[str, Mapping[str, Any]],
        *,
        state: str = "published",
        checks: Sequence[Mapping[str, Any]] = (),
        quarantined: int = 0,
    ) -> None:
        """Add a cut and the batch of the same number.

        ``tables``: object -> fields of its row that are not as usual; ``checks``: fields of check rows.
        """
        moved = "published" if state == "published" else "candidate"
        rows = [
            TableRow(cut=number, object=name, batch=number, **{"target": f"{self.source}.{name}", "state": moved} | row)
            for name, row in tables.items()
        ]
        events = sum(row.events for row in rows)
        self._add(CutRow(cut=number, state=state, batch=number))
        self._add(*rows)
        self._add(
            BatchRow(
                batch=number,
                landed=events + quarantined + 1,
                decoded=events,
                control=1,
                quarantined=quarantined,
                events=events,
            )
        )
        for row in rows:
            for operation, count in (("INSERT", row.events - row.events // 3), ("UPDATE", row.events // 3)):
                self._add(_content(number, row.object, operation, count))
        usual = {
            "stage": "check",
            "columns": (),
            "severity": "block",
            "success": True,
            "observed": "0",
            "expected": "0",
        }
        for place, check in enumerate(checks):
            self._add(CheckRow(**{"cut": number, "place": place, **usual, **check}))

    def statement(self, batch: int, table: str, text: str) -> None:
        """Add a DDL statement."""
        self._add(
            StatementRow(
                batch=batch,
                database=None,
                schema=None,
                name=table,
                position=f"{batch:08}",
                dialect="mysql",
                statement=text,
                at=moment(batch),
            )
        )

    def write(self) -> None:
        """Write what was added."""
        for kind, rows in self._rows.items():
            self.ledger.replace(kind, rows)
        self._rows.clear()

    def set_aside(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put messages into quarantine."""
        table = self.lake.ensure(names.quarantine(self.source), QUARANTINE, {})
        table.append(pa.Table.from_pylist([dict(row) for row in rows], schema=QUARANTINE))

    def _add(self, *rows: LedgerRow) -> None:
        for row in rows:
            self._rows.setdefault(type(row), []).append(row)


def moment(day: int) -> datetime:
    """Return noon of a day, counted from 2026-03-01."""
    return datetime.fromtimestamp((datetime(2026, 3, 1, 12, tzinfo=UTC) - EPOCH).total_seconds() + 86_400 * day, UTC)


def counts(events: int, *, day: int, rows: int, **others: int) -> dict[str, Any]:
    """Return the fields of a table's row whose events were all applied, but for ``others``."""
    return {
        "events": events,
        "applied": events - sum(others.values()),
        "rows_before": rows - 1,
        "rows_after": rows,
        "deleted": 0,
        "committed_at": moment(day),
        "verdict": "passed",
        **others,
    }


def _content(batch: int, name: str, operation: str, events: int) -> ContentRow:
    return ContentRow(
        batch=batch,
        object=name,
        database=None,
        schema=None,
        name=name,
        operation=operation,
        shape=None,
        partial=False,
        key=None,
        half=False,
        events=events,
    )


def age(lake: Lake, source: str, *, days: int) -> None:
    """Let the batches of a source so far have been long ago, and their files have landed then."""
    past = datetime.now(UTC) - timedelta(days=days)
    for name, schema in (("batches", BATCHES), ("files", FILES)):
        rows = [{**row, "at": past} for row in Ledger(lake, source).read(name)]
        table = lake.load(names.ledger(name))
        table.overwrite(pa.Table.from_pylist(rows, schema=schema), overwrite_filter=equals("source", source))
