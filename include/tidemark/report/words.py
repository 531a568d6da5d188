"""Numbers, times and names as the report writes them, and the names of its pages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_LENGTH = 60


def file_name(name: str) -> str:
    """Return a name that is safe in a path and a link, and that no other name has, whatever characters they differ by.

    Also on a disk that does not tell capital from small letters.

    >>> file_name("erp.orders"), file_name("Orders/../x")[:12]
    ('erp.orders', 'orders-..-x~')
    """
    plain = re.sub(r"[^a-z0-9_.]+", "-", name.lower())[:_LENGTH]
    return plain if plain == name else f"{plain}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def table_page(table: str) -> str:
    """Return the name of the page of a table, in the folder of its source."""
    return f"table-{file_name(table)}.html"


def cut_page(cut: int) -> str:
    """Return the name of the page of a cut, in the folder of its source."""
    return f"cut-{cut}.html"


def number(value: float | None) -> str:
    """Return a number with its thousands apart, and nothing for None.

    >>> number(1234567), number(None)
    ('1,234,567', '')
    """
    return "" if value is None else f"{value:,}"


def compact(value: float) -> str:
    """Return a number in at most five characters.

    >>> compact(950), compact(12_000), compact(1_500_000), compact(0.25)
    ('950', '12k', '1.5M', '0.25')
    """
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def duration(seconds: float | None) -> str:
    """Return the two largest parts of a duration, and nothing for None.

    >>> duration(0), duration(75), duration(90_061), duration(28_356_921)
    ('0s', '1m 15s', '1d 1h', '328d 4h')
    """
    if seconds is None:
        return ""
    left, parts = max(0, int(seconds)), []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        parts.append(f"{count}{unit}")
    first = next((place for place, part in enumerate(parts) if part[:-1] != "0"), len(parts) - 1)
    return " ".join(part for part in parts[first : first + 2] if part[:-1] != "0") or parts[-1]


def rough_duration(seconds: float) -> str:
    """Return the largest part of a duration."""
    return duration(seconds).partition(" ")[0]


def time(moment: str | None) -> str:
    """Return a time in minutes, and nothing for None.

    >>> time("2026-01-02T03:04:05.678+00:00")
    '2026-01-02 03:04'
    """
    return "" if moment is None else datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M")


def leading_number(text: str) -> float | None:
    """Return the number that a text begins with, if it begins with one.

    >>> leading_number("32 of 94 unexpected"), leading_number("not shown")
    (32.0, None)
    """
    found = re.match(r"-?\d+(?:\.\d+)?(?![\w.:-])", text)
    return float(found[0]) if found else None


def todo(item: Mapping[str, Any], *, source: str = "", with_cut: bool = True) -> dict[str, Any]:
    """Return an item of what needs a person, with its links; ``source`` is given where the page is of all sources."""
    folder = f"{file_name(source)}/" if source else ""
    cut = item["cut"] if with_cut else None
    links = {"href": f"{folder}index.html", "cut_href": folder + cut_page(cut) if cut else ""}
    return {**item, "source": source, "cut": cut, **links}
