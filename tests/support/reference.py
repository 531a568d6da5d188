"""The reference model: what a set of change events leads to, said as plainly as possible.

Rows are dicts, tables are dicts from key to row, and nothing here shares code with the stages. Values are read by
``read_image`` with Python's own types, so that a whole path from bytes to rows can be compared with another.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, NamedTuple

from tidemark.events import ChangeEvent, Encoding, Operation, Shape
from tidemark.positions import Position

Row = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, Row]

_EXACT = Context(prec=100)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock
_PER_SECOND = {
    Encoding.EPOCH_SECONDS: 1,
    Encoding.EPOCH_MILLIS: 10**3,
    Encoding.EPOCH_MICROS: 10**6,
    Encoding.EPOCH_NANOS: 10**9,
}
_TEXT_OR_EPOCH = {Encoding.TEXT_OR_MILLIS: 10**3, Encoding.TEXT_OR_MICROS: 10**6}
_TIMES = {"date", "timestamp", "timestamptz"}


class Change(NamedTuple):
    """A change event whose images are rows. A column that ``after`` of a partial change lacks is unchanged."""

    table: str
    operation: Operation
    position: Position
    key: tuple[str, ...]
    """Key columns; empty for a table without a key."""
    before: Row | None = None
    after: Row | None = None
    partial: bool = False
    load: Position | None = None
    """Of a row of a complete initial load: where the load began."""


def in_order(changes: Iterable[Change | Alteration]) -> list[Change | Alteration]:
    """Return the distinct changes by table and position; with a TRUNCATE where a complete load began.

    The first load of the source replaces nothing, in no table; nor does any where each row has a place of its own.
    Changes of one table with one position are one change. Of an update in two events, only the new half counts; it may
    lack columns. It does nothing where the old half has another key: the values that the new half lacks are not known.
    """
    distinct = {(change.table, change.position): change for change in changes}
    halves = [change for change in distinct.values() if isinstance(change, Change) and _is_half(change)]
    old_keys = {(half.table, half.position[:-1]): _key_of(half.before, half) for half in halves if half.before}
    for half in halves:
        if half.before or old_keys.get((half.table, half.position[:-1])) not in (None, _key_of(half.after or {}, half)):
            del distinct[half.table, half.position]
    rows = [change for change in distinct.values() if isinstance(change, Change)]
    loads = sorted({(row.load, row.table): row.key for row in rows if row.load is not None}.items())
    loaded_rows = {(row.load, row.table, *(row.after or {}).items()) for row in rows if row.load is not None}
    shared = len(loaded_rows) > len({load for (load, _), _ in loads})
    for (load, table), key in loads:
        if shared and load > loads[0][0][0]:
            distinct[table, load] = Change(table, Operation.TRUNCATE, load, key)
    return [change for _, change in sorted(distinct.items(), key=lambda item: item[0])]


def _is_half(change: Change) -> bool:
    """Whether it is one of the two events of an update; their positions differ in the last part alone."""
    halves = change.before is None or change.after is None
    return bool(change.key) and change.operation is Operation.UPDATE and change.partial and halves


class Alteration(NamedTuple):
    """A statement that changed what rows are called or hold, at its place among the changes of its table."""

    table: str
    position: Position
    names: Mapping[str, str | None]
    """Column -> what it is called from here on; None: it was dropped."""
    defaults: Row
    """Added column -> what the rows that are there get."""
    clause: str = ""
    """What follows ALTER TABLE and its name, for those who write the statement."""


def fold(changes: Iterable[Change | Alteration]) -> dict[str, Rows]:
    """Return the rows of every table after all changes, whatever order and however often they were delivered.

    Rows of a table without a key have running numbers for keys.
    """
    tables: dict[str, Rows] = {}
    for change in in_order(changes):
        rows = tables.setdefault(change.table, {})
        if isinstance(change, Alteration):
            rows.update({key: _altered(row, change) for key, row in rows.items()})
        elif change.operation is Operation.TRUNCATE:
            rows.clear()
        elif change.key:
            _change_keyed(rows, change)
        else:
            _change_bag(rows, change)
    return tables


def _altered(row: Row, change: Alteration) -> Row:
    called = {change.names.get(name, name): value for name, value in row.items()}
    return {name: value for name, value in called.items() if name is not None} | change.defaults


def _change_keyed(rows: Rows, change: Change) -> None:
    # before of an update may hold the changed columns only: what it lacks is as in after
    known = {**(change.after or {}), **(change.before or {})}
    old = rows.pop(_key_of(known, change), {})
    if change.after is None:
        return
    after = {**old, **change.after} if change.partial else change.after
    rows[_key_of(after, change)] = after


def _key_of(row: Row, change: Change) -> Key:
    return tuple(row[name] for name in change.key)


def _change_bag(rows: Rows, change: Change) -> None:
    """Take out the oldest row that equals the old one; one that is not there is not taken out."""
    before, after = change.before, change.after
    if before is not None:
        gone = {**(after or {}), **before}
        for key, row in rows.items():
            if _are_equal(row, gone):
                del rows[key]
                break
    if after is not None:
        rows[max(rows, default=(0,))[0] + 1,] = {**(before or {}), **after} if change.partial else after


def _are_equal(row: Row, other: Row) -> bool:
    """Whether two rows of a table without a key are equal: a column that one lacks is null, not a number is one value.

    Columns whose names begin with an underscore describe the event, not the row.
    """
    names = {name for name in (*row, *other) if not name.startswith("_")}
    pairs = [(row.get(name), other.get(name)) for name in names]
    return all(one == two or (one != one and two != two) for one, two in pairs)  # noqa: PLR0124  as NaN does


def with_moved_values(changes: Iterable[Change], large: Collection[str]) -> list[Change | Alteration]:
    """Return the changes, in which a row that moved to another key has the large values that its INSERT lacks.

    Such a move is a DELETE and an INSERT at one place. The values are the values of the row as its DELETE found it. An
    INSERT is left out where its DELETE is not there, or where no event has a value: none of these values is null.

    Args:
        changes: of tables with a key, whose rows change keys so and not otherwise.
        large: columns whose values may be lacking.
    """
    lives: dict[tuple[str, Key], Row] = {}
    gone: dict[tuple[str, Position], Row] = {}
    filled: list[Change | Alteration] = []
    for change in in_order(changes):
        assert isinstance(change, Change)
        if change.operation is Operation.TRUNCATE:
            lives = {place: row for place, row in lives.items() if place[0] != change.table}
            filled.append(change)
            continue
        spot = (change.table, change.position[:-1])
        place = (change.table, _key_of(change.after or change.before or {}, change))
        if change.after is None:
            kept = {name: value for name, value in (change.before or {}).items() if value is not None}
            gone[spot] = {**lives.pop(place, {}), **kept}
            filled.append(change)
            continue
        if change.operation is Operation.INSERT and change.partial:
            known = {name: value for name, value in gone.get(spot, {}).items() if name in large}
            after = lives[place] = {**known, **change.after}
            if any(after.get(name) is None for name in large if name not in change.after):
                continue
            change = change._replace(after=after, partial=False)  # noqa: PLW2901  what it says once it is filled
        else:
            lives[place] = {**lives.get(place, {}), **change.after} if change.partial else change.after
        filled.append(change)
    return filled


def read_change(event: ChangeEvent, key: tuple[str, ...], types: Mapping[str, str]) -> Change:
    """Read the images of an event.

    Args:
        event: As a format decoded it.
        key: Key columns of its table, where the event does not name them.
        types: Column to Iceberg type. They come before the types in the event's shape.
    """
    after = _read_or_none(event.after, event.shape, types)
    if after is not None:
        after = {name: value for name, value in after.items() if name not in event.absent}
    return Change(
        table=event.table.name,
        operation=event.operation,
        position=event.position,
        key=key if event.key is None else event.key,
        before=_read_or_none(event.before, event.shape, types),
        after=after,
        partial=event.partial,
        load=event.load,
    )


def _read_or_none(image: bytes | None, shape: Shape | None, types: Mapping[str, str]) -> Row | None:
    return None if image is None else read_image(image, shape, types)


def read_image(image: bytes, shape: Shape | None, types: Mapping[str, str]) -> Row:
    """Read the JSON of a row as Python values; a ``timestamptz`` has a zone, a ``timestamp`` has none."""
    columns = {column.name: column for column in shape.columns} if shape else {}
    row = {}
    for name, wire in json.loads(image, parse_float=Decimal).items():
        column = columns.get(name)
        type_ = types.get(name) or (column.type if column else None)
        row[name] = _read(wire, type_, column.encoding if column else Encoding.PLAIN)
    return row


def _read(wire: Any, type_: str | None, encoding: Encoding) -> Any:
    if wire is None or type_ is None:
        return wire
    if encoding in _TEXT_OR_EPOCH:
        if wire == "" and type_ not in {"string", "binary"}:
            return None
        if type_ in _TIMES and re.fullmatch(r"-?\d+", str(wire)):
            return _instant(Decimal(wire) / _TEXT_OR_EPOCH[encoding], type_)
    if encoding in _PER_SECOND:
        return _instant(Decimal(wire) / _PER_SECOND[encoding], type_)
    return _ENCODINGS.get(encoding, _plain)(wire, type_)


def _plain(wire: Any, type_: str) -> Any:
    if type_.startswith("decimal"):
        return _fitting(Decimal(str(wire)), type_)
    return _TYPES[type_](wire)


def _fitting(value: Decimal, type_: str) -> Decimal:
    """Give a value the scale of its type; one that does not fit is an error, not rounded."""
    precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
    result = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if result != value or len(result.as_tuple().digits) > precision:
        raise ValueError(f"{value} does not fit {type_}")
    return result


def _unscaled(text: str, type_: str) -> Decimal:
    scale = int(type_.removesuffix(")").partition(",")[2])
    return _fitting(_scaled(text, scale), type_)


def _scaled(text: str, scale: int) -> Decimal:
    return Decimal(int.from_bytes(_base64(text), "big", signed=True)).scaleb(-scale, _EXACT)


def _base64(text: str, _type: str = "") -> bytes:
    return base64.b64decode(
        text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_" if "-" in text else None
    )


def _instant(seconds: Decimal, type_: str) -> datetime:
    moment = _EPOCH + timedelta(microseconds=int(seconds.scaleb(6)))
    if type_ == "date":
        assert moment.time() == time()
        return moment.date()
    return moment.replace(tzinfo=UTC) if type_ == "timestamptz" else moment


def _text(wire: Any) -> str:
    return wire if isinstance(wire, str) else json.dumps(wire, default=str)


def _wall_clock(wire: str) -> datetime:
    return datetime.fromisoformat(wire.removesuffix("Z"))


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "boolean": lambda wire: str(wire).lower() in {"true", "1"},
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": _text,
    "binary": _base64,
    "date": lambda wire: date.fromisoformat(wire.removesuffix("Z")),
    "timestamp": _wall_clock,
    "timestamptz": lambda wire: datetime.fromisoformat(wire).astimezone(UTC),
}
_ENCODINGS: Mapping[Encoding, Callable[[Any, str], Any]] = {
    Encoding.UNSCALED_BASE64: _unscaled,
    Encoding.SCALED_STRUCT: lambda wire, type_: _fitting(_scaled(wire["value"], wire["scale"]), type_),
    Encoding.BASE64: _base64,
    Encoding.LATIN1: lambda wire, _: wire.encode("latin-1"),
    Encoding.HEX: lambda wire, _: bytes.fromhex(wire),
    Encoding.EPOCH_DAYS: lambda wire, _: _EPOCH.date() + timedelta(days=int(wire)),
}


class Version(NamedTuple):
    """A row as it was for a while."""

    row: Row
    position: Position
    valid_from: Any
    valid_to: Any
    """None: it is the current one."""


def versions(
    changes: Iterable[Change], at: Callable[[Change], Any], tracked: Collection[str] | None = None
) -> dict[str, list[Version]]:
    """Return every version of every row of tables with a key, by table.

    Args:
        changes: of the tables.
        at: returns when a change took place.
        tracked: columns whose change begins a version; None: each change begins one.
    """
    by_table: dict[str, list[Version]] = {}
    current: dict[tuple[str, Key], Version] = {}
    reached: dict[tuple[str, Key], Any] = {}

    def close(place: tuple[str, Key], now: Any) -> None:
        version = current.pop(place, None)
        if version is not None:
            reached[place] = max(version.valid_from, now)
            by_table[place[0]].append(version._replace(valid_to=reached[place]))

    for change in in_order(changes):
        table, now = change.table, at(change)
        by_table.setdefault(table, [])
        if change.operation is Operation.TRUNCATE:
            for place in [place for place in current if place[0] == table]:
                close(place, now)
            continue
        from_ = (table, _key_of({**(change.after or {}), **(change.before or {})}, change))
        known = current.get(from_)
        if change.after is None:
            close(from_, now)
            continue
        row = {**(known.row if known is not None else {}), **change.after} if change.partial else change.after
        place = (table, _key_of(row, change))
        if place != from_:
            close(from_, now)
        there = current.get(place)  # no sound source moves a row to the key of another one: such events are one run
        if tracked is not None and there is not None and all(row.get(n) == there.row.get(n) for n in tracked):
            current[place] = there._replace(row=row, position=change.position)
            continue
        close(place, now)
        current[place] = Version(row, change.position, max(now, reached.get(place, now)), None)
    for (table, _), version in current.items():
        by_table[table].append(version)
    return by_table


def fold_softly(changes: Iterable[Change]) -> dict[str, dict[Key, tuple[Row, Position, bool]]]:
    """Return of every table with a key the last row of each key, the position that wrote it, and whether it is gone.

    A row that is gone has its last values; values in the old images of its deletes win, where they are not null.
    """
    tables: dict[str, dict[Key, tuple[Row, Position, bool]]] = {}
    for change in in_order(changes):
        rows = tables.setdefault(change.table, {})
        if change.operation is Operation.TRUNCATE:
            rows.update({key: (row, change.position, True) for key, (row, _, _) in rows.items()})
            continue
        key = _key_of({**(change.after or {}), **(change.before or {})}, change)
        row, _, gone = rows.get(key, ({}, (), True))
        if change.after is None or _key_of(change.after, change) != key:
            old_values = {name: value for name, value in (change.before or {}).items() if value is not None}
            rows[key] = ({**row, **old_values}, change.position, True)
        if change.after is not None:
            after = {**({} if gone else row), **change.after} if change.partial else change.after
            rows[_key_of(after, change)] = (after, change.position, False)
    return tables
