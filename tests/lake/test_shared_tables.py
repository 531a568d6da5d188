"""What becomes of a published table that another engine touches: each row of the documents' table is a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.doc_tables import table as documented
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes, run_all
from tidemark.errors import ConfigurationError, PublishConflictError
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more]

SOURCE = "shared"
BEFORE = [(1, "a"), (2, "b"), (3, "c")]
AFTER = [(1, "A"), (3, "c"), (4, "d")]
OUTCOMES = {row[0]: row[1] for row in documented("../operations/shared-tables", "another writer")}
LOGS = "rewrites and expires raw, change log, state and ledger"

_REWRITE = "CALL {c}.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))"
_EXPIRE = "CALL {c}.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
SQL: dict[str, tuple[str, ...]] = {
    "rewrites data files, or sorts them": (
        _REWRITE.replace("options", "strategy => 'sort', sort_order => 'v desc', options"),
    ),
    "expires snapshots, and drops tags of cuts": ("ALTER TABLE {c}.{t} DROP TAG cut_1", _REWRITE, _EXPIRE),
    "adds partition fields and a sort order": (
        "ALTER TABLE {c}.{t} ADD PARTITION FIELD bucket(4, id)",
        "ALTER TABLE {c}.{t} WRITE ORDERED BY v",
    ),
    "sets properties, also another file format": (
        "ALTER TABLE {c}.{t} SET TBLPROPERTIES ('write.format.default' = 'orc', 'owner.team' = 'x')",
    ),
    "adds a column": ("ALTER TABLE {c}.{t} ADD COLUMN note string",),
    "drops the table": ("DROP TABLE {c}.{t}",),
    "renames the table": ("ALTER TABLE {c}.{t} RENAME TO " + SOURCE + ".mine",),
    "drops the history": ("DROP TABLE {c}.{t}__history",),
    "inserts rows": ("INSERT INTO {c}.{t} (id, v) VALUES (99, 'mine')",),
    "updates rows": ("UPDATE {c}.{t} SET v = 'mine' WHERE id = 3",),
    "deletes rows": ("DELETE FROM {c}.{t} WHERE id = 3",),
    "writes rows of the history": ("DELETE FROM {c}.{t}__history WHERE id = 3",),
    "drops the feed": ("DROP TABLE {c}.{t}__feed",),
    "writes rows of the feed": ("DELETE FROM {c}.{t}__feed WHERE id = 3",),
    "upgrades the table to format version 3": ("ALTER TABLE {c}.{t} SET TBLPROPERTIES ('format-version' = '3')",),
}
"""What another engine does by SQL; ``{c}`` is the catalog, ``{t}`` the table."""


def _drop_state(lake: Lake, table: Identifier) -> None:
    lake.catalog.drop_table(names.state(table))


def _move_main(lake: Lake, table: Identifier) -> None:
    loaded = lake.load(table)
    loaded.manage_snapshots().set_current_snapshot(snapshot_id=loaded.metadata.snapshots[0].snapshot_id).commit()


def _rename_column(lake: Lake, table: Identifier) -> None:
    with lake.load(table).update_schema() as schema:
        schema.rename_column("v", "w")


def _drop_column(lake: Lake, table: Identifier) -> None:
    with lake.load(table).update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("v")


PYICEBERG: dict[str, Callable[[Lake, Identifier], None]] = {
    "drops the state": _drop_state,
    "moves main to another snapshot": _move_main,
    "renames a column": _rename_column,
    "drops a column": _drop_column,
}
"""What another engine does by PyIceberg."""

_PROVED = {
    "rewrites data files, or sorts them",
    "renames the table",
    "drops the history",
    "updates rows",
    "deletes rows",
    "writes rows of the history",
    "drops the feed",
    "upgrades the table to format version 3",
    "drops a column",
}
"""Deeds of ``make prove``, each to a table of its own. Of deeds that show by the same sign ``make test`` has one."""
_TOGETHER = set() if PROVING else {what for what in [*SQL][:5] if what not in _PROVED}
"""Deeds that do no harm, the first of ``SQL``: ``make test`` does them to one table, one after the other."""
TABLES = {
    what: f"{'h' if 'history' in what else 'f' if 'feed' in what else 't'}{0 if what in _TOGETHER else number}"
    for number, what in enumerate([*SQL, *PYICEBERG])
    if PROVING or what not in _PROVED
}
"""Each is done to a table of its own; a table whose name begins with ``h`` has a history, with ``f`` a feed."""
NAMES = sorted({*TABLES.values()})

OWNED: dict[str, tuple[list[str], list[str], str | None]] = how_many(
    usually={"t0": (["id_bucket_4"], ["2 ASC NULLS FIRST"], "x")},
    proving={
        TABLES["adds partition fields and a sort order"]: (["id_bucket_4"], ["2 ASC NULLS FIRST"], None),
        TABLES["sets properties, also another file format"]: ([], [], "x"),
    },
)
"""Partition fields, sort order and a property of the tables where an owner has set them."""

REBUILT = how_many(usually={TABLES["inserts rows"]}, proving={*TABLES.values()})
"""Of the tables that stop, those that are built again."""


class World(NamedTuple):
    """What was published after others had touched the tables, and after the tables of ``rebuilt`` were built again."""

    rows: dict[str, list[tuple[Any, ...]]]
    states: dict[str, tuple[str, str]]
    landed: dict[str, int | str]
    layouts: dict[str, Any]
    rebuilt: dict[str, list[tuple[Any, ...]]]
    """Rows of the tables that had stopped, and of those with a layout of an owner."""
    rebuilt_layouts: dict[str, Any]


class Accidents(NamedTuple):
    """What land and publish refused, and the rows after that and after the next run."""

    of_land: str
    of_publish: str
    shown: list[tuple[Any, ...]]
    rows: list[tuple[Any, ...]]


def days(name: str) -> tuple[list[bytes], list[bytes]]:
    """Three rows; then one is changed, one deleted, and one is new."""
    log = Log(name)
    first = [log.put(at, id=at, v=value) for at, value in BEFORE]
    return first, [log.put(11, {"id": 1, "v": "a"}, id=1, v="A"), log.delete(12, id=2, v="b"), log.put(13, id=4, v="d")]


def made(folder: Path, source: str, **fields: Any) -> Source:
    """A source whose tables have a key, and some a history or a feed."""
    more = {"h*": {"history": True}, "f*": {"feed": True}, "t*": {}, "orders": {}}
    tables = {f"shop.{name}": {"key": ["id"], **options} for name, options in more.items()}
    defaults = {"source": source, "format": "debezium_json", "landing": f"{folder}/*", "tables": tables}
    return Source.model_validate({**defaults, **fields})


def deliver(folder: Path, day: int, *tables: str) -> None:
    """Put a day of some tables into the folder where dumps land."""
    folder.mkdir(exist_ok=True)
    (folder / f"{day}.jsonl").write_bytes(b"".join(line + b"\n" for name in tables for line in days(name)[day - 1]))


def rows(lake: Lake, source: str, name: str) -> list[tuple[Any, ...]]:
    """The published rows of a table; Tidemark's own columns are left out."""
    found = lake.load(Identifier(source, name)).scan().to_arrow()
    columns = [column for column in found.column_names if not column.startswith("_cdc_")]
    return sorted((tuple(row[column] for column in columns) for row in found.to_pylist()), key=repr)


def layout(lake: Lake, name: str) -> tuple[list[str], list[str], str | None]:
    """The partition fields and the sort order of a table, and a property that only an owner sets."""
    loaded = lake.load(Identifier(SOURCE, name))
    fields = [field.name for field in loaded.spec().fields]
    return fields, [str(field) for field in loaded.sort_order().fields], loaded.properties.get("owner.team")


@pytest.fixture(scope="module")
def world(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two days of a source; others touch the tables after the first, and rebuilds follow after the second."""
    folder = tmp_path_factory.mktemp("landing")
    source = made(folder, SOURCE)
    deliver(folder, 1, *NAMES)
    run_all(source)
    for what, name in TABLES.items():
        for statement in SQL.get(what, ()):
            spark.sql(statement.format(c=lake.name, t=f"{SOURCE}.{name}"))
        if what in PYICEBERG:
            PYICEBERG[what](lake, Identifier(SOURCE, name))
    state = next(f"state.{name}" for name in lake.tables("state") if name.startswith(f"{SOURCE}__"))
    ledger = [f"ledger.{name}" for name in how_many(usually=("files",), proving=("files", "batches", "tables"))]
    for name in (f"raw.{SOURCE}", f"changelog.{SOURCE}", state, *ledger):
        spark.sql(_REWRITE.format(c=lake.name, t=name))
        spark.sql(_EXPIRE.format(c=lake.name, t=name))
    deliver(folder, 2, *NAMES)
    landed = run_all(source)["land"].summary
    assert_ledger_closes(lake, SOURCE)
    last = [row for row in Ledger(lake, SOURCE).tables() if row.cut == 2]
    states = {row.object.removeprefix("shop."): (row.state, row.reason or "") for row in last}
    shown = {name: rows(lake, SOURCE, name) for name in NAMES}
    layouts = {name: layout(lake, name) for name in OWNED}
    anew = [*OWNED, *(name for name, (state, _) in states.items() if state == "stopped" and name in REBUILT)]
    for name in anew:
        run_stage("rebuild", source, table=f"shop.{name}")
    for stage in ("compact", "check", "publish"):
        run_stage(stage, source)
    rebuilt = {name: rows(lake, SOURCE, name) for name in anew}
    return World(shown, states, landed, layouts, rebuilt, {name: layout(lake, name) for name in OWNED})


@pytest.fixture(scope="module")
def accidents(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Accidents:
    """A source whose logs are moved back after a day was decoded, and whose table is rewritten before publish."""
    folder = tmp_path_factory.mktemp("accidents")
    source = made(folder, "accidents")
    deliver(folder, 1, "orders")
    run_all(source)
    changelog, raw = lake.load(names.change_log("accidents")), lake.load(names.raw("accidents"))
    decoded, landed = changelog.metadata.current_snapshot_id, raw.metadata.current_snapshot_id
    deliver(folder, 2, "orders")
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    raw.refresh().manage_snapshots().set_current_snapshot(snapshot_id=landed).commit()
    with pytest.raises(ConfigurationError) as of_land:
        run_stage("land", source)
    changelog.refresh().manage_snapshots().set_current_snapshot(snapshot_id=decoded).commit()
    for stage in ("land", "normalize", "compact", "check"):
        run_stage(stage, source)
    spark.sql(_REWRITE.format(c=lake.name, t="accidents.orders"))
    with pytest.raises(PublishConflictError) as of_publish:
        run_stage("publish", source)
    shown = rows(lake, "accidents", "orders")
    run_all(source)
    return Accidents(str(of_land.value), str(of_publish.value), shown, rows(lake, "accidents", "orders"))


@pytest.mark.parametrize("what", [what for what in TABLES if OUTCOMES[what] in {"fine", "built anew"}])
def test_what_does_no_harm_is_followed_by_the_next_cut(world: World, what: str) -> None:
    """The next cut publishes the second day on top of it; a column of an owner is null in new rows."""
    table = TABLES[what]
    assert world.states[table] == ("published", "")
    wanted = [(*row, None) for row in AFTER] if table == TABLES["adds a column"] else AFTER
    assert world.rows[table] == wanted


@pytest.mark.parametrize("what", [what for what in TABLES if OUTCOMES[what] == "stopped"])
def test_what_no_event_tells_of_stops_the_table(world: World, what: str) -> None:
    """Nothing is published on top of it, the reason names the table; and a rebuild shows what the events say."""
    table = TABLES[what]
    state, reason = world.states[table]
    assert state == "stopped"
    assert f"{SOURCE}.{table}" in reason
    assert world.rows[table] != AFTER
    if what != "upgrades the table to format version 3":
        assert f"tidemark rebuild {SOURCE} shop.{table}" in reason
        assert world.rebuilt[table] == AFTER if table in REBUILT else table not in world.rebuilt


def test_nothing_lands_again_when_others_keep_the_logs(world: World) -> None:
    """Raw, change log, state and ledger were rewritten, and their snapshots expired: land takes the new file only."""
    assert OUTCOMES[LOGS] == "fine"
    assert world.landed == {"files": 1, "messages": 3 * len(NAMES), "refused": 0, "batch": 2}


def test_layout_of_an_owner_outlives_cuts_and_rebuilds(world: World) -> None:
    """Partitions, sort order and properties are as the owner set them, after a cut and after a rebuild."""
    assert world.layouts == OWNED
    assert world.rebuilt_layouts == OWNED
    for name in OWNED:
        assert world.rebuilt[name] == AFTER


def test_rewrite_between_check_and_publish_is_told_and_built_again(accidents: Accidents) -> None:
    """Publish says that main moved, readers see the day before whole, and the next run publishes by itself."""
    assert "main of accidents.orders moved" in accidents.of_publish
    assert accidents.shown == BEFORE
    assert accidents.rows == AFTER


def test_logs_that_were_moved_back_lose_nothing(accidents: Accidents) -> None:
    """A change log that stands at an earlier batch is decoded again. A raw table that does is refused by land."""
    assert "raw.accidents stands at batch 1, but batch 2 of it is decoded" in accidents.of_land
    assert accidents.rows == AFTER


def test_every_documented_row_is_tried() -> None:
    """The table in the documents and the tests here name the same deeds."""
    others = {
        LOGS,
        "rewrites data files between check and publish",
        "moves the change log back to an earlier snapshot",
        "moves raw back to an earlier snapshot",
    }
    assert OUTCOMES.keys() == SQL.keys() | PYICEBERG.keys() | others
