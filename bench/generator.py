"""Dumps of any size for the benchmark: bare Debezium messages of MySQL tables, as JSON lines.

Rows have 13 columns. One fifth of the changes fall on 100 hot keys, one in twenty is a delete, the others update the
row or insert it, as the table stands at that moment: the history is one that a database could have written. Columns
are built by NumPy and joined to lines by Arrow, so half a million messages take seconds.

The environment asks for wider rows (``COLUMNS_WANTED``) and longer values (``VALUE_BYTES``), because the floor and all
peers are processes of their own that need to know the columns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS_WANTED, VALUE_BYTES = "BENCH_COLUMNS", "BENCH_VALUE_BYTES"
"""Environment variables: how many columns a row has, 13 at least; how long the text in ``note`` is."""

DATABASE = "shop"
COLUMNS = {
    "id": "long",
    "customer": "string",
    "email": "string",
    "quantity": "int",
    "total": "decimal(18, 2)",
    "score": "double",
    "paid": "boolean",
    "due_on": "date",
    "placed_at": "timestamptz",
    "note": "string",
    "region": "int",
    "reference": "long",
    "remark": "string",
}
_MORE = [f"more_{number}" for number in range(int(os.environ.get(COLUMNS_WANTED, "0")) - len(COLUMNS))]
COLUMNS |= {name: "string" if number % 2 else "long" for number, name in enumerate(_MORE)}
"""Column -> Iceberg type string."""
KEY = "id"

FILES = 8
"""Files of a dump."""

_HOT_KEYS, _HOT_SHARE = 100, 0.2
_DELETES = 0.05
_NEW_KEYS = 0.1
"""Keys beyond the keys of the initial load that changes draw from, as a share of the load."""
_NO_ROW = -1
_STEP = 7
"""Column ``reference`` of an event, divided by its number."""
_EPOCH_MS = 1_767_225_600_000  # 2026-01-01

_NOTES = 977


def _fillers() -> pa.Array:
    """Return texts that make a note as long as wanted; they are not to be compressed to nothing."""
    half = int(os.environ.get(VALUE_BYTES, "0")) // 2
    return pa.array([np.random.default_rng(note).bytes(half).hex() for note in range(_NOTES)])


_FILLERS = _fillers()

Numbers = npt.NDArray[np.int64]


class Changes(NamedTuple):
    """Events, column by column: one entry an event."""

    keys: Numbers
    operations: npt.NDArray[np.str_]
    before: Numbers
    """Number of the event that wrote the old row; ``_NO_ROW`` where there is none."""
    numbers: Numbers
    """Number of the event itself, rising by one in the whole history."""

    def some(self, places: Numbers) -> Changes:
        """Return the events at these places."""
        return Changes(self.keys[places], self.operations[places], self.before[places], self.numbers[places])


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A dump, and what the table must hold after it."""

    files: list[Path]
    messages: int
    size: int
    """Bytes."""
    rows: int
    references: int
    """Sum of the column ``reference``, which no two events share."""


class Generator:
    """One history: an initial load, then batches of changes; over several tables, rows go round by their keys."""

    def __init__(self, rows: int, *, tables: int = 1, seed: int = 7) -> None:
        """Number the rows of the initial load from 0."""
        self._loaded = rows
        self.tables = [f"orders_{number}" for number in range(tables)]
        self._random = np.random.default_rng(seed)
        self._versions = np.full(rows + max(int(rows * _NEW_KEYS), _HOT_KEYS), _NO_ROW, dtype=np.int64)
        """Number of the event that last wrote the row of each key."""
        self._next = 0
        self._dump = 0

    def initial_load(self, folder: Path) -> Written:
        """Write one ``r`` message for each row."""
        keys = np.arange(self._loaded, dtype=np.int64)
        numbers = self._numbers(len(keys))
        self._versions[keys] = numbers
        return self._write(folder, Changes(keys, np.full(len(keys), "r"), numbers, numbers))

    def changes(self, folder: Path, count: int) -> Written:
        """Write ``count`` changes in the order of the binlog, the first file holding the oldest."""
        hot = self._random.random(count) < _HOT_SHARE
        cold = self._random.integers(0, len(self._versions), count)
        keys = np.where(hot, self._random.integers(0, _HOT_KEYS, count), cold)
        return self._write(folder, self._changes(keys))

    def _numbers(self, count: int) -> Numbers:
        self._next += count
        return np.arange(self._next - count, self._next, dtype=np.int64)

    def _changes(self, keys: Numbers) -> Changes:
        """Tell what each event does to its key's row as it then stands, and remember how the rows stand."""
        deletes = self._random.random(len(keys)) < _DELETES
        numbers = self._numbers(len(keys))
        versions = self._versions.tolist()
        operations, before = [], []
        for key, delete, number in zip(keys.tolist(), deletes.tolist(), numbers.tolist(), strict=True):
            stands = versions[key]
            operation = "c" if stands == _NO_ROW else "d" if delete else "u"
            versions[key] = _NO_ROW if operation == "d" else number
            operations.append(operation)
            before.append(stands)
        self._versions = np.array(versions, dtype=np.int64)
        return Changes(keys, np.array(operations), np.array(before, dtype=np.int64), numbers)

    def _write(self, folder: Path, changes: Changes) -> Written:
        self._dump += 1
        folder.mkdir(parents=True)
        files = []
        for place, part in enumerate(np.array_split(np.arange(len(changes.keys)), FILES)):
            files.append(folder / f"part-{place:05d}.jsonl")
            # An array without nulls holds its texts one after another: they are the file.
            files[-1].write_bytes(_messages(changes.some(part), self._dump, self.tables).buffers()[2])
        alive = self._versions[self._versions != _NO_ROW]
        return Written(
            files=files,
            messages=len(changes.keys),
            size=sum(file.stat().st_size for file in files),
            rows=len(alive),
            references=int((alive * _STEP).sum()),
        )


def _images(keys: Numbers, numbers: Numbers) -> pa.Array:
    """Return the JSON image of each row; ``numbers`` give its version."""
    day, second = np.datetime64("2020-01-01", "D"), np.datetime64("2025-01-01T00:00:00.000001", "us")
    cents = _text(numbers % 100)
    parts: list[tuple[str, pa.Array]] = [
        ('{"id":', _text(keys)),
        (',"customer":"customer ', _text(numbers)),
        ('","email":"customer', _text(keys)),
        ('@example.com","quantity":', _text(numbers % 1000)),
        (',"total":"', _text(numbers % 100_000)),
        (".", pc.utf8_lpad(cents, 2, "0")),
        ('","score":', _text(numbers / 7)),
        (',"paid":', pc.if_else(pa.array(numbers % 2 == 0), "true", "false")),
        (',"due_on":"', _text(day + numbers % 2000)),
        ('","placed_at":"', pc.replace_substring(_text(second + numbers * 1_001), " ", "T")),
        ('Z","note":"note about ', _text(numbers % _NOTES)),
        (" and more text", _FILLERS.take(pa.array(numbers % _NOTES))),
        ('","region":', _text(numbers % 50)),
        (',"reference":', _text(numbers * _STEP)),
        (',"remark":', pc.if_else(pa.array(numbers % 10 == 0), '"by phone"', "null")),
    ]
    for place, name in enumerate(_MORE):
        value = _text(numbers + place)
        parts.append((f',"{name}":', pc.binary_join_element_wise('"text ', value, '"', "") if place % 2 else value))
    return _joined(parts, "}")


def _messages(changes: Changes, dump: int, tables: list[str]) -> pa.Array:
    operations, numbers = changes.operations, changes.numbers
    had = pa.array(np.isin(operations, ["u", "d"]))
    has = pa.array(operations != "d")
    at = _text(_EPOCH_MS + numbers)
    is_load = operations[0] == "r"
    snapshot = "true" if is_load else "false"
    # All rows of a load carry the place in the binlog at which it began.
    places = np.full(len(numbers), 4) if is_load else 4 + numbers * 500
    source = '{"version":"3.0.0.Final","connector":"mysql","name":"shopdb","ts_ms":'
    before_table = f',"snapshot":"{snapshot}","db":"{DATABASE}","sequence":null,"table":"'
    behind_table = '","server_id":223344,"gtid":null,'
    parts: list[tuple[str, pa.Array]] = [
        ('{"before":', pc.if_else(had, _images(changes.keys, changes.before), "null")),
        (',"after":', pc.if_else(has, _images(changes.keys, numbers), "null")),
        (f',"source":{source}', at),
        (before_table, pa.array(np.array(tables)[changes.keys % len(tables)])),
        (f'{behind_table}"file":"mysql-bin.{dump:06d}","pos":', _text(places)),
        (',"row":0,"thread":12,"query":null},"op":"', pa.array(operations)),
        ('","ts_ms":', at),
    ]
    return _joined(parts, "}\n")


def _text(values: npt.NDArray[np.generic]) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _joined(parts: list[tuple[str, pa.Array]], end: str) -> pa.Array:
    pieces = [piece for part in parts for piece in part]
    return pc.binary_join_element_wise(*pieces, end, "")
