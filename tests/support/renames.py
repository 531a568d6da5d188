"""Histories of tables that are renamed, and the logs of them as formats write them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any, Protocol

from support import debezium_log, dts_records

Rows = dict[int, str]
Message = bytes


class TableLog(Protocol):
    """The log of one table."""

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """An update (where there is a row before) or an insert."""

    def delete(self, at: int, **row: Any) -> Message:
        """A row went."""

    def statement(self, at: int, text: str) -> Message:
        """A whole statement."""


Written = Callable[[str], TableLog]


class Database:
    """A database whose tables are written and renamed one step after another, and the log of it."""

    def __init__(self, *names: str, written: Written) -> None:
        self.tables: dict[str, Rows] = {name: {} for name in names}
        self.log: list[Message] = []
        self.named = set(names)
        """All names that tables ever had."""
        self._written = written

    @property
    def at(self) -> int:
        """Place of the next message."""
        return 10 * (len(self.log) + 1)

    def put(self, name: str, number: int, value: str) -> None:
        """Insert a row or update it; Debezium's update has the new row alone."""
        had = self.tables[name].get(number)
        before = None if had is None else {"id": number, "v": had}
        self.tables[name][number] = value
        self.log.append(self._written(name).put(self.at, before, id=number, v=value))

    def delete(self, name: str, number: int) -> None:
        """Delete a row."""
        had = self.tables[name].pop(number)
        self.log.append(self._written(name).delete(self.at, id=number, v=had))

    def rename(self, *pairs: tuple[str, str], statement: str = "") -> None:
        """Rename tables, one after another, in one statement."""
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
            self.named.add(new)
        text = statement or "RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs)
        self.log.append(self._written(pairs[0][0]).statement(self.at, text))


History = Callable[[str, Written], Database]
"""From the first letters of its names, and the format, to what was done."""


def renamed(one: str, written: Written) -> Database:
    """Changes go on under the new name."""
    a, b = f"{one}a", f"{one}b"
    done = Database(a, written=written)
    done.put(a, 1, "x")
    done.put(a, 2, "x")
    done.rename((a, b), statement=f"ALTER TABLE {a} RENAME TO {b}")
    done.put(b, 1, "y")
    done.delete(b, 2)
    done.put(b, 3, "z")
    return done


def alone(one: str, written: Written) -> Database:
    """Nothing comes under the new name; a new table takes the old one."""
    a = f"{one}a"
    done = Database(a, written=written)
    done.put(a, 1, "x")
    done.rename((a, f"{one}b"))
    done.tables[a] = {}
    done.put(a, 1, "another")
    done.put(a, 7, "another")
    return done


def swapped(one: str, written: Written) -> Database:
    """Two tables change their names, and each other's rows after that."""
    a, b, between = f"{one}a", f"{one}b", f"{one}tmp"
    done = Database(a, b, written=written)
    for name, numbers in ((a, (1, 2, 3)), (b, (2, 3, 4))):
        for number in numbers:
            done.put(name, number, f"{name} {number}")
    done.rename((a, between), (b, a), (between, b))
    done.put(a, 2, "now")
    done.delete(b, 3)
    done.delete(a, 4)
    done.put(b, 9, "now")
    return done


def generated(seed: int) -> History:
    """A history of three tables with a few renames among them."""

    def done(one: str, written: Written) -> Database:
        dice = random.Random(seed)  # noqa: S311  a test's own mixing
        done = Database(*(f"{one}{name}" for name in "abc"), written=written)
        for name in done.tables:
            done.put(name, 0, "first")  # a table without a known event is not followed
        for step in range(24):
            name = dice.choice(sorted(done.tables))
            rows, number = done.tables[name], dice.randrange(4)
            if step % 7 == 6:
                _rename(done, dice, one)
            elif number in rows and dice.random() < 0.3:
                done.delete(name, number)
            else:
                done.put(name, number, f"{name} {step}")
        return done

    return done


def chained(one: str, written: Written) -> Database:
    """Names go from table to table, twice over."""
    a, b, c = (f"{one}{name}" for name in "abc")
    done = Database(a, b, written=written)
    done.put(a, 1, "of a")
    done.put(b, 1, "of b")
    done.rename((b, c), (a, b))
    done.put(b, 1, "of a, as b")
    done.put(c, 2, "of b, as c")
    done.rename((b, a))
    done.rename((c, b))
    done.put(a, 3, "of a again")
    done.delete(b, 1)
    return done


def _rename(done: Database, dice: random.Random, one: str) -> None:
    old, other = dice.sample(sorted(done.tables), 2)
    free = sorted({f"{one}{name}" for name in "abcd"} - done.tables.keys())
    if dice.random() < 0.5:
        done.rename((old, f"{one}tmp"), (other, old), (f"{one}tmp", other))
    else:
        done.rename((old, free[0]))


class Canal:
    """As Canal writes a table: in the order of Kafka's records."""

    def __init__(self, table: str) -> None:
        self._table = table

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """A whole row; of an update also what was there before."""
        kind = "INSERT" if before is None else "UPDATE"
        return self._record(at, type=kind, data=[_texts(row)], old=None if before is None else [_texts(before)])

    def delete(self, at: int, **row: Any) -> Message:
        """The row that went."""
        return self._record(at, type="DELETE", data=[_texts(row)], old=None)

    def statement(self, at: int, text: str) -> Message:
        """A statement; the table of its message is the target of the first rename."""
        return self._record(at, type="RENAME", isDdl=True, sql=text, data=None, old=None)

    def _record(self, at: int, **members: Any) -> Message:
        types = {"id": "bigint", "v": "varchar(20)"}
        rows = {"isDdl": False, "mysqlType": types, "pkNames": ["id"]}
        flat = {"database": "shop", "table": self._table, "es": debezium_log.START + at * 1000, **rows, **members}
        return _record(at, json.dumps(flat))


class Dts:
    """As DTS writes a table of MySQL: the binary log orders all. Of a statement only the database is named."""

    def __init__(self, table: str) -> None:
        self._table = table

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """A whole row; of an update also what was there before."""
        return self._row(at, "INSERT" if before is None else "UPDATE", before, row)

    def delete(self, at: int, **row: Any) -> Message:
        """The row that went."""
        return self._row(at, "DELETE", row, None)

    def statement(self, at: int, text: str) -> Message:
        """A statement."""
        return self._told(at, operation="DDL", object="shop", after=text)

    def _row(self, at: int, operation: str, before: Any, after: Any) -> Message:
        images = ([{"Integer": str(row["id"])}, {"Character": row["v"]}] if row else None for row in (before, after))
        named_images = dict(zip(("before", "after"), images, strict=True))
        fields = {"fields": [["id", 8], ["v", 253]], "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
        return self._told(at, operation=operation, object=f"shop.{self._table}", **fields, **named_images)

    def _told(self, at: int, **notation: Any) -> Message:
        at_source = {"position": f"{at}@3", "seconds": debezium_log.START // 1000 + at}
        value = dts_records.encode({**notation, **at_source})
        return _record(10**6 - at, base64.b64encode(value).decode())  # its offsets order nothing


class Blob:
    """As DataHub's Blob topics have a table of MySQL: ``sequenceId`` orders rows and statements."""

    def __init__(self, table: str) -> None:
        self._table = table

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """A whole row; of an update also what was there before."""
        images = {"before": before and {"dataColumn": before}, "after": {"dataColumn": row}}
        return self._message(at, op="INSERT" if before is None else "UPDATE_AFTER", **images)

    def delete(self, at: int, **row: Any) -> Message:
        """The row that went."""
        return self._message(at, op="DELETE", before={"dataColumn": row})

    def statement(self, at: int, text: str) -> Message:
        """A statement."""
        return self._message(at, op="RENAME", ddl={"text": text, "ddlMeta": "rO0ABXNy"})

    def _message(self, at: int, **payload: Any) -> Message:
        columns = [{"name": "id", "type": "LONG"}, {"name": "v", "type": "STRING"}]
        origin = {"dbType": "MySQL", "dbName": "shop", "tableName": self._table}
        times = {"eventTime": debezium_log.START + at * 1000, "systemTime": debezium_log.START + at * 1000}
        full_payload = {"sequenceId": str(1605339516 * 10**9 + at), "timestamp": times, **payload}
        schema = {"dataColumn": columns, "primaryKey": ["id"], "source": origin}
        return json.dumps({"schema": schema, "payload": full_payload, "version": "0.0.1"}).encode()


def in_parts(message: Message) -> list[Message]:
    """A message as Debezium sends it: of a statement that renames several tables one for each, at the same place.

    Each has one rename, the new names of all, and the description of its table, if that has its new name in the end.
    """
    envelope = json.loads(message)
    pairs = [clause.split(" TO ") for clause in envelope.get("ddl", "").removeprefix("RENAME TABLE ").split(", ")]
    if len(pairs) < 2:
        return [message]
    gone = {new for place, (_, new) in enumerate(pairs) if new in {old for old, _ in pairs[place:]}}
    envelope["source"]["table"] = ",".join({new for _, new in pairs})
    return [
        json.dumps(
            {
                **envelope,
                "ddl": f"RENAME TABLE {old} TO {new}",
                "tableChanges": [] if new in gone else [{"type": "ALTER", "id": f'"shop"."{new}"'}],
            }
        ).encode()
        for old, new in pairs
    ]


def _texts(row: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items()}


def _record(offset: int, value: str) -> Message:
    envelope = {"topic": "t", "partition": 0, "offset": offset, "timestamp": debezium_log.START, "key": None}
    return json.dumps({**envelope, "value": value}).encode()
