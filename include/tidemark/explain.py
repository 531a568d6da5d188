"""``tidemark explain``: every event of one row, from the change log, and what became of it.

No Spark: the log of the table is streamed as Arrow batches, Arrow drops the events in whose images the key cannot be,
and ``values.py`` reads the others as compact does. Only the events of the row are kept.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.table import Table

from tidemark import cuts, folding, life
from tidemark.errors import ConfigurationError, UnknownNameError, UnreadableValueError
from tidemark.events import Column, Encoding, Operation, Shape
from tidemark.images import TableColumn
from tidemark.iso8601 import instant
from tidemark.lake import Lake
from tidemark.ledger import Ledger, Row, equals
from tidemark.life import Chapter, Key, Outcome, Step
from tidemark.planning import COMMITTED_AT, KEY_PROPERTY, OBJECT_PROPERTY, POSITION, SOURCE_PROPERTY, shape_from
from tidemark.rows import Kind
from tidemark.source_fields import RESERVED_NAMES
from tidemark.types import decimal_parts
from tidemark.values import Value, read_value
from tidemark.yaml_errors import suggestion

_FIELDS = (
    "operation", "position", "committed_at", "transaction_id", "transaction_number", "transaction_last", "before",
    "after", "shape", "partial", "absent", "batch", "file", "place", "row",
)  # fmt: skip
_WRITTEN_AS_IS = frozenset({Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One row's events, and the row as it is published."""

    table: str
    key: Key
    chapters: Sequence[Chapter]
    """In the order of position."""
    rows: pa.Table
    """The published row, with Tidemark's own columns; none when it is gone. Without a key, all that have the values."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """How far the published table has come."""

    batch: int
    """Last batch of the change log that it holds."""
    beyond: tuple[Outcome, str]
    """What is to be said of later events."""


def explain(lake: Lake, name: str, given: Sequence[str]) -> Life:
    """Tell the life of the row of table ``name`` (``source.table``) whose key is ``given`` as ``COLUMN=VALUE``.

    Raises:
        ConfigurationError: no such table or column, a missing or a further column, a value that its column cannot hold.
    """
    table = _find(lake, name)
    reader = _Reader.of(lake, table)
    wanted = reader.wanted(name, given)
    steps = list(reader.steps(_log(lake, table), wanted, _standing(lake, table)))
    start = min((step.position for step in steps if step.operation != Operation.TRUNCATE), default=None)
    own = [step for step in steps if start is not None and step.position >= start]
    rows = _published(table, reader, wanted)
    told = life.tell(own) if reader.key else life.tell_bag(own, set(rows.column(POSITION).to_pylist()))
    return Life(table=name, key=wanted, chapters=told, rows=rows)


def _find(lake: Lake, name: str) -> Table:
    namespace, _, rest = name.partition(".")
    table = lake.find((namespace, rest)) if rest else None
    if table is None or SOURCE_PROPERTY not in table.properties:
        known = [] if namespace in RESERVED_NAMES else [f"{namespace}.{other}" for other in lake.tables(namespace)]
        hint = suggestion(name, known) if known else " Name it as source.table; `tidemark status` lists the tables."
        raise UnknownNameError(f"Unknown table '{name}'.{hint}")
    return table


def _standing(lake: Lake, table: Table) -> _Standing:
    ledger = Ledger(lake, table.properties[SOURCE_PROPERTY])
    row = ledger.published_tables().get(table.properties[OBJECT_PROPERTY])
    newest = ledger.last_cut()
    if row is not None and row["state"] == cuts.STOPPED:
        return _Standing(row["batch"], (Outcome.HELD, f"the table is stopped: {row['reason']}"))
    waits = "the next compact takes it"
    if newest is not None and newest["state"] != cuts.PUBLISHED:
        waits = f"behind the published cut; the newest is cut {newest['cut']}, {newest['state']}"
    return _Standing(row["batch"] if row else 0, (Outcome.WAITING, waits))


def _log(lake: Lake, table: Table) -> pa.RecordBatchReader:
    changelog = lake.load(("changelog", table.properties[SOURCE_PROPERTY]))
    mine = And(equals("kind", Kind.CHANGE), equals("object", table.properties[OBJECT_PROPERTY]))
    return changelog.scan(row_filter=mine, selected_fields=_FIELDS).to_arrow_batch_reader()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a table's events as steps of one row."""

    columns: Mapping[str, TableColumn]
    key: tuple[str, ...]
    shapes: Mapping[str, Shape]

    @classmethod
    def of(cls, lake: Lake, table: Table) -> _Reader:
        fields = [TableColumn(column.name, str(column.field_type)) for column in table.schema().fields]
        told = Ledger(lake, table.properties[SOURCE_PROPERTY]).read(
            "shapes", equals("object", table.properties[OBJECT_PROPERTY])
        )
        return cls(
            {column.name: column for column in fields if column.name not in {POSITION, COMMITTED_AT}},
            tuple(json.loads(table.properties[KEY_PROPERTY])),
            {row["shape"]: shape_from(row["columns"]) for row in told},
        )

    def wanted(self, table: str, given: Sequence[str]) -> Key:
        """The key that a person wrote, in the key's order; of a table without a key, any columns."""
        pairs = dict(self._pair(table, text) for text in given)
        if not self.key:
            return {name: self._typed(name, text) for name, text in pairs.items()}
        missing = [name for name in self.key if name not in pairs]
        further = [name for name in pairs if name not in self.key]
        if missing or further:
            problem = f"{missing[0]!r} is missing" if missing else f"{further[0]!r} is not in the key"
            raise ConfigurationError(
                f"{table} has the key {', '.join(self.key)}, and {problem}. Write "
                + " ".join(f"{name}=VALUE" for name in self.key)
            )
        return {name: self._typed(name, pairs[name]) for name in self.key}

    def _pair(self, table: str, text: str) -> tuple[str, str]:
        for name in sorted(self.columns, key=len, reverse=True):  # a name may hold a =, a value may too
            if text.startswith(f"{name}="):
                return name, text[len(name) + 1 :]
        name, equals_sign, _ = text.partition("=")
        if not equals_sign:
            raise ConfigurationError(f"{text!r}: write COLUMN=VALUE, as {(self.key or ('id',))[0]}=1")
        raise UnknownNameError(f"{table} has no column '{name}'.{suggestion(name, list(self.columns))}")

    def _typed(self, name: str, text: str) -> Value:
        kind = self.columns[name].type
        encoding = Encoding.BASE64 if kind == "binary" else Encoding.TEXT
        try:
            return read_value(json.dumps(text).encode(), Column(name, kind, encoding))
        except UnreadableValueError as error:
            raise ConfigurationError(str(error)) from error

    def steps(self, batches: pa.RecordBatchReader, wanted: Key, standing: _Standing) -> Iterator[Step]:
        """Yield what the events do to the row with the key ``wanted``; TRUNCATEs too."""
        patterns = [pattern for name, value in wanted.items() if (pattern := self._pattern(name, value))]
        for batch in batches:
            few = batch.filter(_may_hold(batch, patterns))
            few = few.set_column(few.schema.names.index("committed_at"), "committed_at", _micros(few))
            for row in few.to_pylist():
                step = (self._step if self.key else self._bag_step)(row, wanted)
                if step is not None:
                    yield step if row["batch"] <= standing.batch else replace(step, aside=standing.beyond)

    def _pattern(self, name: str, value: Value) -> str | None:
        """What every image with this value matches unless there is a backslash in it, where that can be told."""
        shapes = self.shapes.values()
        encodings = {column.encoding for shape in shapes for column in shape.columns if column.name == name}
        kind = self.columns[name].type
        if not isinstance(value, str) or not encodings <= _WRITTEN_AS_IS or kind not in {"int", "long", "string"}:
            return None
        written = re.escape(value) if kind == "string" else f"[+-]?0*{value.lstrip('-')}"
        return rf'"{re.escape(name)}"\s*:\s*"?{written}["\s,}}]'

    def _step(self, row: Row, wanted: Key) -> Step | None:
        if row["operation"] == Operation.TRUNCATE:
            return _made(row, deletes=True)
        whole_update = row["operation"] == Operation.UPDATE and row["after"] is not None
        half = row["operation"] == Operation.UPDATE and row["after"] is None
        side = "before" if row["after"] is None else "after"
        image, _ = self._image(row, side, only=self.key)
        old, old_fault = self._image(row, "before", only=self.key) if whole_update else ({}, None)
        new_key = {name: _first(image.get(name), old.get(name) if row["partial"] else None) for name in self.key}
        old_key = {name: _first(old.get(name), new_key[name]) for name in self.key}
        moved = any(
            None not in {old_key[name], new_key[name]} and not self._same(old_key, new_key, [name]) for name in self.key
        )
        arrives, leaves = self._same(new_key, wanted, self.key), moved and self._same(old_key, wanted, self.key)
        if not arrives and not leaves:
            return None
        writes = row["operation"] != Operation.DELETE and not half
        image, fault = self._image(row, side)
        cells = {name: image.get(name) for name in self._written(row) if name not in self.key}
        return _made(
            row,
            deletes=leaves or not writes,
            cells=cells if arrives and writes else {},
            moved_from=old_key if moved and arrives else None,
            moved_to=new_key if leaves else None,
            aside=_aside(
                fault or old_fault if writes else None,
                null_key=None in new_key.values(),
                torn=moved and bool(row["partial"]),
            ),
            half=half,
        )

    def _bag_step(self, row: Row, wanted: Key) -> Step | None:
        if row["operation"] == Operation.TRUNCATE:
            return _made(row, deletes=True)
        after, fault = self._image(row, "after")
        before, _ = self._image(row, "before")
        adds = row["after"] is not None and self._same(after, wanted, list(wanted))
        if not adds and not (row["before"] is not None and self._same(before, wanted, list(wanted))):
            return None
        cells = {name: after.get(name) for name in self.columns} if adds else {}
        return _made(row, deletes=not adds, cells=cells, aside=_aside(fault))

    def _image(self, row: Row, side: str, only: Sequence[str] | None = None) -> tuple[dict[str, Value], str | None]:
        """The columns of an image, those that cannot be read as null; and why the first of these cannot."""
        if row[side] is None:
            return {}, None
        members = _members.decode(row[side])
        read: dict[str, Value] = {}
        fault = None
        for told in self.shapes[row["shape"]].columns:
            if told.name not in members or told.name not in self.columns or (only and told.name not in only):
                continue
            try:
                typed = Column(told.name, self.columns[told.name].type, told.encoding)
                read[told.name] = read_value(bytes(members[told.name]), typed)
            except UnreadableValueError as error:
                fault = fault or str(error)
        return read, fault

    def _written(self, row: Row) -> list[str]:
        if not row["partial"]:
            return list(self.columns)
        told = {column.name for column in self.shapes[row["shape"]].columns} - set(row["absent"] or ())
        return [name for name in self.columns if name in told]

    def _same(self, one: Key, other: Key, names: Sequence[str]) -> bool:
        return all(
            comparable(one.get(name), self.columns[name].type) == comparable(other[name], self.columns[name].type)
            for name in names
        )


def comparable(value: Value, kind: str) -> object:
    """A value as ``values.py`` reads it, so that two ways to write one value are equal."""
    if value is None or not isinstance(value, str):
        return value
    if kind.startswith("decimal"):
        return Decimal(value)
    return float(value) if kind in {"float", "double"} else value


def _micros(batch: pa.RecordBatch) -> pa.Array:
    """Times as numbers: Python's do not reach as far."""
    return batch.column("committed_at").cast(pa.int64())


def _first(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _may_hold(batch: pa.RecordBatch, patterns: Sequence[str]) -> pa.Array:
    """Rows in whose images all patterns are, escaped perhaps; and TRUNCATEs."""
    escaped = _found(batch, r"\\")
    may = pa.repeat(pa.scalar(value=True), len(batch))
    for pattern in patterns:
        may = pc.and_(may, pc.or_(escaped, _found(batch, pattern)))
    return pc.or_(may, pc.equal(batch.column("operation"), str(Operation.TRUNCATE)))


def _found(batch: pa.RecordBatch, pattern: str) -> pa.Array:
    sides = (pc.match_substring_regex(batch.column(side), pattern) for side in ("before", "after"))
    before, after = (pc.fill_null(side, False) for side in sides)  # noqa: FBT003
    return pc.or_(before, after)


def _made(row: Row, **fields: Any) -> Step:  # noqa: ANN401  the fields of a Step
    transaction = {"id": row["transaction_id"], "number": row["transaction_number"], "last": row["transaction_last"]}
    return Step(
        operation=row["operation"],
        position=row["position"],
        committed_at=None if row["committed_at"] is None else f"{instant(row['committed_at'])}Z",
        transaction=transaction if row["transaction_id"] is not None else None,
        file=row["file"],
        place=row["place"],
        row=row["row"],
        batch=row["batch"],
        **fields,
    )


def _aside(fault: str | None, *, null_key: bool = False, torn: bool = False) -> tuple[Outcome, str] | None:
    if fault is not None:
        return Outcome.QUARANTINED, f"{folding.UNREADABLE_VALUE}: {fault}"
    if null_key:
        return Outcome.QUARANTINED, f"{folding.NULL_KEY}: a part of the new key is null or missing"
    if torn:
        return Outcome.QUARANTINED, f"{folding.PARTIAL_KEY_CHANGE}: the key changed, and not all of the row is told"
    return None


def _published(table: Table, reader: _Reader, wanted: Key) -> pa.Table:
    """The published rows that have these values."""
    where: BooleanExpression = AlwaysTrue()
    for name, value in wanted.items():
        where = And(where, equals(name, _literal(value, reader.columns[name].type)))
    return table.scan(row_filter=where).to_arrow()


def _literal(value: Value, kind: str) -> Any:  # noqa: ANN401  what PyIceberg compares with a column of this type
    if parts := decimal_parts(kind):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-parts[1]), context=Context(prec=38))
    return _LITERALS[kind](str(value)) if kind in _LITERALS else value


_LITERALS: Mapping[str, Callable[[str], object]] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "binary": base64.b64decode,
    "timestamptz": lambda text: text.replace("Z", "+00:00"),
}
