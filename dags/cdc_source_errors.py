"""No DAG: this file fails to import if source files are wrong. Airflow shows the error with file, line and key.

Airflow unschedules every DAG of a file that fails to import. So the DAGs of valid sources are made in another file.
"""

from __future__ import annotations

from tidemark.sources import load_sources

load_sources()
