"""What a command imports: libraries that take long to import are left to the commands that use them."""

from __future__ import annotations

import os
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
        (["decode", "canal_json", DUMP], set()),
        (["status"], {"pyiceberg"}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_command_imports_what_it_needs(arguments: list[str], needed: set[str], home: Path) -> None:
    """No command waits for a library that it does not use; `status` of a lake needs what reads tables.

    Expressions in a source file need a parser of SQL. The example has none.
    """
    from tidemark.lake.lake import Lake

    Lake.open()
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = os.environ | {"TIDEMARK_SOURCES": "examples/erp"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    imported = set(done.stderr.splitlines()[-1].split()[1:])
    assert imported & HEAVY <= needed


def test_arrow_still_converts_to_pandas_after_a_quick_start() -> None:
    """Pandas is kept out until it is wanted: then what Arrow makes of it is as usual."""
    program = (
        "import pyarrow as pa, sys; from tidemark.cli.quick_start import keep_pandas_out; keep_pandas_out()\n"
        "table = pa.table({'a': [1, None]}); assert 'pandas' not in sys.modules\n"
        "frame = table.to_pandas(); assert 'pandas' in sys.modules\n"
        "print(frame['a'].tolist(), pa.Table.from_pandas(frame)['a'].to_pylist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, nan] [1.0, None]\n"


def test_sql_shows_times_to_the_nanosecond(home: Path) -> None:
    """Arrow needs pandas for them, so no command that shows values keeps it out."""
    from tidemark.lake.lake import Lake

    Lake.open()
    query = "SELECT TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS at"
    command = [sys.executable, "-c", "from tidemark.cli import main; main()", "sql", "--format", "csv", query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["at", "2026-01-01 00:00:00.123456789"]
