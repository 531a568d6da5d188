"""``tidemark status`` as text: a table of the tables below each source, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidemark.cli.layout import Group, TextColumn
from tidemark.cli.printing import print_groups, tell
from tidemark.ledger.reconciliation_rows import Result
from tidemark.ledger.states import CutState, VerdictWord
from tidemark.queries.status_answer import LogState, Status, TableStatus
from tidemark.report.words import duration, time
from tidemark.text import listed

_OPEN_SHOWN = 10
"""Most open transactions of a source that are listed."""

_NAME_SHOWN = 150
"""Most characters of a name that are printed. The name of a published table is shorter."""

_COLUMNS = (
    TextColumn(name="table"),
    TextColumn(name="rows", number=True),
    TextColumn(name="events", number=True, spared=4),
    TextColumn(name="applied", number=True, spared=3),
    TextColumn(name="superseded", number=True, optional=True, spared=2),
    TextColumn(name="duplicate", number=True, optional=True, spared=1),
    TextColumn(name="held", number=True, optional=True),
    TextColumn(name="quarantined", number=True, optional=True),
    TextColumn(name="verdict", is_state=True),
    TextColumn(name="state", is_state=True),
    TextColumn(name="lag", number=True),
)

_WHOLE = tuple(TextColumn(name=each.name, number=each.number, is_state=each.is_state) for each in _COLUMNS)


def print_status(
    found: Sequence[Status],
    *,
    whole: bool = False,
    failed: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> None:
    """Print the answers of ``status.status_of``. What needs attention goes to standard error.

    Args:
        found: an answer for each source.
        whole: whether all columns are printed.
        failed: source -> table -> checks that failed in the newest cut, of sources whose newest cut failed.
    """
    columns = _WHOLE if whole else _COLUMNS
    print_groups(columns, [_group(entry) for entry in found], see_all="--all")
    for entry in found:
        for line in _attention(entry):
            tell(line)
        for line in _next_step(entry, (failed or {}).get(entry["source"], {})):
            tell(line)


def _group(entry: Status) -> Group:
    cut = entry["cut"]
    if not entry["tables"] and not entry["messages"]["landed"]:
        return Group(heading=f"{entry['source']}: nothing has landed yet", rows=[])
    heading = f"{entry['source']}: cut {cut['number']} {cut['state']}" if cut else f"{entry['source']}: no cut yet"
    rows = [_row(entry["source"], name, table) for name, table in entry["tables"].items()]
    return Group(heading=heading, rows=rows, footer=[*_sentences(entry)])


def _row(source: str, name: str, table: TableStatus) -> list[str]:
    cells = {**table, "table": _short(name.removeprefix(f"{source}.")), "lag": duration(table["lag_seconds"])}
    return ["" if cells[column.name] is None else str(cells[column.name]) for column in _COLUMNS]


def _sentences(entry: Status) -> Iterator[str]:
    messages = entry["messages"]
    equal = "=" if entry["closes"] else "IS NOT"
    parts = f"{messages['decoded']} decoded + {messages['control']} control + {messages['quarantined']} quarantined"
    cut, at = entry["published_cut"], entry["published_at"]
    yield f"{entry['source']}: {messages['landed']} messages landed {equal} {parts}"
    yield f"{entry['source']}: " + (f"published cut {cut} at {time(at)} UTC" if cut else "nothing is published yet")
    yield from _logs(entry)
    times = [table["verified_through"] for table in entry["tables"].values() if table["reconciled"]]
    if times:
        verified = [at for at in times if at is not None]
        oldest = f"verified through {min(verified)}" if verified == times else "not all verified yet"
        yield f"{entry['source']}: {len(times)} tables compared with the source database, {oldest}"


def _logs(entry: Status) -> Iterator[str]:
    """Yield a line about the log that the source is in, and one for each table that is in another log."""
    of_source = entry["log"]
    if of_source:
        yield f"{entry['source']}: {_log(of_source)}"
    for name, table in entry["tables"].items():
        if table["log"] and table["log"] != of_source:
            yield f"{_short(name)}: {_log(table['log'])}"


def _log(log: LogState) -> str:
    since = f" since {log['since'].replace('+00:00', 'Z')} (`{log['opened_by']}`)" if log["since"] else ""
    return f"in log {log['number']} of the source{since}"


def _attention(entry: Status) -> Iterator[str]:
    source = entry["source"]
    for name, table in entry["tables"].items():
        if table["reason"]:
            yield f"{_short(name)} {table['state']}: {_short(table['reason'], 2000)}"
        if table["reconciled"] == Result.DIFFERS:
            yield f"{_short(name)} differs from the source database: `tidemark reconcile {source}` lists keys"
        if not table["closes"]:
            yield f"{name}: events are not applied + superseded + duplicate + held + quarantined + erased"
    for path, problem in entry["refused"].items():
        yield f"{path} refused: {problem}"
    yield from entry["disorders"].values()
    for name, notes in entry["ddl_not_followed"].items():
        yield from (f"{name}: {note}" for note in notes)
    yield from entry["rename_signs"].values()
    for waiting in entry["transactions"]["open"][:_OPEN_SHOWN]:
        yield (
            f"{source}: transaction {waiting['id']} is open since {waiting['since']}: "
            f"{waiting['events']} events held in {', '.join(waiting['tables'])}; {waiting['why']}"
        )
    more = len(entry["transactions"]["open"]) - _OPEN_SHOWN
    if more > 0:
        yield f"{source}: {more} more transactions are open; --json lists them all"
    if elsewhere := entry["transactions"]["not_awaited"]:
        names = listed(list(map(_short, elsewhere)), _OPEN_SHOWN)
        yield f"{source}: transactions do not wait for events of {names}: they are counted, and never landed"


def _next_step(entry: Status, failed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what goes on with a cut that a check or a person has to release."""
    source, cut = entry["source"], entry["cut"]
    if not cut or cut["state"] not in {CutState.AWAITING_APPROVAL, CutState.FAILED}:
        return
    if cut["state"] == CutState.AWAITING_APPROVAL:
        yield (
            f"{source}: cut {cut['number']} awaits approval: `tidemark check {source}` says why, "
            f"`tidemark publish {source} --approve {cut['number']}` publishes it"
        )
        return
    checks = [f"{table}: {', '.join(names)}" for table, names in failed.items()]
    named = "; ".join(checks) or ", ".join(
        name for name, table in entry["tables"].items() if table["verdict"] == VerdictWord.FAILED
    )
    yield f"{source}: cut {cut['number']} failed a check, and nothing of it is published: {named}"
    yield (
        f"{source}: after a fix of the check, `tidemark check {source}` and `tidemark publish {source}` go on; after a "
        f"fix of the data, `tidemark run {source}`"
    )


def _short(text: str, most: int = _NAME_SHOWN) -> str:
    """Return a text whole; of one that no table or reason of ours has, the beginning, and how much there is more."""
    return text if len(text) <= most else f"{text[:most]} (and {len(text) - most} more characters)"
