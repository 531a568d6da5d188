"""What of a source needs a person now, each with the command that goes on from it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from tidemark.ledger.check_rows import CHECK, QUALITY
from tidemark.ledger.reconciliation_rows import Result
from tidemark.ledger.states import CutState, TableState
from tidemark.queries.status_answer import Status, TableStatus
from tidemark.report.words import time
from tidemark.text import counted, enumerated

URGENT, LOOK = "urgent", "look"
"""Something is held back; or it is not, and a person should know of it."""


class Item(TypedDict):
    """What needs a person."""

    level: str
    """``URGENT`` or ``LOOK``."""
    text: str
    command: str | None
    """That goes on from it."""
    cut: int | None


def attention(
    source: str,
    status: Status,
    newest: Mapping[str, Any] | None,
    quarantine: Mapping[str, Any],
    reconciled: Mapping[str, Mapping[str, Any]],
) -> list[Item]:
    """Return what needs a person, what is urgent first.

    Args:
        source: name of the source.
        status: of the source, as ``status_of`` gives it.
        newest: the newest cut, as ``figures_of`` gives it.
        quarantine: as ``set_aside`` gives it.
        reconciled: how each table last compared with the source database, as ``figures_of`` gives it.
    """
    found = [
        *(_of_cut(source, newest) if newest else ()),
        *_of_ledger(source, status),
        *_of_tables(source, status["tables"]),
        *_of_comparisons(source, status["tables"], reconciled),
        *_of_rest(source, status, quarantine),
    ]
    return sorted(found, key=lambda item: item["level"] != URGENT)


def _of_cut(source: str, cut: Mapping[str, Any]) -> Iterator[Item]:
    number, state = cut["cut"], cut["state"]
    failed = [check for check in cut["checks"] if not check["success"] and check["stage"] == CHECK]
    blocking = [check for check in failed if check["severity"] == "block"]
    if state == CutState.FAILED:
        text = f"Cut {number} failed {counted(len(blocking), 'check')}: {_names(blocking)}. Nothing of it is published."
        yield _item(URGENT, text, f"tidemark check {source} && tidemark publish {source}", number)
    elif state == CutState.AWAITING_APPROVAL:
        text = f"Cut {number} waits for approval: {_names(blocking)}. Nothing of it is published."
        yield _item(URGENT, text, f"tidemark publish {source} --approve {number}", number)
    elif state == CutState.CANDIDATE:
        yield _item(LOOK, f"Cut {number} is not checked yet.", f"tidemark check {source}", number)
    elif state in {CutState.CHECKED, CutState.PUBLISHING}:
        yield _item(LOOK, f"Cut {number} is checked and not published yet.", f"tidemark publish {source}", number)
    elif state == CutState.REPLACED:
        yield _item(LOOK, f"Cut {number} was dropped for a newer one.", f"tidemark compact {source}", number)
    if state == CutState.PUBLISHED and failed:
        yield _item(LOOK, f"Cut {number} was published with warnings: {_names(failed)}.", None, number)
    again = [check for check in cut["checks"] if not check["success"] and check["stage"] == QUALITY]
    if again:
        level = URGENT if any(check["severity"] == "block" for check in again) else LOOK
        text = f"Cut {number} failed {counted(len(again), 'check')} on demand: {_names(again)}."
        yield _item(level, text, f"tidemark quality {source} --cut {number}", number)


def _of_ledger(source: str, status: Status) -> Iterator[Item]:
    if not status["closes"]:
        text = "Messages that landed are not all decoded, control or quarantined."
        yield _item(URGENT, text, f"tidemark status {source}")
    for path, problem in status["refused"].items():
        yield _item(URGENT, f"File {path} is refused: {problem}", f"tidemark land {source}")


def _of_tables(source: str, tables: Mapping[str, TableStatus]) -> Iterator[Item]:
    for name, table in tables.items():
        if table["state"] == TableState.STOPPED:
            yield _item(URGENT, f"Table {name} is stopped: {table['reason']}", f"tidemark status {source}")
        if not table["closes"]:
            yield _item(URGENT, f"Events of {name} are not all accounted for.", f"tidemark status {source}")


def _of_comparisons(
    source: str, tables: Mapping[str, TableStatus], reconciled: Mapping[str, Mapping[str, Any]]
) -> Iterator[Item]:
    for name, table in tables.items():
        found = reconciled.get(table["object"])
        result = found["result"] if found else None
        if found and result == Result.DIFFERS:
            counts = ", ".join(f"{found[word]} {word}" for word in ("lost", "extra", "different") if found[word])
            text = f"Table {name} differs from the source database: {counts}."
            yield _item(URGENT, text, f"tidemark reconcile {source} {shlex.quote(name)}")
        elif found and result == Result.NOT_COMPARED:
            text = f"Table {name} could not be compared with the source database: {found['reason']}"
            yield _item(LOOK, text, f"tidemark reconcile {source} {shlex.quote(name)}")


def _of_rest(source: str, status: Status, quarantine: Mapping[str, Any]) -> Iterator[Item]:
    if waiting := status["transactions"]["open"]:
        events = sum(each["events"] for each in waiting)
        since = f"{time(waiting[0]['since'])} UTC"
        text = f"{counted(len(waiting), 'transaction')} open since {since}; {counted(events, 'event')} held."
        yield _item(LOOK, text, f"tidemark status {source}")
    if quarantine["messages"]:
        most = "" if quarantine["all_read"] else " or more"
        reasons = ", ".join(dict.fromkeys(each["reason"] for each in quarantine["reasons"]))
        noun = "message" if quarantine["messages"] == 1 else "messages"
        text = f"{quarantine['messages']}{most} {noun} in quarantine: {reasons}."
        yield _item(LOOK, text, f"tidemark quarantine list {source}")
    for text in status["disorders"].values():
        yield _item(LOOK, text, None)
    for name, notes in status["ddl_not_followed"].items():
        for note in notes:
            yield _item(LOOK, f"{name}: {note}", None)
    for text in status["rename_signs"].values():
        yield _item(LOOK, text, None)


def _item(level: str, text: str, command: str | None, cut: int | None = None) -> Item:
    return {"level": level, "text": text, "command": command, "cut": cut}


def _names(checks: list[Mapping[str, Any]]) -> str:
    """Return the names of checks, each with its table and columns, the first five of them."""
    named = [f"{check['table']}: {check['name']}" + _columns(check["columns"]) for check in checks]
    return enumerated(named)


def _columns(columns: list[str]) -> str:
    return f" ({', '.join(columns)})" if columns else ""
