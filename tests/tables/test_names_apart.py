"""Renames that a table as a whole does not follow: of one shard, and of kept columns. Without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table import Table as IcebergTable

from support.plans import SOURCE, found, published, renamed, shape, source
from tidemark.ddl.history import SchemaHistory
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.lake.properties import RULES_PROPERTY
from tidemark.sources import routes
from tidemark.sources.model import Source
from tidemark.tables import schema_policies
from tidemark.tables.plan import Found, Plan, Shard
from tidemark.tables.planner import plan
from tidemark.tables.shards import Shards

KEPT: dict[str, Any] = {"schema": {"rename": "keep"}}
USERS = r"shop_(\d+).users"


def _names(made: Plan) -> list[str]:
    return [column.name for column in made.columns]


def _kept(entry: Source, *renames: tuple[str, str], table: IcebergTable | None = None) -> Found:
    """Return what is known of a table with ``email`` and ``contact``, whose columns were renamed one after another."""
    history = renamed(*((f"2{number}", old, new) for number, (old, new) in enumerate(renames)))
    followed = schema_policies.followed(history, entry.policies_for("shop.t"))
    shapes = [shape(id="long", email="string"), shape(id="long", contact="string")]
    return found(*shapes, table=table, history=followed, apart=schema_policies.names_apart([history], followed))


def _sharded(entry: dict[str, Any], *renames: tuple[str, str]) -> tuple[Source, Found]:
    """Return a source file that folds two shards, and what is known of them: one has had its columns renamed."""
    folding = {"target": "users", "add": {"shard": "$1"}, "key": ["shard", "id"]}
    fields = {"source": SOURCE, "format": "debezium_json", "landing": "landing/*"}
    read = Source.model_validate({**fields, "tables": {USERS: {**folding, **entry}}})
    history = renamed(*((f"2{number}", old, new) for number, (old, new) in enumerate(renames)))
    shards, shapes = [], {}
    both = [(history, [new for _, new in renames] or ["email"]), (SchemaHistory(), ["email"])]
    for number, (known, names) in enumerate(both, start=1):
        route = routes.route_of(read, TableId(f"shop_{number}", None, "users"))
        shards.append(Shard(object=f"shop_{number}.users", added=route.added, since=1, history=known))
        columns = [shape(id="long", **{name: "string"}) for name in names]
        shapes[shards[-1].object] = {each.id: each for each in columns}
    every, today = Shards(shards, read.table_for(route.folded or "").rename, shapes, None).shapes()
    folded = Found(
        object=route.folded or "",
        database=None,
        schema=None,
        name="users",
        events=1,
        truncates=0,
        shapes=every,
        keys=[("id",)],
        partial=False,
        halves=False,
        names=today,
        shards=tuple(shards),
        apart=schema_policies.names_apart([history], SchemaHistory()),
        called=read.table_for(route.folded or "").rename,
    )
    return read, folded


@pytest.mark.parametrize("policy", [KEPT, {"schema": "ignore"}])
@pytest.mark.parametrize("name", ["email", "MAIL", "contact"])
def test_a_rename_of_a_kept_column_uncovers_nothing(policy: dict[str, Any], name: str) -> None:
    """The kept column and those with its later names are masked alike, and left out together."""
    renames = (("email", "mail"), ("mail", "contact"))
    masking, excluding = source({"mask": {name: "redact"}, **policy}), source({"exclude": [name], **policy})
    made = plan(masking, _kept(masking, *renames), None)
    assert made.masks.kinds == {"email": "redact", "contact": "redact"}
    assert json.loads(made.column_rules or "")["masks"] == made.masks.kinds
    assert _names(plan(excluding, _kept(excluding, *renames), None)) == ["id"]


@pytest.mark.parametrize("name", ["email", "contact"])
def test_a_rename_in_one_shard_uncovers_nothing(name: str) -> None:
    """Nor in the shards that still have the column under the name from before."""
    made = plan(*_sharded({"mask": {name: "redact"}}, ("email", "contact")), None)
    assert _names(made) == ["shard", "id", "contact", "email", "_cdc_table"]
    assert made.masks.kinds == {"email": "redact", "contact": "redact"}
    excluded = plan(*_sharded({"exclude": [name]}, ("email", "contact")), None)
    assert _names(excluded) == ["shard", "id", "_cdc_table"]


def test_columns_of_shards_under_one_published_name_are_one_column() -> None:
    """The name that the source file gives is the column's in all of them."""
    for name in ("email", "contact", "mail"):
        entry = {"rename": {"email": "mail"}, "mask": {name: "redact"}}
        made = plan(*_sharded(entry, ("email", "contact")), None)
        assert _names(made) == ["shard", "id", "mail", "_cdc_table"]
        assert made.masks.kinds == {"mail": "redact"}


@pytest.mark.parametrize(("name", "more"), [("email", ["email", "contact"]), ("contact", ["contact"])])
def test_a_selected_column_stays_under_its_later_names(name: str, more: list[str]) -> None:
    """An earlier name may be that of another column, so it is published if it is listed."""
    selecting = source({"select": ["id", name], **KEPT})
    assert {*_names(plan(selecting, _kept(selecting, ("email", "contact")), None))} == {"id", *more}
    made = plan(*_sharded({"select": ["id", name]}, ("email", "contact")), None)
    assert {"email", "contact"} & {*_names(made)} == {*more}


def test_rows_that_show_a_masked_column_under_a_later_name_are_built_again(lake: Lake) -> None:
    """A table may have been published with them."""
    table = published(lake, {"id": "long", "email": "string", "contact": "string"}, (1, "****", None), (2, None, "x"))
    with table.transaction() as transaction:
        transaction.set_properties({RULES_PROPERTY: json.dumps({"masks": {"email": "redact"}})})
    entry, table = source({"mask": {"email": "redact"}, **KEPT}), lake.load(table.name())
    with pytest.raises(RebuildNeededError, match="column 'contact' was not masked, and is to be redact now"):
        plan(entry, _kept(entry, ("email", "contact"), table=table), table)


def test_names_that_are_used_again_are_in_doubt_where_a_rename_is_not_followed() -> None:
    """All columns that ever had the name are masked. Where the table follows, each column is known by its own names."""
    swap = [("email", "contact"), ("contact", "email")]
    for name in ("email", "contact"):
        made = plan(*_sharded({"mask": {name: "redact"}}, *swap), None)
        assert made.masks.kinds == {"email": "redact", "contact": "redact"}
    history, row = renamed(("20", "email", "old_email")), shape(id="long", old_email="string", email="string")
    for name, masked in (("email", {"email", "old_email"}), ("old_email", {"old_email"})):
        made = plan(source({"mask": {name: "redact"}}), found(row, history=history, apart=()), None)
        assert made.masks.kinds.keys() == masked


EXPRESSIONS: list[tuple[dict[str, Any], str]] = [
    ({"where": "email <> 'x'"}, "where: at character 1: 'email' is called 'contact' in other rows, by a rename"),
    ({"where": "contact <> 'x'"}, r"'contact' is called 'email' in other rows.*as in coalesce\(contact, email\)"),
    ({"derive": {"loud": "upper(email)"}}, "derive.loud: at character 7: 'email' is called 'contact' in other rows"),
]


@pytest.mark.parametrize(("entry", "reason"), EXPRESSIONS)
def test_an_expression_that_sees_a_part_of_a_column_stops_the_table(entry: dict[str, Any], reason: str) -> None:
    """It would be null in all other rows, which would silently leave the table."""
    with pytest.raises(IncompatibleSchemaError, match=reason):
        plan(*_sharded(entry, ("email", "contact")), None)
    kept = source({**entry, **KEPT})
    with pytest.raises(IncompatibleSchemaError, match=reason):
        plan(kept, _kept(kept, ("email", "contact")), None)


@pytest.mark.parametrize(
    "entry",
    [
        {"where": "coalesce(contact, email) <> 'x'"},
        {"where": "email <> 'x'", "rename": {"email": "mail"}},
        {"where": "id > 1", "derive": {"both": "coalesce(email, contact)"}},
    ],
)
def test_an_expression_may_name_all_parts_of_a_column(entry: dict[str, Any]) -> None:
    """Or its one published name, or other columns."""
    made = plan(*_sharded(entry, ("email", "contact")), None)
    assert made.where is not None or made.derived


def _not_in(*columns: str) -> dict[str, Any]:
    kind = "expect_column_values_to_not_be_in_set"
    return {"checks": [{"type": kind, "column": name, "value_set": ["x"], "on_fail": "quarantine"} for name in columns]}


def test_a_check_that_judges_a_part_of_a_column_stops_the_table() -> None:
    """Rows of the other shards would pass it, as they have null there."""
    for name, other in (("email", "contact"), ("contact", "email")):
        with pytest.raises(IncompatibleSchemaError, match=f"'{name}' is called '{other}' in other rows, by a rename"):
            plan(*_sharded(_not_in(name), ("email", "contact")), None)
    assert len(plan(*_sharded(_not_in("email", "contact"), ("email", "contact")), None).row_checks) == 2
    assert plan(*_sharded({**_not_in("mail"), "rename": {"email": "mail"}}, ("email", "contact")), None).row_checks
    assert plan(*_sharded(_not_in("email")), None).row_checks
