"""What the demo shows while it runs: lines where nobody looks at a terminal, else a table."""

from __future__ import annotations

import io
import time

from rich.console import Console

from tidemark.demo.board import TASKS, Board
from tidemark.stages import STAGES

SOURCES = ["shop_canal", "shop_replicate_avro"]
STATES = {
    "shop_canal": {"1": dict.fromkeys(STAGES, "success"), "2": {"land": "success", "normalize": "running"}},
    "shop_replicate_avro": {"1": {"land": "failed"}, "2": {"land": None}},
}


def test_a_line_says_what_is_done_how_far_it_is_and_where_to_look() -> None:
    """At each step, and again and again until it ends; nothing after that."""
    file = io.StringIO()
    with Board(SOURCES, 2, file=file, every=0.05) as board:
        board.step("starting", address="http://127.0.0.1:1")
        board.watch(lambda: STATES)
        time.sleep(0.4)
    lines = file.getvalue().splitlines()
    assert lines[0] == "demo 0:00: starting; http://127.0.0.1:1"
    expected = "demo 0:00: starting; 1 of 4 runs are done; running: shop_canal normalize; http://127.0.0.1:1"
    assert lines.count(expected) >= 2
    asked = Board(SOURCES, 2, file=file, every=60)
    answers = [STATES, {}]
    for _ in range(3):
        asked.watch(lambda: answers.pop(0))
    assert answers == [{}]  # the others came too soon after it
    assert "\x1b" not in file.getvalue()
    time.sleep(0.15)
    assert file.getvalue().splitlines() == lines


def test_the_table_has_each_source_and_stage() -> None:
    """How many runs are over, a mark where one is running, the word where one failed; no name is cut."""
    assert TASKS == STAGES
    board = Board(SOURCES, 2, file=io.StringIO())
    board.step("running", address="http://127.0.0.1:1")
    board.watch(lambda: STATES)
    console = Console(file=(file := io.StringIO()), width=80)
    console.print(board)
    title, address, head, canal, avro = (line.split() for line in file.getvalue().splitlines())
    assert title[0] == "demo"
    assert address == ["Airflow:", "http://127.0.0.1:1"]
    assert head == ["source", *STAGES]
    assert canal == ["shop_canal", "2/2", "*", "1/2", "1/2", "1/2", "1/2"]
    assert avro == ["shop_replicate_avro", "failed", "0/2", "0/2", "0/2", "0/2"]
