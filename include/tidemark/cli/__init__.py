"""The command line, and the entry point of the jobs that spark-submit runs.

Results go to standard output, progress and logs to standard error. Exit status: 0 done; 1 data held back; 2 usage or
configuration; 3 the store or the engine failed, safe to run again.
"""

from __future__ import annotations

from tidemark.cli.commands import main
from tidemark.cli.jobs import job

__all__ = ["job", "main"]
