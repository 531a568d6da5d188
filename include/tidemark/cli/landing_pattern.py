"""The landing pattern of a source, from the path of a sample: fields of time where a date stands in it."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path, PurePosixPath

_DAY = re.compile(
    r"(?<!\d)(?P<year>20\d\d)(?P<gap>[-_/.]?)(?P<month>0[1-9]|1[0-2])(?P=gap)(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
    r"|year=(?P<year2>20\d\d)/month=(?P<month2>0?[1-9]|1[0-2])/day=(?P<day2>0?[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?<!\d)(?P<year3>20\d\d)(?P<gap3>[-_])(?P<month3>0?[1-9]|1[0-2])(?P=gap3)(?P<day3>0?[1-9]|[12]\d|3[01])(?!\d)"
)
"""A day. Its numbers may lack their leading zeros where it is certain that they are a month and a day."""

_HOUR = re.compile(r"/(?:(?P<name>(?:hour|hr|h)=)(?:[01]?\d|2[0-3])|(?:[01]\d|2[0-3]))/")
"""A folder of an hour, directly below the day."""


def pattern_of(sample: str) -> tuple[str, date | None]:
    """Return the landing pattern that fits the path of a sample, and the day that stands in the path.

    The files of a folder are taken by their ending. ``TIDEMARK_LANDING`` stands for its folder.
    """
    path = PurePosixPath(sample)
    root, rest = ("", sample) if "://" in sample else _below_root(PurePosixPath(os.path.abspath(sample)))  # noqa: PTH100  links stay
    found = _DAY.search(rest)
    if found is None:
        folder = rest.rpartition("/")[0]
        return root + _literal(f"{folder}/" if folder else "") + f"*{ending_of(path)}", None
    behind = rest[found.end() :]
    pattern = _literal(rest[: found.start()]) + _fields(found)
    if "/" not in behind:  # the day stands in the file's name
        return f"{root}{pattern}*{ending_of(path)}", _day(found)
    if hour := _HOUR.match(behind):
        pattern += f"/{hour['name'] or ''}%H"
        behind = behind[hour.end() - 1 :]
    folders = behind.rpartition("/")[0]
    return f"{root}{pattern}{_literal(folders)}/*{ending_of(path)}", _day(found)


def ending_of(path: PurePosixPath) -> str:
    """Return the ending of a file's name that other files of the source will have too."""
    compressed = path.suffix.lower() in {".gz", ".zst", ".bz2"}
    ending = "".join(path.suffixes[-2:]) if compressed else path.suffix
    return ending if re.fullmatch(r"(\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}", ending) else ""


def _below_root(path: PurePosixPath) -> tuple[str, str]:
    """Return the beginning of the pattern, with the variable where it fits, and the rest of the path."""
    given = os.environ.get("TIDEMARK_LANDING")
    folder = Path(given or "landing").absolute()
    if path.is_relative_to(folder):
        return "${TIDEMARK_LANDING:-landing}/", str(path.relative_to(folder))
    return "", str(path)


def _literal(text: str) -> str:
    """Return a text as it stands in a pattern: percent signs twice, and one letter for each sign that has a meaning."""
    return re.sub(r"[*?]|\$\{", lambda found: "?" * len(found[0]), text.replace("%", "%%"))


def _fields(found: re.Match[str]) -> str:
    if found["year2"]:
        return "year=%Y/month=%m/day=%d"
    return (found["gap3"] or found["gap"]).join(("%Y", "%m", "%d"))


def _day(found: re.Match[str]) -> date | None:
    year, month, day = (found[name] or found[f"{name}2"] or found[f"{name}3"] for name in ("year", "month", "day"))
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
