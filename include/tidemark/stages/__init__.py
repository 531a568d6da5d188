"""The five stages, the axis that is fixed: ``land >> normalize >> compact >> check >> publish``.

Each is a module with ``run(...) -> StageReport``. They meet in Iceberg tables, never in each other's code, so any of
them can be run again alone. They are named here, so that one stage imports one stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STAGES = ("land", "normalize", "compact", "check", "publish")
"""Names of the stages, in the order of the flow."""

REHEARSED = STAGES[1:3]
"""What a dry run does on copies of the tables, to find out what reprocessing would change."""

REBUILD = ("rebuild", "compact", "check", "publish")
"""What builds tables again: a request, then the stages that answer it."""

RETRY = ("normalize", "retry", "compact", "check", "publish")
"""What tries quarantined messages again: after what landed meanwhile."""

PROBLEMS_VARIABLE = "TIDEMARK_PROBLEMS"
"""Environment variable: the file in which a submitted job leaves why it failed, for the task that submitted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """What one stage did."""

    stage: str
    source: str
    summary: Mapping[str, int | str]
    """Counts and names, for logs and for Airflow's result of the task."""
    problems: tuple[str, ...] = ()
    """What was held back, refused or stopped: sentences that say what, where and what to do."""
    remarks: tuple[str, ...] = ()
    """What a person should know, although nothing was held back for it."""
    details: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """Per table, where the stage works by table."""

    @property
    def has_problems(self) -> bool:
        """Whether something was held back, refused or stopped, so that the command's exit status is 1."""
        return bool(self.problems)
