"""What a command imports: libraries that take long to import are left to the commands that use them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DUMP = str(ROOT / "examples" / "erp" / "dumps" / "2026-01-01" / "a.jsonl")

HEAVY = frozenset(
    {"airflow", "duckdb", "great_expectations", "pandas", "pyiceberg", "pyspark", "sqlalchemy", "sqlglot"}
)
"""Libraries that take a new process more than a tenth of a second."""

PROGRAM = """
import sys
from tidemark.cli import main
try:
    main()
finally:
    print("imported", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], set()),
        (["validate", str(ROOT / "examples" / "erp" / "erp.yaml")], set()),
        (["decode", "canal_json", DUMP], {"pandas"}),  # PyArrow imports it to make an array of a list
        (["status"], {"pandas", "pyiceberg", "sqlalchemy"}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_command_imports_what_it_needs(arguments: list[str], needed: set[str], home: Path) -> None:
    """No command waits for a library that it does not use; `status` of a lake needs what reads tables."""
    from tidemark.lake.lake import Lake

    Lake.open()
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    imported = set(done.stderr.splitlines()[-1].split()[1:])
    assert imported & HEAVY <= needed
