"""The rows of a database beside those that Tidemark published: each value in one text, whatever its type there."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np

Row = dict[str, str | None]


@dataclass(frozen=True)
class Truth:
    """A table as its database has it: the kind of each column, the key, the rows as texts."""

    name: str
    kinds: Mapping[str, str]
    key: Sequence[str]
    rows: Sequence[Row]


@dataclass
class Difference:
    """How published rows differ from those of the database."""

    without_table: bool = False
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.without_table or self.missing or self.extra or self.cells)

    def without(self, columns: Sequence[str], rows: str | None = None) -> Difference:
        """What is left without these columns, and rows that are ``missing`` or ``extra``; nothing if none is named."""
        if not columns and rows is None:
            return Difference()
        return Difference(
            self.without_table,
            [] if rows == "missing" else self.missing,
            [] if rows == "extra" else self.extra,
            {name: sentences for name, sentences in self.cells.items() if name not in columns},
        )

    def __str__(self) -> str:
        parts = ["no table"] if self.without_table else []
        if self.missing:
            parts.append(f"{len(self.missing)} rows missing: {', '.join(self.missing[:3])}")
        if self.extra:
            parts.append(f"{len(self.extra)} rows too many: {', '.join(self.extra[:3])}")
        parts += [f"{name} {'; '.join(sentences[:3])}" for name, sentences in self.cells.items()]
        return " | ".join(parts)


def compare(truth: Truth, published: Sequence[Mapping[str, Any]] | None) -> Difference:
    """Compare the rows of a table. A row is found by its key, or where the table has none by all its values.

    Args:
        truth: the table as its database has it.
        published: the rows that Tidemark published; None: it published no such table.
    """
    if published is None:
        return Difference(without_table=True)
    kinds = truth.kinds
    ours = [{name: text(kinds[name], value) for name, value in row.items() if name in kinds} for row in published]
    theirs = [{name: text(kinds[name], value) for name, value in row.items()} for row in truth.rows]
    if not truth.key:
        ours_, theirs_ = _counted(ours, kinds), _counted(theirs, kinds)
        return Difference(missing=sorted((theirs_ - ours_).elements()), extra=sorted((ours_ - theirs_).elements()))
    left, right = _by_key(theirs, truth.key), _by_key(ours, truth.key)
    difference = Difference(missing=sorted(left.keys() - right.keys()), extra=sorted(right.keys() - left.keys()))
    difference.extra += [f"{key} twice" for key, count in Counter(map(_key_of(truth.key), ours)).items() if count > 1]
    for key in sorted(left.keys() & right.keys()):
        for name, value in left[key].items():
            found = right[key].get(name, "no such column")
            if value != found:
                sentence = f"{key}: {_cut(value)} is {_cut(found)}"
                difference.cells.setdefault(name, []).append(sentence)
    return difference


def key_of(truth: Truth, row: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The key of a row of a database or of a published table."""
    return tuple(text(truth.kinds[name], row.get(name)) for name in truth.key)


def text(kind: str, value: Any) -> str | None:
    """The one text of a value of this kind, of a database or of a published table; as it is, if it is none of them."""
    if value is None:
        return None
    try:
        return _KINDS.get(kind, _text)(value)
    except (ValueError, ArithmeticError, KeyError, TypeError):
        return f"no {kind}: {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    return str(value)


def _number(value: Any) -> str:
    written = str(int(value) if isinstance(value, bool) else value).replace("$", "").replace(",", "")
    if written.lower().strip("+-") in {"nan", "infinity"}:
        return written.lower()
    return f"{Decimal(written).normalize():f}"


def _float4(value: Any) -> str:
    with np.errstate(over="ignore"):
        return str(np.float32(value))


def _boolean(value: Any) -> str:
    return {"t": "true", "f": "false", "1": "true", "0": "false"}.get(str(value).lower(), str(value).lower())


def _bytes(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value).lower()


def _bits(value: Any) -> str:
    """The number that the bits are: a text of zeros and ones, bytes with the first bit first, or the number itself."""
    if isinstance(value, bytes):
        return str(int.from_bytes(value, "big"))
    return str(int(value or "0", 2)) if isinstance(value, str) else str(int(value))


def _time(value: Any) -> str:
    """ISO 8601 with a blank, without zeros at the end of the fraction and without UTC's name."""
    written = _signed(value.isoformat(" ") if isinstance(value, datetime) else str(value))
    written = re.sub(r"(?<=\d)T(?=\d)", " ", written)
    written = re.sub(r"(Z|\+00(:?00)?)$", "", written)
    written = re.sub(r"\.(\d*?)0+$", r".\1", written).rstrip(".")
    return written + ":00" if re.search(r" \d\d:\d\d$", written) else written


def _date(value: Any) -> str:
    return value.isoformat()[:10] if isinstance(value, date) else _signed(str(value).removesuffix("Z"))


def _signed(written: str) -> str:
    """A time whose year before Christ is a number below zero: the year before 1 is 0."""
    before_christ = re.fullmatch(r"(\d+)(-.*) BC", written)
    return f"-{int(before_christ[1]) - 1:04}{before_christ[2]}" if before_christ else written.removeprefix("+")


def _json(value: Any) -> str:
    def plain(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: plain(each) for name, each in sorted(found.items())}
        if isinstance(found, list):
            return [plain(each) for each in found]
        return (
            f"number {_number(found)}" if isinstance(found, (Decimal, int)) and not isinstance(found, bool) else found
        )

    return json.dumps(plain(json.loads(_text(value), parse_float=Decimal)), ensure_ascii=False)


def _well_known_binary(value: Any) -> str:
    """The bytes of a geometry: hexadecimal text, the ``wkb`` of an object, or bytes behind the four of the SRID."""
    if isinstance(value, bytes):
        return value[4:].hex()
    written = _text(value)
    return base64.b64decode(json.loads(written)["wkb"]).hex() if written.startswith("{") else written.lower()


def _point(value: Any) -> str:
    written = _text(value)
    if written.startswith("{"):
        found = json.loads(written)
        return f"{found['x']!r},{found['y']!r}"
    return ",".join(repr(float(part)) for part in written.strip("()").split(","))


_KINDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": _number,
    "float4": _float4,
    "float8": lambda value: repr(float(value)),
    "boolean": _boolean,
    "bytes": _bytes,
    "bits": _bits,
    "time": _time,
    "date": _date,
    "json": _json,
    "padded": lambda value: _text(value).rstrip(" "),
    "geometry": _well_known_binary,
    "point": _point,
}


def _key_of(key: Iterable[str]) -> Callable[[Row], str]:
    return lambda row: ",".join(str(row.get(name)) for name in key)


def _by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[str, Row]:
    of = _key_of(key)
    return {of(row): row for row in rows}


def _counted(rows: Iterable[Row], names: Iterable[str]) -> Counter[str]:
    ordered = list(names)
    return Counter(json.dumps([row.get(name) for name in ordered], ensure_ascii=False) for row in rows)


def _cut(value: str | None) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
