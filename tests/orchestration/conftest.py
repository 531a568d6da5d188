"""Airflow as all tests that import it have it."""

import support.airflow_here  # noqa: F401 - before any test imports Airflow
