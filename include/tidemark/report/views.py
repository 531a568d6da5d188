"""What each page of a source shows: the figures, put in order and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tidemark.lake.names import Identifier
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.queries.status import MESSAGES
from tidemark.report import plots
from tidemark.report.figures import Figures
from tidemark.report.words import compact, cut_page, duration, leading_number, number, rough_duration, table_page, todo

View = dict[str, Any]

OPERATIONS = ("SNAPSHOT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")

FATES = ("applied", "superseded", "duplicate", "held", "quarantined", "erased")

_CHECKED = 20
"""How many of the newest cuts the history of checks shows."""

_BAR = 96.0


def source_view(figures: Figures) -> View:
    """Return what the page of a source shows."""
    status, shown = figures["status"], figures["cuts"]
    newest = shown[-1] if shown else None
    tables = status["tables"]
    series = {name: _rows_over(shown, name, table) for name, table in tables.items()}
    fates = {name: sum(table[name] for table in tables.values()) for name in ("events", *FATES)}
    rows = sum(table["rows"] or 0 for table in tables.values() if table["state"] in _VISIBLE)
    return {
        "source": figures["source"],
        "as_of": figures["as_of"],
        "todo": [todo(item) for item in figures["attention"]],
        "tiles": [
            ("newest cut", newest["cut"] if newest else "none", newest["verdict"] if newest else ""),
            ("published cut", status["published_cut"] or "none", ""),
            ("newest commit published", _day(_newest_published(shown)), ""),
            ("tables", number(len(tables)), ""),
            ("rows", number(rows), ""),
            ("in quarantine", number(figures["quarantine"]["messages"]), ""),
        ],
        "tables": [
            {"table": name, "href": table_page(name), "word": _word(table), "spark": plots.spark(series[name])} | table
            for name, table in tables.items()
        ],
        "flow": _flow(status["messages"], fates, rows if status["published_cut"] else None),
        "plots": _source_plots(shown, series),
        "cuts": [
            {name: cut[name] for name in ("cut", "verdict", "at", "newest_commit")}
            | {
                "href": cut_page(cut["cut"]),
                "messages": cut["messages"]["landed"],
                "events": cut["events"]["events"],
                "quarantined": cut["messages"]["quarantined"] + cut["events"]["quarantined"],
                "tables": len(cut["tables"]),
            }
            for cut in reversed(shown)
        ],
        "quarantine": figures["quarantine"] | {"reasons": _reasons(figures["quarantine"]["reasons"])},
        "open": status["transactions"]["open"],
        "rolled_back": status["transactions"]["rolled_back"],
        "schema": figures["schema"],
    }


_VISIBLE = {TableState.PUBLISHED, TableState.CANDIDATE, TableState.STOPPED, TableState.UNMOVED}


def _source_plots(shown: Sequence[Figures], series: Mapping[str, Sequence[float | None]]) -> list[View]:
    if not shown:
        return []
    rows = [sum(values[place] or 0 for values in series.values()) for place in range(len(shown))]
    return [
        _line("Rows of all tables", shown, rows, "rows"),
        _operations("Changes by operation", shown, [cut["operations"] for cut in shown]),
        _fates("What became of the events", shown, [cut["events"] for cut in shown]),
        _line("Lag when published", shown, [cut["lag_seconds"] for cut in shown], "lag", duration, rough_duration),
    ]


def table_view(figures: Figures, name: str) -> View:
    """Return what the page of a table shows."""
    table = figures["status"]["tables"][name]
    shown = [(cut, row) for cut in figures["cuts"] for row in cut["tables"] if row["table"] == name]
    its_cuts, rows = [cut for cut, _ in shown], [row for _, row in shown]
    fates = {key: table[key] for key in ("events", *FATES)}
    published = table["rows"] if any(cut["state"] == CutState.PUBLISHED for cut in its_cuts) or not shown else None
    namespace, plain = Identifier.parse(name)
    contradictions = [
        each | {"href": cut_page(each["cut"])} for each in figures["contradictions"] if each["table"] == table["object"]
    ]
    return {
        "source": figures["source"],
        "table": name,
        "object": table["object"],
        "source_part": namespace.replace('"', '""'),
        "name_part": plain.replace('"', '""'),
        "state": table["state"],
        "reason": table["reason"],
        "tiles": [
            ("newest verdict", "", _word(table)),
            ("rows", number(table["rows"]), ""),
            ("newest commit", _day(table["committed_at"]), ""),
            ("events", number(table["events"]), ""),
            ("held", number(table["held"]), ""),
            ("quarantined", number(table["quarantined"]), ""),
        ],
        "plots": [
            _line("Rows", its_cuts, [row["rows"] for row in rows], "rows"),
            _operations("Changes by operation", its_cuts, [row["operations"] for row in rows]),
        ]
        if shown
        else [],
        "flow": _flow({}, fates, published),
        **_checks_over(its_cuts, name),
        "contradictions": contradictions,
        "keys": any(each["key"] for each in contradictions),
        "reconciled": figures["reconciled"].get(table["object"]),
        "reasons": _reasons(each for each in figures["quarantine"]["reasons"] if each["table"] == table["object"]),
        "schema": [change for change in figures["schema"] if change["table"] == table["object"]],
    }


def cut_view(figures: Figures, place: int) -> View:
    """Return what the page of a cut shows; ``place`` is its place among the cuts of the figures."""
    shown = figures["cuts"]
    cut, known = shown[place], figures["status"]["tables"]
    checks = [check | {"word": result_word(check)} for check in cut["checks"]]
    before = [check for check in checks if check["stage"] == "check"]
    rows = sum(row["rows"] or 0 for row in cut["tables"] if row["state"] == TableState.PUBLISHED)
    beside = {
        "before": shown[place - 1] if place else None,
        "after": shown[place + 1] if place + 1 < len(shown) else None,
    }
    return {
        "source": figures["source"],
        **{name: cut[name] for name in ("cut", "state", "verdict", "at", "newest_commit")},
        **{name: each and {"cut": each["cut"], "href": cut_page(each["cut"])} for name, each in beside.items()},
        "todo": [todo(item, with_cut=False) for item in figures["attention"] if item["cut"] == cut["cut"]],
        "tables": [
            row | {"word": _word(row), "href": table_page(row["table"]) if row["table"] in known else ""}
            for row in cut["tables"]
        ],
        "flow": _flow(cut["messages"], cut["events"], rows if cut["state"] == CutState.PUBLISHED else None),
        "failed": [check for check in before if not check["success"]],
        "checks": before,
        "again": [check for check in checks if check["stage"] == "quality"],
    }


def result_word(check: Mapping[str, Any]) -> str:
    """Return the result of a check in one word."""
    if check["success"]:
        return VerdictWord.PASSED
    return VerdictWord.FAILED if check["severity"] == "block" else VerdictWord.WARNED


def _word(table: Mapping[str, Any]) -> str:
    """Return the verdict of a table, or its state where it has none, or where its state needs a person."""
    return str(table["state"] if table["state"] == TableState.STOPPED or not table["verdict"] else table["verdict"])


def _rows_over(shown: Sequence[Figures], name: str, table: Mapping[str, Any]) -> list[float | None]:
    """Return the rows of a table after each cut, also after cuts that did not touch it."""
    found = {place: row for place, cut in enumerate(shown) for row in cut["tables"] if row["table"] == name}
    first = next(iter(found.values()), None)
    rows: float | None = table["rows"] if first is None else first["rows_before"]
    values = []
    for place in range(len(shown)):
        if place in found and found[place]["rows"] is not None:
            rows = found[place]["rows"]
        values.append(rows)
    return values


def _newest_published(shown: Iterable[Figures]) -> str | None:
    return max(
        (cut["newest_commit"] for cut in shown if cut["state"] == CutState.PUBLISHED and cut["newest_commit"]),
        default=None,
    )


def _day(moment: str | None) -> str:
    return "" if moment is None else moment[:16].replace("T", " ")


def _names(shown: Iterable[Figures]) -> list[str]:
    return [str(cut["cut"]) for cut in shown]


def _line(
    title: str,
    shown: Sequence[Figures],
    values: Sequence[float | None],
    unit: str,
    words: Callable[[float | None], str] = number,
    axis: plots.Words = compact,
) -> View:
    names = _names(shown)
    rows = [[name, words(value)] for name, value in zip(names, values, strict=True)]
    return {
        "title": f"{title}, by cut",
        "plot": plots.line(values, names, axis),
        "kinds": (),
        "names": ["cut", unit],
        "rows": rows[::-1],
    }


def _operations(title: str, shown: Sequence[Figures], counts: Sequence[Mapping[str, int]]) -> View:
    present = [name for name in OPERATIONS if any(each.get(name) for each in counts)]
    return _stacked(title, shown, {name: [each.get(name, 0) for each in counts] for name in present})


def _fates(title: str, shown: Sequence[Figures], counts: Sequence[Mapping[str, int]]) -> View:
    present = [name for name in FATES if any(each[name] for each in counts)]
    return _stacked(title, shown, {name: [each[name] for each in counts] for name in present})


def _stacked(title: str, shown: Sequence[Figures], series: Mapping[str, Sequence[int]]) -> View:
    names = _names(shown)
    rows = [[name, *(number(values[place]) for values in series.values())] for place, name in enumerate(names)]
    return {
        "title": f"{title}, by cut",
        "plot": plots.bars(series, names),
        "kinds": [(name, name) for name in series] or [("whole", "none")],
        "names": ["cut", *series],
        "rows": rows[::-1],
    }


def _flow(messages: Mapping[str, int], events: Mapping[str, int], published: int | None) -> View:
    counts = {f"messages {name}": messages[name] for name in MESSAGES if name in messages}
    counts |= {"events" if name == "events" else f"events {name}": events[name] for name in ("events", *FATES)}
    counts |= {} if published is None else {"rows published": published}
    parts = [(name, f"messages {name}", messages[name]) for name in MESSAGES[1:] if messages.get(name)]
    parts += [(name, f"events {name}", events[name]) for name in FATES if events[name]]
    return {
        "plot": plots.flow(messages, {name: events[name] for name in ("events", *FATES)}, published),
        "legend": [(kind, f"{name} {number(count)}") for kind, name, count in parts],
        "rows": [(name, number(count)) for name, count in counts.items()],
    }


def _reasons(reasons: Iterable[Mapping[str, Any]]) -> list[View]:
    found = [dict(each) for each in reasons]
    most = max((each["messages"] for each in found), default=1)
    return [each | {"width": round(max(2.0, _BAR * each["messages"] / most), 1)} for each in found]


def _checks_over(shown: Sequence[Figures], name: str) -> View:
    """Return the history of a table's checks: ``judged`` are the cuts, ``checks`` have a cell for each of them."""
    judged = [cut for cut in shown if any(row["table"] == name for row in cut["checks"])][-_CHECKED:]
    found: dict[tuple[str, tuple[str, ...]], dict[int, View]] = {}
    for cut in reversed(judged):  # checks stand in the order of the newest cut
        for row in cut["checks"]:
            if row["table"] == name and row["stage"] == "check":
                word = result_word(row)
                found.setdefault((row["name"], tuple(row["columns"])), {})[cut["cut"]] = {
                    "word": word,
                    "cut": cut["cut"],
                    "href": f"{cut_page(cut['cut'])}#checks",
                    "text": f"cut {cut['cut']}: {word}, {row['observed']}",
                    "observed": row["observed"],
                    "expected": row["expected"],
                }
    checks = []
    for (check, columns), by_cut in found.items():
        cells = [by_cut.get(cut["cut"]) for cut in judged]
        observed = [leading_number(cell["observed"]) if cell else None for cell in cells]
        checks.append({"name": check, "columns": columns, "cells": cells, "spark": plots.spark(observed)})
    return {"judged": _names(judged), "checks": checks}
