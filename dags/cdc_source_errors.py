"""No DAG, but Airflow's import error when source files are wrong: it names each with file, line and key.

Airflow unschedules every DAG of a file that fails to import, so the DAGs of the right ones live in another file.
"""

from __future__ import annotations

from tidemark.sources import load_sources

load_sources()
