"""The page of all sources, from a summary that each source keeps beside its pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from tidemark.ledger.states import CutState
from tidemark.report.attention import URGENT
from tidemark.report.figures import WORST, Figures
from tidemark.report.words import cut_page, file_name, todo

_DAYS, _LEAST_DAYS = 30, 14
"""Most and fewest days that the page shows, up to the newest day of any source."""

_AT_ONCE = 6
"""What is shown of what needs a person, so that the days are in sight; what is urgent always is. The rest unfolds."""


def summary_of(figures: Figures) -> dict[str, Any]:
    """Return what the overview shows of a source."""
    status, shown = figures["status"], figures["cuts"]
    newest = shown[-1] if shown else None
    published = [cut for cut in shown if cut["state"] == CutState.PUBLISHED]
    commits = [cut for cut in published if cut["newest_commit"]]
    tables = status["tables"].values()
    return {
        "source": figures["source"],
        "cut": newest and newest["cut"],
        "verdict": newest and newest["verdict"],
        "newest_commit": max((cut["newest_commit"] for cut in commits), default=None),
        "published_at": status["published_at"],
        "lag_seconds": published[-1]["lag_seconds"] if published else None,
        "tables": len(tables),
        "rows": sum(table["rows"] or 0 for table in tables),
        "held": sum(table["held"] for table in tables),
        "quarantined": status["messages"]["quarantined"] + sum(table["quarantined"] for table in tables),
        "attention": figures["attention"],
        "days": by_day(shown),
    }


def by_day(shown: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Return the worst cut of each day: that of its newest commit, or of its own time, which is no earlier.

    A commit time in the future would move the days of all sources out of sight. A cut that no check judged, as that of
    an erasure, says nothing of its day.
    """
    days: dict[str, dict[str, Any]] = {}
    for cut in shown:
        moment = min((each for each in (cut["newest_commit"], cut["at"]) if each), default=None)
        if moment is None or cut["verdict"] == CutState.PUBLISHED:
            continue
        day = days.setdefault(moment[:10], {"verdict": cut["verdict"], "cut": cut["cut"], "cuts": 0, "events": 0})
        day["cuts"] += 1
        day["events"] += cut["events"]["events"]
        if _badness(cut["verdict"]) >= _badness(day["verdict"]):
            day |= {"verdict": cut["verdict"], "cut": cut["cut"]}
    return days


def _badness(word: str) -> int:
    return WORST.index(word) if word in WORST else len(WORST)


def overview(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the overview shows."""
    days = _shown_days({day for each in summaries for day in each["days"]})
    found = [todo(item, source=each["source"]) for each in summaries for item in each["attention"]]
    items = sorted(found, key=lambda item: item["level"] != URGENT)
    at_once = max(_AT_ONCE, sum(item["level"] == URGENT for item in items))
    return {
        "todo": items[:at_once],
        "more": items[at_once:],
        "days": [
            {"month": _month(day) if day[8:] == "01" or not place else "", "day": day[8:]}
            for place, day in enumerate(days)
        ],
        "sources": [{**each, "href": _home(each), "cells": _cells(each, days)} for each in summaries],
    }


def _shown_days(known: Collection[str]) -> list[str]:
    if not known:
        return []
    last = date.fromisoformat(max(known))
    width = min(_DAYS, max(_LEAST_DAYS, (last - date.fromisoformat(min(known))).days + 1))
    return [(last - timedelta(days=ago)).isoformat() for ago in reversed(range(width))]


def _month(day: str) -> str:
    return f"{date.fromisoformat(day):%b}"


def _home(summary: Mapping[str, Any]) -> str:
    return f"{file_name(summary['source'])}/index.html"


def _cells(summary: Mapping[str, Any], days: Sequence[str]) -> list[dict[str, Any] | None]:
    folder = file_name(summary["source"])
    cells: list[dict[str, Any] | None] = []
    for name in days:
        day = summary["days"].get(name)
        text = day and f"{summary['source']}, {name}: {day['verdict']}, {day['cuts']} cuts, {day['events']:,} events"
        cells.append(day and {"verdict": day["verdict"], "href": f"{folder}/{cut_page(day['cut'])}", "text": text})
    return cells
