"""The stockroom of the shop: a table without a key. Its history is the same at any scale and seed.

Scans begin on day 2, so the table is new to a source that has run before. Most of its changes concern rows that equal
other rows, so that one scan too many or too few shows in the result. On day 2 the table is emptied between late scans.
On day 3 a column is renamed. On day 4 one column is dropped, and another is added with a default.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

from tidemark.demo.story.database import Database
from tidemark.demo.story.model import Row, SchemaEvent
from tidemark.demo.story.schemas import STOCK_SCANS, STOCK_SCANS_BY_SCANNER, STOCK_SCANS_LOCATED, create_table

TABLE = STOCK_SCANS.table

_ON = date(2026, 1, 2)


def _scan(sku: str, shelf: str | None, price: str, note: str | None = None) -> Row:
    return {
        "sku": sku,
        "shelf": shelf,
        "pieces": 1,
        "price": Decimal(price),
        "scanned_on": _ON,
        "note": note,
    }


TEA = _scan("SKU-TEA", "A1", "1.10")

SALT = _scan("SKU-SALT", None, "0.00", "")

MUG = _scan("SKU-MUG", "B2", "12.50", "chipped")

WHOLE_MUG = _scan("SKU-MUG", "B2", "12.50")

SOAP = _scan("SKU-SOAP", "", "3.00", "two\nlines")


class Stockroom:
    """Scenes of the stockroom. A scene commits its transactions itself, unless its method says that the caller does."""

    def __init__(self, db: Database, tick: Callable[[], datetime]) -> None:
        self._db = db
        self._tick = tick

    def open(self) -> None:
        """Create the table, load the scans that were counted on paper, and scan more."""
        self._define(SchemaEvent(kind="CREATE", statement=create_table(STOCK_SCANS), schema=STOCK_SCANS))
        for scan in (TEA, TEA, SALT, MUG):
            self._db.load(TABLE, scan)
        self._commit()
        self._insert(TEA, TEA, SOAP)
        self._commit()
        self._db.delete_one(TABLE, TEA)
        self._db.replace_one(TABLE, SALT, shelf="A1")
        self._commit()

    def scan_late_below(self) -> None:
        """Add scans that the later TRUNCATE removes, and take one back; delivered late."""
        self._insert(TEA, MUG)
        self._db.delete_one(TABLE, SOAP)
        self._commit(late=True)

    def count_anew(self) -> None:
        """Empty the table and begin again with scans that equal each other, and some of the removed ones."""
        statement = f"TRUNCATE TABLE `shop`.`{TABLE}`"
        self._define(SchemaEvent(kind="TRUNCATE", statement=statement, schema=STOCK_SCANS))
        self._insert(TEA, TEA, SALT, MUG, WHOLE_MUG)
        self._commit()

    def scan_late_above(self) -> None:
        """Add scans, and change scans that ``count_anew`` added; delivered late."""
        self._insert(TEA, SOAP)
        self._db.delete_one(TABLE, SALT)
        self._db.replace_one(TABLE, MUG, pieces=2)
        self._commit(late=True)

    def give_up(self) -> None:
        """Roll back a transaction of two statements, the second in the dump of the next day."""
        self._insert(TEA, TEA)
        self._db.delete_one(TABLE, WHOLE_MUG)
        self._db.roll_back(self._tick(), split=True)

    def close_the_day(self) -> None:
        """Add the scans that the tools send again after a restart."""
        self._insert(TEA, TEA, SALT)
        self._commit()
        self._db.delete_one(TABLE, TEA)
        self._commit()

    def take_out(self) -> None:
        """Take out one scan; the caller commits."""
        self._db.delete_one(TABLE, TEA)

    def put_back(self) -> None:
        """Add an equal scan again; the caller commits."""
        self._insert(TEA)

    def rename_shelf(self) -> None:
        """Rename the column ``shelf`` to ``location``; take out an earlier scan, and add one that equals others."""
        statement = f"ALTER TABLE `shop`.`{TABLE}` RENAME COLUMN `shelf` TO `location`"
        renamed = {"location": "shelf"}
        self._define(SchemaEvent(kind="ALTER", statement=statement, schema=STOCK_SCANS_LOCATED, renamed=renamed))
        self._db.delete_one(TABLE, _located(TEA))
        self._insert(_located(TEA), {**_located(SALT), "note": "damp"})
        self._db.replace_one(TABLE, _located(WHOLE_MUG), location="C3")
        self._commit()

    def name_scanners(self) -> None:
        """Drop the note, so that more scans are equal, and add the scanner, which is a hand for all scans so far."""
        clauses = "DROP COLUMN `note`, ADD COLUMN `scanner` varchar(20) NOT NULL DEFAULT 'hand'"
        statement, defaults = f"ALTER TABLE `shop`.`{TABLE}` {clauses}", {"scanner": "hand"}
        self._define(SchemaEvent(kind="ALTER", statement=statement, schema=STOCK_SCANS_BY_SCANNER, defaults=defaults))
        tea = {**_located(TEA), "scanner": "hand"}
        self._db.delete_one(TABLE, tea)
        self._db.replace_one(TABLE, tea, scanner="gun")
        self._insert({**tea, "scanner": "gun"}, tea)
        self._commit()

    def _insert(self, *scans: Row) -> None:
        for scan in scans:
            self._db.insert(TABLE, scan)

    def _commit(self, *, late: bool = False) -> None:
        self._db.commit(self._tick(), late=late)

    def _define(self, ddl: SchemaEvent) -> None:
        self._db.define(self._tick(), ddl)


def _located(scan: Row) -> Row:
    return {("location" if name == "shelf" else name): value for name, value in scan.items()}
