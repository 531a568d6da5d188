"""The quality report in Airflow's web server, where ``include/`` is on the path and the package is not installed."""

from tidemark.orchestration.plugin import TidemarkPlugin

__all__ = ["TidemarkPlugin"]
