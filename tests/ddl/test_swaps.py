"""Which renames are a schema-change tool's swap, and which are renames, without Spark."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from tidemark.ddl.history import by_statements
from tidemark.ddl.lineages import lineages
from tidemark.ddl.table_renames import TableRenames
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow

T = "shop.t"
LHM = "lhma_2026_01_31_00_00_00_000_t"


def _stated(position: str, statement: str, **fields: Any) -> StatementRow:
    named = {"database": "shop", "schema": None, "name": "t", "dialect": "mysql"} | fields
    return StatementRow(batch=1, position=position, statement=statement, **named)


def _in_parts(position: str, *pairs: tuple[str, str]) -> list[StatementRow]:
    together = tuple(sorted(new for _, new in pairs))
    return [_stated(position, f"RENAME TABLE {old} TO {new}", together=together) for old, new in pairs]


def _told(*rows: StatementRow, known: tuple[str, ...] = (T,)) -> tuple[bool, bool, bool]:
    """Whether statements leave a table under another name, a doubt whether it has its rows, and a note."""
    objects = {name: TableId("shop", None, name.removeprefix("shop.")) for name in known}
    history = by_statements(rows, known).get(T)
    return (
        bool(lineages(rows, objects).tables),
        bool(TableRenames(rows, known).by_table()),
        bool(history and history.notes),
    )


_SWAPS = {
    "gh_ost": [_stated("1", "rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_del`, `shop`.`_t_gho` to `shop`.`t`")],
    "gh_ost_in_two_steps": [
        _stated("1", "alter /* gh-ost */ table `shop`.`t` rename `_t_20260131000000_del`"),
        _stated("2", "alter /* gh-ost */ table `shop`.`_t_gho` rename `t`"),
    ],
    "pt_osc": [_stated("1", "RENAME TABLE `shop`.`T` TO `shop`.`_T_old`, `shop`.`_T_new` TO `shop`.`T`")],
    "pt_osc_underscored": [_stated("1", "RENAME TABLE t TO __t_old, __t_new TO t")],
    "osc_in_two_steps": [
        _stated("1", "ALTER TABLE t RENAME __osc_old_t"),
        _stated("2", "ALTER TABLE __osc_new_t RENAME t"),
    ],
    "lhm": [_stated("1", f"RENAME TABLE t TO {LHM}, lhmn_t TO t")],
    "lhm_in_two_steps": [_stated("1", f"alter table t rename {LHM}"), _stated("2", "alter table lhmn_t rename t")],
    "in_parts": _in_parts("1", ("t", "_t_old"), ("_t_new", "t")),
    "a_part_alone": _in_parts("1", ("t", "_t_old"), ("_t_new", "t"))[:1],
    "the_other_part_alone": _in_parts("1", ("t", "_t_old"), ("_t_new", "t"))[1:],
    "in_messages": [_stated("1", "RENAME TABLE t TO _t_del"), _stated("1", "RENAME TABLE _t_gho TO t")],
    "another_table_between": [
        _stated("1", "alter table t rename _t_del"),
        _stated("2", "alter table u rename v"),
        _stated("3", "alter table _t_gho rename t"),
    ],
}


@pytest.mark.parametrize("name", _SWAPS)
def test_a_swap_is_one_in_which_a_copy_takes_the_name(name: str) -> None:
    """In one statement, as a message or in parts, or in the next statement about the name; whatever the order."""
    for rows in permutations(_SWAPS[name]):
        assert _told(*rows) == (False, False, False)
        assert _told(*rows, *rows, known=(T, "shop._t_gho", "shop._t_new", "shop._t_old")) == (False, False, False)


@pytest.mark.parametrize(
    ("statements", "followed"),
    [
        (["RENAME TABLE t TO _t_old"], True),
        (["ALTER TABLE t RENAME TO _t_del"], True),
        ([f"RENAME TABLE t TO {LHM}", "CREATE TABLE t (id int)"], True),
        (["RENAME TABLE t TO _t_old, u TO t"], False),  # no event of u is known
        (["RENAME TABLE _t_old TO t"], False),
        (["RENAME TABLE t TO _t_new, _t_old TO t"], False),  # a swap is taken back
        (["RENAME TABLE t TO _t_old", "DROP TABLE t", "RENAME TABLE _t_new TO t"], True),
        (["RENAME TABLE t TO _t_old", "RENAME TABLE u TO t", "RENAME TABLE _t_new TO t"], True),
        (["RENAME TABLE _t_new TO t"], False),
    ],
)
def test_any_other_rename_is_followed_or_in_doubt(statements: list[str], followed: bool) -> None:  # noqa: FBT001
    """A table that is put aside takes its rows with it, whatever name it gets."""
    rows = [_stated(str(place), text) for place, text in enumerate(statements, start=1)]
    assert _told(*rows)[:2] == (followed, True)


def test_a_copy_that_takes_the_place_of_a_dropped_table_brings_its_rows() -> None:
    """pt-osc drops the table first where foreign keys ask for it; what it changed in the copy is the copy's alone."""
    rows = [
        _stated("1", "ALTER TABLE _t_new ADD COLUMN n int DEFAULT 5, DROP COLUMN a", name="_t_new"),
        _stated("2", "DROP TABLE IF EXISTS t"),
        _stated("3", "RENAME TABLE _t_new TO t"),
    ]
    objects = {name: TableId("shop", None, name.removeprefix("shop.")) for name in (T, "shop._t_new")}
    assert lineages(rows, objects).tables[T].segments == (("shop._t_new", "", "3"), (T, "3", None))
    history = by_statements(rows, objects)[T]
    assert (history.additions, history.renamings) == ((), ())
    assert [each.position for each in history.emptyings] == ["2"]
    unsure = by_statements(rows, objects, unsure=True)[T]
    assert [each.old for each in unsure.renamings] == ["a"]  # a mask goes on


@pytest.mark.parametrize(
    ("statement", "known", "copy"),
    [
        ("RENAME TABLE t TO _t_old, _t_new TO t", (T,), "shop._t_new"),
        ("RENAME TABLE t TO _t_old, _t_new TO t", (T, "shop._t_new"), None),
        ("RENAME TABLE t TO _t_del, _t_gho TO t", (T,), None),  # nobody names a table so
        ("RENAME TABLE t TO t_old, t_new TO t", (T,), None),  # no swap: in doubt as it is
    ],
)
def test_a_copy_without_a_row_may_have_been_empty(statement: str, known: tuple[str, ...], copy: str | None) -> None:
    """A person may have emptied the table so; only names that people give are meant."""
    found = TableRenames([_stated("1", statement)], known).unfilled_swaps()
    assert {name: [each.copy for each in of_table] for name, of_table in found.items()} == ({T: [copy]} if copy else {})


_COPY = "ALTER TABLE _t_gho "
_SWAP = "rename table t to _t_del, _t_gho to t"


@pytest.mark.parametrize(
    ("clauses", "added", "renamed", "keys", "notes"),
    [
        (["ADD n int DEFAULT 5, DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"], ["n"], [], [("id", "n")], 0),
        (["ADD n int DEFAULT 5", "MODIFY id bigint AUTO_INCREMENT PRIMARY KEY"], ["n", "id"], [], [("id",)], 0),
        (["CHANGE a b int, DROP PRIMARY KEY, ADD PRIMARY KEY (b)", "DROP c"], ["b"], ["a", "c"], [("b",)], 0),
        (["ADD n int, EXCHANGE PARTITION p WITH TABLE x, DROP a"], ["n"], ["a"], [], 1),
        (["WHATEVER", "ADD n int"], ["n"], [], [], 1),
    ],
)
def test_a_swap_brings_all_that_the_copy_became(
    clauses: list[str], added: list[str], renamed: list[str], keys: list[tuple[str, ...]], notes: int
) -> None:
    """Columns, keys and clauses that are not understood, in whatever order; each at the place of the swap."""
    rows = [_stated(str(at), f"{_COPY}{text}", name="_t_gho") for at, text in enumerate(clauses, start=1)]
    rows.append(msgspec.structs.replace(_stated("7", _SWAP), batch=3))
    history = by_statements(rows, (T,))[T]
    assert [each.name for each in history.additions] == added
    assert [each.old for each in history.renamings] == renamed
    assert [each.columns for each in history.keys] == keys
    assert {each.position for each in (*history.additions, *history.renamings, *history.keys)} <= {"7"}
    assert ([note.batch for note in history.notes], notes) == ([3] * notes, len(history.notes))
    assert all(note.text.startswith("DDL not followed, ") and _COPY in note.text for note in history.notes)


def test_a_copy_that_is_dropped_leaves_nothing_and_one_that_is_emptied_keeps_its_columns() -> None:
    """TRUNCATE takes rows. A copy of the same name that is made after a DROP has the columns of the table."""
    made, emptied = _stated("1", f"{_COPY}ADD n int, WHATEVER"), _stated("2", "TRUNCATE TABLE _t_gho")
    dropped, swapped = _stated("2", "DROP TABLE _t_gho"), _stated("3", _SWAP)
    assert by_statements([made, dropped, swapped], (T,)).get(T) is None
    history = by_statements([made, emptied, swapped], (T,))[T]
    assert ([each.name for each in history.additions], len(history.notes), history.emptyings) == (["n"], 1, ())


_DECLARED = "(id bigint NOT NULL, n int NOT NULL DEFAULT 5, PRIMARY KEY (id))"
_OF_OSC = "RENAME TABLE t TO __osc_old_t, __osc_new_t TO t"
_OF_PT = "RENAME TABLE t TO _t_old, _t_new TO t"


@pytest.mark.parametrize(
    ("statements", "noted"),
    [
        ([f"CREATE TABLE `__osc_new_t` {_DECLARED}", _OF_OSC], 1),
        ([f"CREATE TABLE `__osc_new_t` {_DECLARED}", "ALTER TABLE __osc_new_t ADD INDEX (n)", _OF_OSC], 1),
        ([f"CREATE TABLE IF NOT EXISTS shop.__osc_new_t {_DECLARED}", _OF_OSC], 1),
        ([f"CREATE TABLE __osc_new_t {_DECLARED}", "DROP TABLE __osc_new_t", _OF_OSC], 0),
        ([f"CREATE TABLE `_t_new` {_DECLARED}", _OF_PT], 1),
        (["CREATE TABLE _t_new AS SELECT id, 5 AS n FROM t", _OF_PT], 1),
        (["CREATE TABLE _t_new LIKE t", _OF_PT], 0),
        (["CREATE TABLE _t_new (LIKE t)", _OF_PT], 0),
        ([f"CREATE TABLE `_t_new` {_DECLARED}", "ALTER TABLE `_t_new` ENGINE=InnoDB", _OF_PT], 0),
        ([f"CREATE TABLE `_t_new` {_DECLARED}", "ALTER TABLE `_t_new` ADD n int", _OF_PT], 0),
        ([f"CREATE TABLE `_t_new` {_DECLARED}; DROP TABLE _t_new; CREATE TABLE _t_new LIKE t", _OF_PT], 0),
        ([f"CREATE OR REPLACE TABLE _t_new {_DECLARED}", _OF_PT], 1),
        ([f"CREATE TABLE lhmn_t {_DECLARED}", f"RENAME TABLE t TO {LHM}, lhmn_t TO t"], 0),
        ([f"CREATE TABLE _u_new {_DECLARED}", _OF_PT], 0),
        ([f"CREATE TABLE _t_new {_DECLARED}", "RENAME TABLE t TO t_old, _t_new TO t"], 0),  # no swap: in doubt as it is
    ],
)
def test_a_copy_that_was_created_with_columns_of_its_own_is_told(statements: list[str], noted: int) -> None:
    """OSC creates its copy as the table is to be. pt-osc and LHM create it as the table is, and alter it then."""
    rows = [_stated(str(place), text) for place, text in enumerate(statements, start=1)]
    history = by_statements(rows, (T,)).get(T)
    assert len(history.notes if history else ()) == noted
    assert history is None or (history.additions, history.renamings) == ((), ()) or "ADD n" in statements[1]


def test_a_copy_that_is_created_again_has_nothing_of_the_one_before() -> None:
    """A capture may have no DROP of the first one; only with IF NOT EXISTS it may be the same copy still."""
    first, second = _stated("1", "ALTER TABLE _t_gho ADD a int"), _stated("3", "ALTER TABLE _t_gho ADD b int")
    for text, added in {
        "create /* gh-ost */ table `shop`.`_t_gho` like `shop`.`t`": ["b"],
        "create table if not exists _t_gho like t": ["a", "b"],
    }.items():
        history = by_statements([first, _stated("2", text), second, _stated("4", _SWAP)], (T,))[T]
        assert ([each.name for each in history.additions], history.notes) == (added, ())


def test_the_note_of_a_copy_says_how_it_was_created() -> None:
    """It names the statement without values, and comes with the batch that has the swap."""
    rows = [_stated("1", f"CREATE TABLE __osc_new_t {_DECLARED}"), _stated("2", _OF_OSC)]
    rows[1] = msgspec.structs.replace(rows[1], batch=4)
    (note,) = by_statements(rows, (T,))[T].notes
    assert note.batch == 4
    assert note.text.startswith("DDL not followed, a tool's copy was created with columns of its own")
    assert "CREATE TABLE __osc_new_t (id bigint NOT NULL, n int NOT NULL DEFAULT" in note.text
    assert "DEFAULT 5" not in note.text
    assert by_statements(rows[:1], (T, "shop.__osc_new_t")) == {}
