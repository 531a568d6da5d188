"""The README: every command and snippet works as written, in the order of the page, on ``examples/erp``."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.answers import differences
from tidemark.cli.app import app
from tidemark.cli.format_list import FormatAnswer
from tidemark.cli.plan_text import PlanAnswer
from tidemark.diagnosis.findings import Finding
from tidemark.lake.lake import Lake
from tidemark.ledger.schemas import NAMES
from tidemark.queries.row_life_text import LifeEvent
from tidemark.queries.status_answer import Status
from tidemark.stages import STAGES

ROOT = Path(__file__).parents[2]

README = ROOT / "README.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_PATH = "PATH"


ANSWERS = {
    "status erp": Status,
    "plan erp": PlanAnswer,
    "explain erp.orders id=7": LifeEvent,
    "doctor erp": Finding,
    "formats canal_json": FormatAnswer,
}
"""Commands, and the types that docs/reference/json-output.md is made from."""


class Block(NamedTuple):
    """A block of the README that is not prose."""

    kind: str
    """``commands`` for an indented block, else the language of the fence; empty for a picture or a tree."""
    text: str


def blocks() -> Iterator[Block]:
    """Yield the blocks of the README in their order."""
    text = README.read_text("utf-8")
    place = 0
    for fence in _FENCE.finditer(text):
        yield from indented(text[place : fence.start()])
        yield Block(fence[1], fence[2])
        place = fence.end()
    yield from indented(text[place:])


def indented(text: str) -> Iterator[Block]:
    """Yield the indented blocks of a text."""
    for found in re.finditer(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.MULTILINE):
        yield Block("commands", re.sub(r"^    ", "", found[0], flags=re.MULTILINE))


@pytest.fixture
def checkout(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a fresh checkout, for what the README names: the examples, and the home of the tests as the lake."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".tidemark").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMARK_SOURCES", raising=False)
    return tmp_path


@pytest.mark.spark
def test_every_block_works_as_written(
    checkout: Path, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands end with status 0, Python runs, and both show what the page says; the targets of make are left out."""
    # Twenty tables of the ledger take most of the time of a maintenance. Its own tests look at all of them.
    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ("cuts",))
    shown: dict[str, str] = {}
    ran = 0
    for block in blocks():
        if block.kind == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(block.text, str(README), "exec"), {})  # noqa: S102 - our own page
            assert "count_star()" in printed.getvalue()
        elif block.kind == "commands":
            for line in block.text.splitlines():
                words = shlex.split(line, comments=True)
                if not words or words[0] == "make":
                    continue
                if words[0] == "export":
                    pairs = [word.split("=", 1) for word in words[1:]]
                    for name, value in pairs:
                        if name != _PATH:
                            monkeypatch.setenv(name, value)
                    continue
                assert words[0] == "tidemark", line
                done = CliRunner().invoke(app, words[1:])
                assert done.exit_code == 0, (line, done.output)
                shown[" ".join(words[1:])] = done.stdout
                ran += 1
    assert ran >= 18
    rows = shown["sql SELECT id, status, total FROM erp.orders ORDER BY id"]
    assert re.findall(r"(?m)^ *(\d+)\s+(\w+)\s+([\d.]+)", rows)[-2:] == [
        ("7", "shipped", "245.00"),
        ("8", "new", "64.00"),
    ]
    assert "20 messages landed = 19 decoded + 0 control + 1 quarantined" in shown["status erp"]
    assert "shipped" in shown["explain erp.orders id=7"]
    assert "b.jsonl" in shown["quarantine show erp"]
    assert shown["identify examples/erp/dumps/2026-01-01/a.jsonl"].count("canal_json")
    assert "nothing to do" in shown["plan erp"]
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python-api.md").read_text("utf-8"), re.DOTALL)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(snippet, "python-api.md", "exec"), {})  # noqa: S102 - our own page
    assert [line.split()[0] for line in printed.getvalue().splitlines()][-5:] == list(STAGES)
    for command, answer in ANSWERS.items():
        lines = CliRunner().invoke(app, [*command.split(), "--json"]).stdout.splitlines()
        assert lines, command
        assert [*differences(json.loads(lines[0]), answer)] == [], command


def test_its_source_file_is_the_examples_own() -> None:
    """What a reader copies is what the example runs by."""
    (text,) = (block.text for block in blocks() if block.kind == "yaml")
    assert text == (ROOT / "examples" / "erp" / "erp.yaml").read_text("utf-8")


def test_paths_that_it_names_exist() -> None:
    """The map of the repository, and the links to its pages."""
    text = README.read_text("utf-8")
    (tree,) = (block.text for block in blocks() if block.text.startswith("examples/erp/ "))
    inner = {"include/tidemark/": ROOT / "include" / "tidemark"}
    for line in tree.splitlines():
        name = line.split()[0]
        folder = inner["include/tidemark/"] if line.startswith("    ") else ROOT
        assert (folder / name).exists(), line
    for target in re.findall(r"\]\(([^)#:]+)", text):
        assert (ROOT / target).exists(), target


def test_its_map_of_the_disk_names_each_table_of_the_ledger() -> None:
    """Whoever adds a table finds that the map leaves it out."""
    (disk,) = (block.text for block in blocks() if block.text.startswith("catalog.db "))
    words = set(re.findall(r"\w+", disk[disk.index("ledger/") : disk.index("quality/ ")]))
    assert set(NAMES) - words == set()
