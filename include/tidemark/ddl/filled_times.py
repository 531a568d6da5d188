"""What a database writes into old rows of a column of dates or times that is added with a constant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from tidemark.ddl.changes import Fill
from tidemark.ddl.constants import Constant
from tidemark.ddl.declaration import Declaration
from tidemark.values.iso8601 import read


def moment(value: Constant, declared: Declaration) -> Fill:
    """Return a date, or a date with a time of day, if it is written whole and needs no rounding."""
    if not isinstance(value, str) or not (match := _MOMENT.fullmatch(value.strip())):
        raise ValueError("a time in a form that is not read")
    if declared.word == "timestamp" and declared.dialect == "mysql":
        raise ValueError("it depends on the time zone of the session")
    if declared.dialect == "tsql" and declared.word in {"datetime", "smalldatetime"} and "T" not in value:
        raise ValueError("it depends on the language of the session")
    if declared.kind == "timestamptz" and not match["zone"] and declared.word != "datetimeoffset":
        raise ValueError("it depends on the time zone of the session")
    if declared.kind != "timestamptz" and match["zone"]:
        raise ValueError("a time zone")
    if declared.kind == "date" and match["time"]:
        raise ValueError("a date with a time of day")
    most = declared.size if declared.size is not None else _SECOND_DIGITS.get((declared.dialect, declared.word), 0)
    if len((match["fraction"] or "").rstrip("0")) > min(most, 6):
        raise ValueError("more digits of a second than the column has")
    read(value.strip())
    if declared.kind == "date":
        return Fill(match["date"])
    time = match["time"] or " 00:00:00"
    return Fill(f"{match['date']} {time[1:]}{match['zone'] or ''}")


_MOMENT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?P<time>[ T]\d\d:\d\d:\d\d(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone> ?(?:Z|[+-]\d\d(?::?\d\d)?))?"
)

_SECOND_DIGITS: Mapping[tuple[str, str], int] = {
    **{("postgres", word): 6 for word in ("timestamp", "timestamptz", "time")},
    ("oracle", "timestamp"): 6,
    ("tsql", "datetime2"): 6,
    ("tsql", "datetimeoffset"): 6,
}
"""Digits of a second that a type keeps where the declaration does not say."""


def time_of_day(value: Constant, declared: Declaration) -> Fill:
    """Return a time of day, or MySQL's time span, with its seconds."""
    if declared.dialect == "mysql" and isinstance(value, Decimal) and not value:
        value = "00:00:00"
    match = re.fullmatch(r"(-?)(\d{1,3}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?", value) if isinstance(value, str) else None
    digits = declared.size if declared.size is not None else _SECOND_DIGITS.get((declared.dialect, "time"), 0)
    if match is None or declared.dialect not in {"mysql", "postgres"}:
        raise ValueError("a time in a form that is not read")
    fraction = (match[5] or "").rstrip("0")
    if fraction or (declared.dialect == "mysql" and digits):  # tools write 08:30:00 and 08:30:00.000
        raise ValueError("digits of a second")
    return Fill(f"{match[1]}{match[2]:0>2}:{match[3]}:{match[4] or '00'}")
