"""Names in the source file that fit nothing are told, and nothing that was to be hidden is published by a slip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import run_all
from tidemark.events import Column
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow, ShapeRow, StatementRow
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.quality.unfit_entries import UNFIT_COLUMNS, UNFIT_TABLES, judged
from tidemark.sources.model import Source

_COLUMNS = {"crm.customers": ("id", "email", "phone"), "crm.orders": ("id", "total"), "crm.cards": ("id", "number")}


def _source(tables: dict[str, Any]) -> Source:
    fields = {"source": "crm", "format": "canal_json", "landing": "/landing/*", "tables": tables}
    return Source.model_validate(fields)


@pytest.fixture(scope="module")
def ledger(lake: Lake) -> Ledger:
    """The ledger of a source with three tables, one of which had another column before a rename."""
    ledger, of = Ledger(lake, "crm"), {"database": "crm", "schema": None, "shape": "1", "partial": False, "key": None}
    for name, columns in _COLUMNS.items():
        rest = {"operation": "INSERT", "half": False, "events": 1, "name": name.partition(".")[2]}
        ledger.replace(ContentRow, [ContentRow(batch=1, object=name, **of, **rest)])
        text = msgspec.json.encode([Column(each, None) for each in columns]).decode()
        ledger.replace(ShapeRow, [ShapeRow(batch=1, object=name, shape="1", columns=text)])
    rename = {"position": "1", "statement": "ALTER TABLE cards RENAME COLUMN pan TO number", "dialect": "mysql"}
    ledger.replace(StatementRow, [StatementRow(batch=1, database="crm", schema=None, name="cards", **rename)])
    return ledger


def test_names_that_fit_are_not_told(ledger: Ledger) -> None:
    """Patterns, names of columns before a rename and after it, published names, and letters of either case."""
    tables = {
        "crm.customers": {
            "mask": {"E*": "hash", "mail": "null"},
            "rename": {"email": "mail"},
            "select": ["ID", "email"],
        },
        r"crm\.(or.*)": {"exclude": ["total"]},
        "crm.c*": {"mask": {"pan": "last4", "number": "last4"}},
        "crm.?????s": {"key": ["id"]},
    }
    assert list(judged(ledger, _source(tables))) == []
    assert list(judged(ledger, _source({}))) == []


def test_an_entry_that_fits_no_table_warns(ledger: Ledger) -> None:
    """It may be declared ahead of its first message; where it hides something, the sentence says that it does not."""
    tables = {"crm.custmers": {"mask": {"email": "redact"}, "where": "id > 1"}, "erp.*": {"key": ["id"]}}
    (found,) = judged(ledger, _source(tables))
    assert (found.result.name, found.result.severity, found.blocks) == (UNFIT_TABLES, "warn", False)
    assert (found.result.columns, found.result.observed) == (("crm.custmers", "erp.*"), "2")
    assert found.sentences == (
        (
            "crm: the entry crm.custmers of `tables` fits no table that has events, so nothing is hidden by its "
            "`mask`, `where`. Did you mean 'crm.customers'?"
        ),
        "crm: the entry erp.* of `tables` fits no table that has events yet.",
    )


@pytest.mark.parametrize(
    ("tables", "blocks"),
    [
        ({"CRM.CUSTOMERS": {"mask": {"email": "redact"}}}, True),
        ({"CRM.C*": {"exclude": ["email"]}}, True),
        ({"CRM.CUSTOMERS": {"key": ["id"]}}, False),
        ({"CRM.CUSTOMERS": {"mask": {"email": "redact"}}, "crm.customers": {"key": ["id"]}}, False),
    ],
    ids=["a table", "a pattern", "nothing is hidden", "the other table has an entry"],
)
def test_a_name_in_other_letters_holds_the_cut_where_something_is_to_be_hidden(
    ledger: Ledger,
    tables: dict[str, Any],
    blocks: bool,  # noqa: FBT001 - a column of the cases
) -> None:
    """Names of tables are compared as they are, and those of columns are not: one expects the same of both."""
    (found,) = judged(ledger, _source(tables))
    assert found.blocks is blocks
    assert (" Is it crm.c" in found.sentences[0]) is blocks


def test_a_column_that_no_table_of_the_entry_ever_had_is_told(ledger: Ledger) -> None:
    """Of each option that names columns."""
    options = {"mask": {"e_mail": "hash"}, "exclude": ["phne"], "rename": {"totl": "amount"}, "key": ["id"]}
    (found,) = judged(ledger, _source({"crm.customers": options, "crm.*": {"exclude": ["totals"]}}))
    assert (found.result.name, found.blocks) == (UNFIT_COLUMNS, False)
    assert found.result.columns == ("crm.*.totals", *(f"crm.customers.{name}" for name in ("e_mail", "phne", "totl")))
    assert found.sentences == (
        "crm: `exclude` of crm.* names the column totals, which no table of the entry has. Did you mean 'total'?",
        "crm: `mask` of crm.customers names the column e_mail, which no table of the entry has. Did you mean 'email'?",
        "crm: `exclude` of crm.customers names the column phne, which no table of the entry has. Did you mean 'phone'?",
        "crm: `rename` of crm.customers names the column totl, which no table of the entry has.",
    )


@pytest.mark.spark
def test_a_warning_publishes_all_tables_and_another_spelling_none(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """What is declared ahead changes nothing of a run but its remarks; a person may approve what is held."""
    item = Table("orders", columns=("id", "name"))
    deliver(tmp_path, "1", [message(item.insert(1, 1, "a"))])
    fields = {"source": "unfit", "format": "debezium_json", "landing": str(tmp_path / "*")}
    ahead = {"shop.orders": {"key": ["id"], "mask": {"ssn": "hash"}}, "shop.later": {"mask": {"name": "hash"}}}
    report = run_all(Source.model_validate({**fields, "tables": ahead}))["check"]
    assert report.problems == ()
    assert len([text for text in report.remarks if "has events" in text or "names the column ssn" in text]) == 2
    assert lake.load(("unfit", "orders")).scan().to_arrow().num_rows == 1

    deliver(tmp_path, "2", [message(item.insert(2, 2, "b"))])
    source = Source.model_validate({**fields, "tables": {"Shop.Orders": {"mask": {"name": "hash"}}}})
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, source, None, None)
    problems = run_stage("check", source, None, None).problems
    assert any(each.endswith("so nothing is hidden by its `mask`. Is it shop.orders?") for each in problems), problems
    assert problems[-1].startswith("cut 2 of unfit is held. If that is right, `tidemark publish unfit --approve 2`"), (
        problems
    )
    assert len(problems) == 3, problems
    cut = Ledger(lake, "unfit").last_cut()
    assert cut is not None
    assert cut.state == CutState.AWAITING_APPROVAL
