"""Engine failures of one table: where the engine works otherwise, the table stops, and the others go on.

A store or an engine that is down fails every table, and running again is the remedy. A plan that the engine cannot run
fails again with the same events, whatever one does. The two are told apart by a second attempt, and by a look into the
change log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from tidemark.compaction.decisions import Stopped, stopped
from tidemark.compaction.run import Run
from tidemark.spark.jvm_lookups import ENGINE_ERRORS
from tidemark.tables.plan import Found
from tidemark.text import first_line

log = structlog.get_logger(__name__)

_Outcome = TypeVar("_Outcome")


def contained(run: Run, found: Found, work: Callable[[], _Outcome]) -> _Outcome | Stopped:
    """Return what work on one table leads to; the table stopped, if the engine failed twice and works otherwise.

    Args:
        run: the run.
        found: the table.
        work: may be done again after it failed at any point.

    Raises:
        PySparkException: the engine or the store fails at other work too.
    """
    try:
        return work()
    except ENGINE_ERRORS as error:
        log.warning("engine_failed", object=found.object, error=first_line(error), attempt=1)
    try:
        return work()
    except ENGINE_ERRORS as error:
        run.changes().select("batch").limit(1).collect()
        reason = (
            f"{found.object}: the engine failed twice at this table ({found.events} new events), and works otherwise: "
            f"{first_line(error)}. The table stays as it is, and its events wait. The next run tries again"
        )
        return stopped(found, reason)
