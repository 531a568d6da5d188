"""No DAG: this file fails to import if source files are wrong, give no DAG, or name notifiers that Airflow lacks.

Airflow shows the error with file, line and key.

Airflow unschedules every DAG of a file that fails to import. So the DAGs of valid sources are made in another file.
"""

from __future__ import annotations

from tidemark.orchestration import require_dags, require_notifiers
from tidemark.sources import load_sources

sources = load_sources()
require_notifiers(sources)
require_dags(sources)
