"""Which columns a plan publishes and masks, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table import Table as IcebergTable

from support.options import SECRET_VARIABLE, the_secret
from support.plans import found, published, renamed, shape, source
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.errors import ConfigurationError, IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Encoding
from tidemark.lake.lake import Lake
from tidemark.lake.properties import NAMES_PROPERTY, RULES_PROPERTY
from tidemark.tables.plan import Plan
from tidemark.tables.planner import plan

ROW = shape(id="long", name="string", email="string", born=("date", Encoding.EPOCH_DAYS))
SECRET = f"${{{SECRET_VARIABLE}}}"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    the_secret(monkeypatch)


def _columns(made: Plan) -> dict[str, str]:
    return dict(made.columns)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"exclude": ["email"]}, ["id", "name", "born"]),
        ({"exclude": ["E*", "b?rn"]}, ["id", "name"]),
        ({"select": ["id", "n*"]}, ["id", "name"]),
        ({"select": ["id", "n*", "email"], "exclude": ["name"]}, ["id", "email"]),
    ],
)
def test_columns_are_selected_and_left_out_by_name_and_pattern(entry: dict[str, Any], names: list[str]) -> None:
    """The order stays the source's, the case of letters does not matter, and `exclude` counts before `select`."""
    assert list(_columns(plan(source(entry), found(ROW), None))) == names


def test_a_masked_column_is_text() -> None:
    """Whatever the messages say of it: a mask is a function of the value as text."""
    made = plan(source({"mask": {"born": "last4", "e*": "hash"}}), found(ROW), None)
    assert _columns(made) == {"id": "long", "name": "string", "email": "string", "born": "string"}
    assert made.masks.kinds == {"born": "last4", "email": "hash"}


def test_a_rename_at_the_source_uncovers_nothing() -> None:
    """A column that is left out or masked under an earlier name stays so, and one that is selected stays too."""
    history = renamed(("20", "email", "mail"), ("20", "name", "called"))
    row = shape(id="long", called="string", mail="string")
    entry = {"exclude": ["email"], "mask": {"name": "redact"}, "select": ["id", "name", "email"]}
    made = plan(source(entry), found(row, history=history), None)
    assert _columns(made) == {"id": "long", "called": "string"}
    assert made.masks.kinds == {"called": "redact"}


def test_a_column_that_ddl_alone_adds_is_left_out_too() -> None:
    """It would else appear before its first row."""
    added = SchemaHistory(additions=(Addition("20", 2, "email2", "string", default=None, retyped=False),))
    made = plan(source({"exclude": ["email*"]}), found(ROW, history=added), None)
    assert list(_columns(made)) == ["id", "name", "born"]


def test_a_stored_column_that_is_left_out_goes_when_the_cut_is_published(lake: Lake) -> None:
    """Even where the policy is strict: this is no change at the source."""
    table = published(lake, {"id": "long", "name": "string"}, (1, "a"))
    for policy in ("evolve", "strict"):
        made = plan(
            source({"exclude": ["name"]}, schema=policy), found(shape(id="long", name="string"), table=table), table
        )
        assert made.today == {"name": None}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"exclude": ["id"]}, "'id' is part of the key, so it cannot be left out"),
        ({"mask": {"id": "hash"}}, "'id' is part of the key; only hmac keeps rows apart"),
        ({"key": [], "exclude": ["name"]}, "it has no key"),
        ({"key": [], "mask": {"name": "redact"}}, "Publish 'name' as they are or masked with hmac"),
    ],
)
def test_rules_under_which_rows_cannot_be_told_apart_stop_the_table(entry: dict[str, Any], message: str) -> None:
    """Keys that the messages name are known only now; a bag has nothing but its columns."""
    with pytest.raises(IncompatibleSchemaError, match=message):
        plan(source(entry), found(ROW, keys=[] if "key" in entry else [("id",)]), None)


def _built_with(lake: Lake, made: Plan) -> IcebergTable:
    table = published(lake, _columns(made), tuple(1 if kind == "long" else "x" for _, kind in made.columns))
    with table.transaction() as transaction:
        transaction.set_properties({RULES_PROPERTY: made.column_rules or "{}"})
    return lake.load(table.name())


TEXTS = shape(id="long", name="string", email="string")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"mask": {"name": "hash"}}, {"mask": {"name": "hmac"}}, "column 'name' was hash, and is to be hmac now"),
        ({"mask": {"name": "hash"}}, {}, "column 'name' was hash, and is to be not masked now"),
        ({}, {"mask": {"name": "last4"}}, "column 'name' was not masked, and is to be last4 now"),
        ({"exclude": ["email"]}, {}, "column 'email' was left out so far, and is to be published now"),
        ({"mask": {"name": "hash"}}, {"mask": {"n*": "hash"}}, None),
        ({"exclude": ["email"]}, {"select": ["id", "name"]}, None),
        ({}, {"exclude": ["email"]}, None),
    ],
)
def test_rows_that_were_built_by_other_rules_are_built_again(
    before: dict[str, Any], after: dict[str, Any], reason: str | None, lake: Lake
) -> None:
    """What stored rows do not hold comes from the change log; another way to say the same changes nothing."""
    table = _built_with(lake, plan(source(before, mask_secret=SECRET), found(TEXTS), None))
    changed, now = source(after, mask_secret=SECRET), found(TEXTS, table=table)
    if reason is None:
        plan(changed, now, table)
        return
    with pytest.raises(RebuildNeededError, match=reason):
        plan(changed, now, table)
    anew = plan(changed, now, table, anew=True)
    table = _built_with(lake, anew)
    plan(changed, found(TEXTS, table=table), table)


def test_a_mask_on_a_column_of_any_type_builds_the_table_again(lake: Lake) -> None:
    """No text holds a date as it was: without a mask, such a change of type would stop the table."""
    table = published(lake, {"id": "long", "born": "date"}, (1, None))
    row = shape(id="long", born=("date", Encoding.EPOCH_DAYS))
    with pytest.raises(RebuildNeededError, match="column 'born' was not masked, and is to be last4 now"):
        plan(source({"mask": {"born": "last4"}}), found(row, table=table), table)


def test_a_strict_source_lets_its_owner_rename(lake: Lake) -> None:
    """A name that the source file gives is no change at the source."""
    for before, after in (({}, {"name": "called"}), ({"name": "called"}, {})):
        table = _published_as(lake, {"id": "long", before.get("name", "name"): "string"}, before)
        now = found(shape(id="long", name="string"), table=table, called=after)
        assert plan(source({"rename": after}, schema="strict"), now, table).today


def test_another_secret_builds_the_table_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keyed hashes under two secrets would not be equal for equal values. The secret itself is nowhere recorded."""
    entry = source({"mask": {"name": "hmac"}}, mask_secret=SECRET)
    made = plan(entry, found(TEXTS), None)
    table = _built_with(lake, made)
    recorded = json.loads(made.column_rules or "")
    assert recorded["masks"] == {"name": "hmac"}
    assert recorded["variable"] == SECRET_VARIABLE
    plan(entry, found(TEXTS, table=table), table)
    monkeypatch.setenv(SECRET_VARIABLE, "another secret of this length")
    with pytest.raises(RebuildNeededError, match="the secret of its masks changed"):
        plan(entry, found(TEXTS, table=table), table)


@pytest.mark.parametrize(("value", "state"), [(None, "is not set"), ("short", "has 5")])
def test_a_secret_that_is_missing_or_short_stops_the_run(
    value: str | None, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is published under a guess; the message names the variable, and not its value."""
    monkeypatch.delenv(SECRET_VARIABLE)
    if value:
        monkeypatch.setenv(SECRET_VARIABLE, value)
    with pytest.raises(ConfigurationError, match=f"{SECRET_VARIABLE}, which {state}") as refused:
        plan(source({"mask": {"name": "hmac"}}, mask_secret=SECRET), found(TEXTS), None)
    assert "short" not in str(refused.value)


def test_renamed_masked_columns_are_known_under_both_names(lake: Lake) -> None:
    """Between compact and publish the table still has the old name, and a query must know its mask."""
    table = _built_with(lake, plan(source({"mask": {"name": "hash"}}), found(TEXTS), None))
    now = found(shape(id="long", called="string"), table=table, history=renamed(("20", "name", "called")))
    made = plan(source({"mask": {"name": "hash"}}), now, table)
    assert json.loads(made.column_rules or "")["masks"] == {"name": "hash", "called": "hash"}


def _published_as(lake: Lake, columns: dict[str, str], called: dict[str, str]) -> IcebergTable:
    table = published(lake, columns, tuple(1 if kind == "long" else "x" for kind in columns.values()))
    with table.transaction() as transaction:
        transaction.set_properties({NAMES_PROPERTY: json.dumps(called)})
    return lake.load(table.name())


def test_columns_are_published_under_other_names() -> None:
    """Key, types, masks and columns left out may be given by either name."""
    called = {"id": "number", "email": "mail"}
    entry = {"rename": called, "key": ["id"], "columns": {"number": "decimal(20, 0)"}, "mask": {"email": "hash"}}
    row = shape(id="long", name="string", email="string")
    made = plan(source(entry | {"exclude": ["name"]}), found(row, called=called), None)
    assert _columns(made) == {"number": "decimal(20, 0)", "mail": "string"}
    assert made.key == ("number",)
    assert made.masks.kinds == {"mail": "hash"}
    assert json.loads(made.names_record or "") == called


@pytest.mark.parametrize(
    ("before", "after", "today"),
    [
        ({}, {"name": "called"}, {"name": "called"}),
        ({"name": "called"}, {}, {"called": "name"}),
        ({"name": "called"}, {"name": "known"}, {"called": "known"}),
        ({"name": "called"}, {"name": "called"}, {}),
    ],
)
def test_a_changed_name_is_a_rename_when_the_cut_is_published(
    before: dict[str, str], after: dict[str, str], today: dict[str, str], lake: Lake
) -> None:
    """By field id: no row is written again."""
    table = _published_as(lake, {"id": "long", before.get("name", "name"): "string"}, before)
    row = shape(id="long", name="string")
    made = plan(source({"rename": after}), found(row, table=table, called=after), table)
    assert made.today == today
    assert _columns(made) == {"id": "long", after.get("name", "name"): "string"}
    assert json.loads(made.names_record or "") == after


def test_a_rename_at_the_source_keeps_the_published_name(lake: Lake) -> None:
    """The source file may go on with the name from before it, and may change it to the new one."""
    table = _published_as(lake, {"id": "long", "called": "string"}, {"name": "called"})
    history = renamed(("20", "name", "full"))
    for after in ({"name": "called"}, {"full": "called"}):
        now = found(shape(id="long", full="string"), table=table, history=history, called=after)
        made = plan(source({"rename": after}), now, table)
        assert made.today == {}
        assert _columns(made) == {"id": "long", "called": "string"}
    now = found(shape(id="long", full="string"), table=table, history=history)
    assert plan(source(), now, table).today == {"called": "full"}


def test_a_column_that_is_dropped_at_the_source_goes_under_its_published_name(lake: Lake) -> None:
    """The drop names the source's column."""
    table = _published_as(lake, {"id": "long", "called": "string"}, {"name": "called"})
    table = lake.load(table.name())
    now = found(shape(id="long"), table=table, history=renamed(("90", "name", None)), called={"name": "called"})
    assert plan(source({"rename": {"name": "called"}}), now, table).today == {"called": None}


def test_a_name_that_the_source_has_is_not_given_to_another_column() -> None:
    """Two columns would become one."""
    with pytest.raises(IncompatibleSchemaError, match="`rename` calls 'name' 'email', and the source has a column"):
        plan(source({"rename": {"name": "email"}}), found(TEXTS, called={"name": "email"}), None)
