"""The command line, and the entry point of the jobs that spark-submit runs.

Results go to standard output, progress and logs to standard error. Exit statuses: 0 done; 1 data was held back;
2 wrong usage or configuration; 3 the store or the engine failed, and the same command can be run again.
"""

from __future__ import annotations

from tidemark.cli.commands import main
from tidemark.cli.jobs import job

__all__ = ["job", "main"]
