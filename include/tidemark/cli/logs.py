"""Logging to standard error, without control characters of a terminal."""

from __future__ import annotations

import logging
import os
import sys
import warnings

import structlog

from tidemark.text import harmless

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def configure_logging(*, verbose: int = 0) -> None:
    """Set up logging to standard error: one event a line, as ``key=value``. Warnings of libraries are not shown.

    A terminal gets warnings and errors only, as a person reads the results there; a file also gets what was done.
    ``verbose`` is how many levels more are logged. ``TIDEMARK_LOG=debug`` logs all.
    """
    warnings.filterwarnings("ignore", module=r"(pyspark|pyiceberg|great_expectations|sqlalchemy|py4j)\b.*")
    level = _LEVELS[min((0 if is_terminal() else 1) + verbose, 2)]
    if os.environ.get("TIDEMARK_LOG") == "debug":
        level = logging.DEBUG
    structlog.configure(
        processors=[
            _as_harmless,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Standard error is looked up for each line, because it may have been replaced.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def is_terminal() -> bool:
    """Return whether a person reads standard error."""
    return sys.stderr.isatty()


def _as_harmless(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return a log entry with control characters escaped: its values may come from messages, as names of tables do."""
    return {name: harmless(value) if isinstance(value, str) else value for name, value in entry.items()}
