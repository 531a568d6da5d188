"""What stages import, for a process whose forks are to have it already: the scheduler of Airflow on this machine.

Each task is a fork of the scheduler. It reads its DAG file and runs one stage. What is not imported before the fork,
each task imports again; what is not compiled, it compiles again.
"""

from __future__ import annotations

from importlib import import_module

from tidemark import formats
from tidemark.quality import docs_pages
from tidemark.report import pages
from tidemark.stages import STAGES

MODULES = (
    "pyarrow.acero",
    "pyiceberg.catalog.sql",
    "pyspark.sql.connect.catalog",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.window",
    "tidemark.ddl.statements",
    "tidemark.orchestration",
    "tidemark.pipeline",
    "tidemark.quality.expectations",
    "tidemark.report.site",
    *(f"tidemark.stages.{stage}" for stage in STAGES),
)
"""Modules that DAG files and stages import, some of them only where they are used."""

for _name in MODULES:
    import_module(_name)

# The first model of options that a process makes costs it an eighth of a second, where many modules are imported:
# Pydantic looks for the file of its docstrings among those of all modules. A format that another package brings is left
# to the tasks of its sources: one that cannot be imported must not end the scheduler.
for _name in formats.own():
    import_module(f"{formats.__name__}.{_name}")
    formats.members_of(_name)

docs_pages.compile_templates()
pages.compile_templates()
