"""Which renames are a schema-change tool's swap, and which are renames, without Spark."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from tidemark.ddl.history import by_statements
from tidemark.ddl.lineages import lineages
from tidemark.ddl.migrations import is_copy, is_tools_own
from tidemark.ddl.table_renames import TableRenames
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow
from tidemark.positions import encode_position

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
    rows.append(_stated("4", "ALTER TABLE _t_new CHANGE a b int", name="_t_new"))
    unsure = by_statements(rows, objects, unsure=True)[T]
    assert [(each.old, each.new) for each in unsure.renamings] == [("a", "b")]  # a mask goes on


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


_LONG = "monthly_statements_of_accounts_receivable_by_region_and_quarter"  # 63 characters


def _shortened(length: int, begin: str, end: str) -> str:
    """The name of a tool's table for one of so many characters: what does not fit is cut from the table's part."""
    part = _LONG[:length]
    return f"{begin}{part[: max(0, 64 - len(begin) - len(end))]}{end}"


@pytest.mark.parametrize("length", [1, 35, 36, 44, 45, 53, 54, 59, 60, 63])
@pytest.mark.parametrize("old", [("_", "_del"), ("_", "_20260131000000_del"), ("lhma_2026_01_31_00_00_00_000_", "")])
def test_names_that_a_tool_shortens_are_its_own(length: int, old: tuple[str, str]) -> None:
    """A name has 64 characters in MySQL: gh-ost and LHM cut the part that is the table's, and its swap stays one."""
    table, aside = _LONG[:length], _shortened(length, *old)
    copy = _shortened(length, "lhmn_", "") if old[0] != "_" else _shortened(length, "_", "_gho")
    assert max(len(aside), len(copy)) <= 64
    known = {f"shop.{table}", "shop.t"}
    assert is_tools_own("shop.", aside, known)
    assert is_tools_own("shop.", copy, known)
    assert is_copy(copy)
    assert not is_copy(aside)
    assert not is_tools_own("shop.", aside, {"shop.t", f"other.{table}"})
    rows = [
        _stated("1", f"ALTER TABLE {copy} ADD n int", name=copy),
        _stated("2", f"RENAME TABLE {table} TO {aside}, {copy} TO {table}", name=table),
    ]
    objects = {name: TableId("shop", None, name.removeprefix("shop.")) for name in known}
    assert (lineages(rows, objects).tables, TableRenames(rows, known).by_table()) == ({}, {})
    history = by_statements(rows, known)[f"shop.{table}"]
    assert [(each.position, each.name) for each in history.additions] == [("2", "n")]


def test_a_name_that_fits_is_of_the_table_that_it_names() -> None:
    """Only a name of 64 characters was cut; of a shorter one, the table's part is whole."""
    whole = _LONG[:44]
    assert not is_tools_own("shop.", f"_{whole[:-1]}_20260131000000_del", {f"shop.{whole}"})
    assert is_tools_own("shop.", f"_{whole}_20260131000000_del", {f"shop.{whole}"})
    rows = [_stated("1", f"RENAME TABLE {_LONG[:50]} TO _{_LONG[:49]}_del, _{_LONG[:49]}_gho TO {_LONG[:50]}")]
    assert TableRenames(rows, (f"shop.{_LONG[:50]}",)).by_table()


@pytest.mark.parametrize("name", ["_t_gho", "_t_ghc", "_t_ghk", "_t_del", "_t_new", "__t_old", "__osc_chg_t", "lhmn_t"])
def test_tables_beside_one_that_is_changed_are_the_tools(name: str) -> None:
    """Copies, what went aside, logs of changes and checkpoints."""
    assert is_tools_own("shop.", name, {"shop.t"})
    assert not is_tools_own("shop.", name, {"shop.u"})


def test_a_long_name_has_a_short_prefix_of_osc() -> None:
    """OSC writes ``n!`` in the place of ``__osc_new_`` where the name would not fit."""
    table = _LONG[:58]
    assert all(is_tools_own("shop.", f"{sign}!{table}", {f"shop.{table}"}) for sign in "nco")
    assert not any(is_tools_own("shop.", f"{sign}!t", {"shop.t"}) for sign in "nco")
    swap = f"RENAME TABLE {table} TO `o!{table}`, `n!{table}` TO {table}"
    rows = [_stated("1", f"CREATE TABLE `n!{table}` {_DECLARED}"), _stated("2", swap)]
    assert not TableRenames(rows, (f"shop.{table}",)).by_table()
    assert len(by_statements(rows, (f"shop.{table}",))[f"shop.{table}"].notes) == 1


def _gh_ost(copy: int, own: int, clauses: str, ranks: tuple[int, int] = (1, 1)) -> list[StatementRow]:
    """What gh-ost states in one migration, at offsets of the topics of the copy and of the table."""
    of_copy, of_table = ranks
    return [
        _stated(_at(of_copy, copy), "create table `shop`.`_t_gho` like `shop`.`t`", name="_t_gho"),
        _stated(_at(of_copy, copy + 1), f"alter table `shop`.`_t_gho` {clauses}", name="_t_gho"),
        _stated(_at(of_table, own), _SWAP),
        _stated(_at(of_copy, copy + 3), "drop table if exists `shop`.`_t_del`", name="_t_del"),
    ]


def _at(rank: int, offset: int) -> str:
    return encode_position((rank, 1, 0, offset))


@pytest.mark.parametrize(
    "rows",
    [
        [*_gh_ost(100, 102, "CHANGE a b int"), *_gh_ost(200, 202, "ADD n int")],
        [*_gh_ost(100, 102, "CHANGE a b int", (1, 3)), *_gh_ost(200, 202, "ADD n int", (1, 3))],
        [*_gh_ost(1, 105, "CHANGE a b int"), *_gh_ost(1_000_000, 300, "ADD n int")],
        [*_gh_ost(1, 105, "ADD n int"), *_gh_ost(1_000_000, 300, "CHANGE a b int")],
        _gh_ost(900, 300, "CHANGE a b int"),
        _gh_ost(900, 300, "CHANGE a b int")[:2],
    ],
    ids=["one_order", "reloads", "topics", "topics_the_other_way_round", "never_taken", "not_yet"],
)
def test_a_mask_follows_each_name_that_a_copy_ever_gave(rows: list[StatementRow]) -> None:
    """Where positions cannot be compared, too, and before the copy takes the name."""
    for known in [(T,), (T, "shop._t_gho")]:
        found = by_statements(rows, known, unsure=True)[T]
        assert [(each.old, each.new) for each in found.renamings] == [("a", "b")]
