"""``tidemark plan``: what would land, what changed in the source file, what that touches, and what it needs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tidemark.cli.app import app
from tidemark.lake.lake import Lake
from tidemark.normalization.source_changes import NEEDS, Need, SourceFileChange, declared_by, since
from tidemark.sources.model import Source

RUNNER = CliRunner()

NAME = "plan_shop"

ORDERS: dict[str, Any] = {"key": ["id"], "columns": {"total": "decimal(10, 2)"}}


class Shop:
    """A source with two tables, whose file is written anew for each case."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "sources" / f"{NAME}.yaml"
        self.file.parent.mkdir()

    def declare(self, tables: dict[str, Any] | None = None, **fields: Any) -> None:
        """Write the source file; JSON is YAML."""
        given = {"shop.orders": ORDERS} if tables is None else tables
        landing = str(self.root / "landing" / "%Y-%m-%d" / "*")
        content = {"source": NAME, "format": "canal_json", "landing": landing, "tables": given, **fields}
        self.file.write_text(json.dumps(content))

    def deliver(self, day: str, *rows: dict[str, Any]) -> Path:
        """Write a dump file of a day."""
        file = self.root / "landing" / day / "a.jsonl"
        file.parent.mkdir(parents=True)
        head = {"database": "shop", "type": "INSERT", "isDdl": False, "pkNames": ["id"], "sql": "", "id": 1}
        messages = ({**head, "es": 1, "ts": 2, "table": row.pop("table"), "data": [row], "old": None} for row in rows)
        file.write_text("".join(json.dumps(message) + "\n" for message in messages))
        return file

    def plan(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run the command; return its exit status and its answer."""
        done = RUNNER.invoke(app, ["plan", NAME, "--json", *arguments])
        assert done.exit_code in {0, 1}, done.output
        return done.exit_code, json.loads(done.stdout)


def tidemark(command: str) -> Result:
    """Run a command that a plan gave."""
    done = RUNNER.invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, (command, done.output)
    return done


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A source file and one day of dumps."""
    made = Shop(tmp_path)
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    made.declare()
    made.deliver(
        "2026-01-01",
        {"table": "orders", "id": "1", "total": "1.10", "day": 20000},
        {"table": "orders", "id": "2", "total": "2.20", "day": 20001},
        {"table": "items", "id": "1", "name": "a"},
    )
    return made


def test_before_the_first_run_all_files_wait_and_no_lake_is_made(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the interval, else all; status 0, the command, and no home."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    shop.deliver("2026-01-02", {"table": "items", "id": "2", "name": "b"})
    status, plan = shop.plan()
    assert (status, len(plan["files"]), plan["changes"]) == (0, 2, [])
    assert (plan["commands"], plan["cut"], plan["next_tag"]) == ([f"tidemark run {NAME}"], None, "cut_1")
    status, plan = shop.plan("--start", "2026-01-02", "--end", "2026-01-03")
    assert [Path(file["path"]).parent.name for file in plan["files"]] == ["2026-01-02"]
    assert plan["commands"] == [
        f"tidemark run {NAME} --start 2026-01-02T00:00:00+00:00 --end 2026-01-03T00:00:00+00:00"
    ]
    assert not (tmp_path / "home").exists()
    assert RUNNER.invoke(app, ["plan", NAME, "--start", "2026-01-02", "--end", "2026-01-01"]).exit_code == 2


def changed(shop: Shop, tables: dict[str, Any] | None = None, **fields: Any) -> tuple[int, list[tuple[Any, ...]]]:
    """Change the source file; return the plan's status, and of each change place, need and touched tables."""
    shop.declare(tables, **fields)
    status, plan = shop.plan()
    return status, [
        (each["place"], each["need"], sorted((touch["table"], *touch["columns"]) for touch in each["touches"]))
        for each in plan["changes"]
    ]


@pytest.mark.spark
def test_each_change_is_told_with_what_it_touches_and_needs(shop: Shop, spark: SparkSession, lake: Lake) -> None:
    """Nothing after a run; then each kind of change; and the commands that the plan gives leave nothing to do."""
    tidemark(f"tidemark run {NAME}")
    assert changed(shop) == (0, [])
    assert "nothing to do" in RUNNER.invoke(app, ["plan", NAME]).stdout

    orders, both = f"{NAME}.orders", [(f"{NAME}.items",), (f"{NAME}.orders",)]
    checks = [{"type": "expect_column_values_to_not_be_null", "column": "total"}]
    place = "tables.shop.orders"
    total = f"{place}.columns.total"
    for entry, wanted in (
        (ORDERS | {"key": ["day"]}, (1, [(f"{place}.key", "rebuild", [(orders,)])])),
        (ORDERS | {"columns": {"total": "string"}}, (1, [(total, "rebuild", [(orders, "total")])])),
        (
            ORDERS | {"columns": {"total": "decimal(12, 2)"}},
            (0, [(total, "run", [(orders, "total")])]),
        ),
        (ORDERS | {"checks": checks}, (0, [(f"{place}.checks", "nothing", [(orders,)])])),
        (ORDERS | {"history": True}, (0, [(f"{place}.history", "run", [(orders,)])])),
        (ORDERS | {"deletes": "soft"}, (0, [(f"{place}.deletes", "run", [(orders, "_cdc_deleted")])])),
        (ORDERS | {"max_deletes": 0.1}, (0, [(f"{place}.max_deletes", "nothing", [(orders,)])])),
    ):
        assert changed(shop, {"shop.orders": entry}) == wanted
    assert changed(shop, {"shop.none": ORDERS, "shop.orders": ORDERS})[0] == 0
    shop.declare({"shop.orders": {"key": ["id"]}})  # the type is not declared any more, and the table has it
    assert "source file of" not in RUNNER.invoke(app, ["normalize", NAME]).stderr
    assert changed(shop, options={"row_image": "partial"}) == (
        1,
        [("options.row_image", "run --reprocess", both)],
    )
    assert changed(shop, schedule="@hourly") == (0, [("schedule", "nothing", both)])
    assert changed(shop, target="{source}.t_{table}") == (
        0,
        [("tables.shop.items.target", "run", [both[0]]), ("tables.shop.orders.target", "run", [both[1]])],
    )

    day = {"columns": ORDERS["columns"] | {"day": "date"}, "encodings": {"day": "epoch_days"}}
    status, found = changed(shop, {"shop.*": ORDERS | day})
    assert status == 1
    needs = {place: need for place, need, _ in found}
    assert needs["tables.shop.*.encodings.day"] == "run --reprocess"
    assert needs["tables.shop.orders.columns.day"] == "rebuild"
    shop.deliver("2026-01-02", {"table": "items", "id": "2", "name": "b"})
    _, plan = shop.plan()
    assert (plan["commands"], plan["next_tag"]) == ([f"tidemark run {NAME} --reprocess"], "cut_2")
    assert [file["landed_before"] for file in plan["files"]] == [False]
    noted = RUNNER.invoke(app, ["normalize", NAME])
    assert "note: source file of plan_shop: tables.shop.*.encodings.day: (default) -> epoch_days" in noted.stderr
    for command in plan["commands"]:
        tidemark(command)
    assert shop.plan()[1]["changes"] == []
    days = lake.load((NAME, "orders")).scan().to_arrow()["day"].to_pylist()
    assert sorted(map(str, days)) == ["2024-10-04", "2024-10-05"]


def test_every_part_of_a_source_file_is_compared(tmp_path: Path) -> None:
    """A changed landing path is reported without the path, which may hold a secret; every part with a need exists."""
    base = {"source": "erp", "format": "canal_json", "landing": "s3://bucket/secret1/a"}
    before = declared_by(Source.model_validate(base))
    now = Source.model_validate(base | {"landing": "s3://bucket/secret2/a"})
    (change,) = since(before, now)
    assert (change.place, change.need) == ("landing", Need.NOTHING)
    assert "secret" not in json.dumps([before, declared_by(now), str(change)])
    parts = {field.alias or name for name, field in Source.model_fields.items()}
    parts |= set(Source.model_fields["tables"].annotation.__args__[1].model_fields)  # type: ignore[union-attr]
    assert NEEDS.keys() <= parts


@pytest.mark.parametrize(
    ("on_fail", "need"), [("quarantine", Need.RUN), ("keep_last_good", Need.RUN), ("warn", Need.NOTHING)]
)
def test_a_check_that_keeps_rows_back_is_applied_by_the_next_run(on_fail: str, need: Need) -> None:
    """The table is built again then, also where the check goes; other checks only count from then on."""
    check = {"type": "expect_column_values_to_not_be_null", "column": "a", "on_fail": on_fail}
    assert SourceFileChange(part="checks", entry="shop.t", after=[check]).need == need
    assert SourceFileChange(part="checks", entry="shop.t", before=[check]).need == need
