"""Find the tables that have new events or statements, and what the ledger knows of each."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidemark.ddl.history import SchemaHistory, histories
from tidemark.events import Operation
from tidemark.lake.filters import above, equals
from tidemark.ledger import cuts, tally
from tidemark.ledger.ledger import Ledger, Row
from tidemark.sources.model import SchemaPolicy, Source, Transactions
from tidemark.tables import withheld as withholding
from tidemark.tables.plan import Found
from tidemark.tables.withheld import Withheld


def is_awaiting_approval(ledger: Ledger, batch: int) -> bool:
    """Whether all there is waits for approval already: what a person looks at does not change under their hands."""
    cut = ledger.last_cut()
    return cut is not None and cut["state"] == cuts.HELD and cut["batch"] == batch


def batches_in_state(ledger: Ledger, last: Row | None, state: str) -> dict[str, int]:
    """Objects that stand behind the last cut because of their state in it, and the batch they stand at."""
    published = ledger.published_tables().items() if last else ()
    return {name: row["batch"] for name, row in published if row["state"] == state}


def is_released(ledger: Ledger, source: Source) -> bool:
    """Whether events that were held are held no more, though nothing new has come."""
    ignored = source.transactions == Transactions.IGNORE
    return ignored and any(row["held"] for row in ledger.published_tables().values())


def find_tables(
    ledger: Ledger,
    source: Source,
    stands: Mapping[str, int],
    default: int,
    newest: int,
    published: Mapping[str, Row],
) -> dict[str, Found]:
    """What the new events and schema changes tell of each table, and the events that are taken in late."""
    withheld = _withheld(ledger, source, stands, default, newest, published)
    lowest = min([default, *stands.values(), *(each.since - 1 for each in withheld.values() if each.since)])
    shapes: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.read("shapes"):
        shapes[row["object"]].append(row)
    by_object: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.read("contents", above("batch", lowest)):
        name = row["object"]
        after = stands.get(name, default)
        since = withheld[name].since if name in withheld else 0
        if (after < row["batch"] or 0 < since <= row["batch"]) and row["batch"] <= newest:
            by_object[name].append(row)
    told = histories(ledger, {*by_object, *published})
    about = {name: rows[0] for name, rows in by_object.items()}
    for name in published:
        if name in told and name not in about and told[name].since(stands.get(name, default), newest):
            about[name] = ledger.read("contents", equals("object", name))[0]
    paths = [row["path"] for row in ledger.read("files")]
    common_path = len(os.path.commonprefix(paths))  # noqa: RUF071  characters are meant
    split = _with_halves(ledger, by_object, newest)
    finds = {}
    for name in sorted(about):
        after, kept = stands.get(name, default), withheld.get(name, withholding.NOTHING)
        found = _found(about[name], by_object[name], shapes[name], after, kept)
        finds[name] = replace(
            found,
            halves=found.halves or name in split,
            history=told.get(name, SchemaHistory()).until(newest),
            common_path=common_path,
        )
    return finds


def _with_halves(ledger: Ledger, contents: Mapping[str, Sequence[Row]], newest: int) -> set[str]:
    """Of tables with new partial images those of which any batch had the old half of an update."""
    names = {name for name, rows in contents.items() if any(row["partial"] for row in rows)}
    told = ledger.read("contents", equals("half", value=True)) if names else []
    return names & {row["object"] for row in told if row["batch"] <= newest}


def _withheld(
    ledger: Ledger,
    source: Source,
    stands: Mapping[str, int],
    default: int,
    newest: int,
    published: Mapping[str, Row],
) -> dict[str, Withheld]:
    """What open and undone transactions change, by table; nothing of tables that have no events of them."""
    rows = withholding.acting(ledger.read("transactions"), min([default, *stands.values()]))
    tables = withholding.tables_of(rows)
    if not tables:
        return {}
    carried = {name for name, row in published.items() if row["held"]}
    ignored = source.transactions == Transactions.IGNORE
    return {
        name: withholding.withheld_for(
            rows, name, stands.get(name, default), newest, carried=name in carried, ignored=ignored
        )
        for name in tables
    }


def under_schema_policy(source: Source, found: Found) -> Found:
    """What the source's policy lets DDL tell of a table."""
    if source.schema_policy is SchemaPolicy.IGNORE:
        return replace(found, history=replace(found.history, renamings=(), additions=()))
    return found


def _found(about: Row, rows: Sequence[Row], shapes: Iterable[Row], after: int, withheld: Withheld) -> Found:
    used = {row["shape"] for row in rows}
    new = [row for row in rows if row["batch"] > after]
    events, truncates = withheld.taken
    return Found(
        object=about["object"],
        after=after,
        database=about["database"],
        schema=about["schema"],
        name=about["name"],
        events=events + sum(row["events"] for row in new),
        truncates=truncates + sum(row["events"] for row in new if row["operation"] == Operation.TRUNCATE),
        shapes={
            row["shape"]: tally.shape_from(row["columns"])
            for row in sorted(shapes, key=_seniority)
            if row["shape"] in used
        },
        keys=sorted({tuple(row["key"]) for row in rows if row["key"] is not None}),
        partial=any(row["partial"] for row in rows),
        halves=any(row["half"] for row in rows),
        withheld=withheld,
    )


def _seniority(row: Row) -> tuple[int, int, str]:
    """Shapes by batch and width, so that columns keep the source's order as the table grows."""
    return (row["batch"], len(row["columns"]), row["shape"])
