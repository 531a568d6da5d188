"""Airflow in this process, with a home of its own, and without its hold on the logging of the other tests."""

from __future__ import annotations

import logging
import os
import tempfile

import structlog

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="tidemark-airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

_handlers, _level = logging.root.handlers[:], logging.root.level
import airflow  # noqa: E402, F401 - reads the environment and takes over the logging when it is imported

structlog.reset_defaults()
logging.root.handlers[:] = _handlers
logging.root.setLevel(_level)
