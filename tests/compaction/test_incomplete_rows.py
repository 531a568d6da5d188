"""Rows that only updates brought, and only in part, are reported where the source does not write rows in parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import UNAVAILABLE, canal, deliver
from support.rounds import PROVING
from support.running import run_all
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

Make = Callable[..., Source]


def _message(table: str, op: str, after: dict[str, Any], lsn: int, connector: str = "postgresql") -> bytes:
    origin = {"connector": connector, "db": "shop", "schema": "app", "table": table, "lsn": lsn, "txId": lsn}
    block = {**origin, "ts_ms": 1767225600000 + lsn}
    return json.dumps({"op": op, "before": None, "after": after, "source": block}).encode()


def _found(lake: Lake, shop: Source) -> dict[tuple[int, str], tuple[str, int, str, int | None]]:
    rows = Ledger(lake, shop.source).contradictions()
    contradictions = {
        (row.cut, row.object.rpartition(".")[2]): (row.kind, row.events, row.file or "", row.place) for row in rows
    }
    return {key: (kind, events, Path(file).stem, place) for key, (kind, events, file, place) in contradictions.items()}


def test_a_row_that_an_update_begins_is_told_until_its_rest_comes(
    source: Make, spark: SparkSession, lake: Lake
) -> None:
    """A large value that did not change is unknown where no INSERT or load brought it, or its INSERT is set aside.

    Cassandra writes parts of rows without a look at the row before. A change log of an older version does not say which
    events do so.
    """

    def cells(**values: Any) -> dict[str, Any]:
        return {name: value if value is None else {"value": value, "set": True} for name, value in values.items()}

    declared = {"key": ["id"], "columns": {"id": "long", "n": "int", "body": "string"}}
    tables = dict.fromkeys(("shop.app.notes", "shop.app.aside", "shop.app.parts"), declared)
    shop = source("debezium_json", tables=tables)
    folder = Path(shop.landing).parent
    partial = {"id": 1, "n": 2, "body": UNAVAILABLE}
    deliver(folder, "1", [
        _message("notes", "c", {"id": 3, "n": 1, "body": "c"}, 10),
        _message("notes", "u", {"id": 3, "n": 2, "body": UNAVAILABLE}, 11),
        _message("notes", "u", partial, 12),
        _message("aside", "c", {"id": 1, "n": "many", "body": "a"}, 13),
        _message("aside", "u", partial, 14),
        _message("parts", "i", cells(id=1, n=2, body=None), 15, "cassandra"),
    ])  # fmt: skip
    for stage in ("land", "normalize"):
        run_stage(stage, shop, None, None)
    remarks = run_stage("compact", shop, None, None).remarks
    asked = Source.model_validate({**shop.model_dump(by_alias=True), "invariants": {"incomplete_rows": "block"}})
    problems = run_stage("check", asked, None, None).problems
    assert any("1 rows of which events carry a part" in problem for problem in problems), problems
    for stage in ("check", "publish"):
        run_stage(stage, shop, None, None)
    assert _found(lake, shop) == {
        (1, "notes"): ("incomplete_rows", 1, "1", 3),
        (1, "aside"): ("incomplete_rows", 1, "1", 5),
    }
    expected = "shop.app.notes: 1 rows of which events carry a part, and none the rest, which is null (id=1)."
    assert any(remark.startswith(expected) for remark in remarks), remarks
    with lake.load(names.change_log(shop.source)).update_schema() as update:
        update.delete_column("upsert")
    deliver(folder, "2", [
        _message("notes", "u", {"id": 1, "n": 3, "body": UNAVAILABLE}, 20),
        _message("notes", "c", {"id": 1, "n": 1, "body": "late"}, 9),
        _message("aside", "u", {"id": 1, "n": 3, "body": UNAVAILABLE}, 21),
        _message("parts", "u", cells(id=2, n=2, body=None), 22, "cassandra"),
    ])  # fmt: skip
    run_all(shop)
    assert {key: found for key, found in _found(lake, shop).items() if key[0] == 2} == {
        (2, "aside"): ("incomplete_rows", 1, "2", 3)
    }
    rows = lake.load((shop.source, "notes")).scan(selected_fields=("id", "n", "body")).to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "n": 3, "body": "late"},
        {"id": 3, "n": 2, "body": "c"},
    ]


def _a_day_later(message: bytes) -> bytes:
    return message.replace(b'"es": 1767225600000', b'"es": 1767312000000')


@pytest.mark.more
def test_an_insert_without_all_columns_is_reported(source: Make, spark: SparkSession, lake: Lake) -> None:
    """A column that MySQL does not log of an INSERT has its default. It is null here, and not as in a deleted row.

    A row with all columns is none of them, and an INSERT of a row that is there contradicts it as in any table, of the
    same run, and in ``make prove`` of an earlier one.
    """
    whole, pair = {"id": "int", "status": "text", "n": "int"}, {"status": "text", "n": "int"}
    tables: dict[str, Any] = {"shop.hard": {}, "shop.soft": {"deletes": "soft"}, "shop.bag": {}, "shop.again": {}}
    shop = source("canal_json", options={"row_image": "partial"}, tables=tables)
    folder = Path(shop.landing).parent
    first = [
        message
        for table in ("hard", "soft")
        for message in (
            canal(table, "INSERT", whole, ("1", "paid", "1"), ("2", "sent", "2")),
            canal(table, "DELETE", whole, ("1", "paid", "1")),
            canal(table, "INSERT", {"id": "int"}, ("1",)),
        )
    ]
    bag = [canal("bag", "INSERT", pair, ("a", "1"), key=[]), canal("bag", "INSERT", {"n": "int"}, ("3",), key=[])]
    later = canal("again", "INSERT", whole, ("2", "lost", "0"), ("3", "new", "0"))
    again = [canal("again", "INSERT", whole, ("2", "sent", "2")), _a_day_later(later)]
    deliver(folder, "1", [*first, *bag, *again])
    run_all(shop)
    assert _found(lake, shop) == {
        **{(1, table): ("incomplete_rows", 1, "1", place) for table, place in (("hard", 3), ("soft", 6), ("bag", 8))},
        (1, "again"): ("existing_rows", 1, "1", 10),
    }
    rows = {
        table: lake.load((shop.source, table)).scan(selected_fields=tuple(whole)).to_arrow().to_pylist()
        for table in ("hard", "soft", "again")
    }
    one, two = {"id": 1, "status": None, "n": None}, {"id": 2, "status": "sent", "n": 2}
    assert sorted(rows["soft"], key=lambda row: row["id"]) == [one, two]
    assert sorted(rows["hard"], key=lambda row: row["id"]) == [one, two]
    assert sorted(rows["again"], key=lambda row: row["id"]) == [
        {"id": 2, "status": "lost", "n": 0}, {"id": 3, "status": "new", "n": 0},
    ]  # fmt: skip
    if PROVING:
        later = canal("hard", "INSERT", whole, ("2", "lost", "0"), ("3", "new", "0"))
        deliver(folder, "2", [_a_day_later(later)])
        run_all(shop)
        assert {key: found for key, found in _found(lake, shop).items() if key[0] == 2} == {
            (2, "hard"): ("existing_rows", 1, "2", 1)
        }
