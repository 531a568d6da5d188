"""From a wall-clock time with a zone (an offset or the name of a region) to an instant in ISO 8601."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidemark.errors import UnreadableValueError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")

_REGION = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}")


def instant_of(wall_clock: str, zone: str) -> str:
    """Return ``wall_clock`` (``2026-01-31 23:59:59.000001``) in ``zone`` as ISO 8601 with an offset or ``Z``.

    Raises:
        UnreadableValueError: there is no such zone, or its clocks showed the time twice or never.
    """
    offset = _offset(zone)
    return wall_clock + offset if offset is not None else _in_region(wall_clock, zone)


@functools.lru_cache(maxsize=1024)
def _offset(zone: str) -> str | None:
    """Return ``+08:00`` or ``Z`` for an offset; None for any other zone, which must be the name of a region."""
    if zone in {"Z", "UTC", "GMT", "+00:00"}:
        return "Z"
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours > 18 or minutes > 59:
        raise UnreadableValueError(f"no offset of a zone: {zone}")
    return f"{match[1]}{hours:02d}:{minutes:02d}"


@functools.lru_cache(maxsize=1024)
def _region(zone: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(zone) if len(zone) <= 60 and _REGION.fullmatch(zone) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _in_region(wall_clock: str, zone: str) -> str:
    region = _region(zone)
    if region is None:
        raise UnreadableValueError(f"no zone that is known: {zone[:60]!r}")
    seconds, _, fraction = wall_clock.partition(".")
    try:
        local = datetime.fromisoformat(seconds).replace(tzinfo=region)
        instant = local.astimezone(UTC)
        unique = local.utcoffset() == local.replace(fold=1).utcoffset()
    except (ValueError, OverflowError) as error:
        raise UnreadableValueError(f"{wall_clock} in {zone}: {error}") from error
    if not unique:
        raise UnreadableValueError(f"{wall_clock} was twice or never in {zone}: which instant, nobody can tell")
    return f"{instant:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + (f".{fraction}" if fraction else "") + "Z"
