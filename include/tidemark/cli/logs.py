"""Logging to standard error, without control characters of a terminal."""

from __future__ import annotations

import logging
import os
import sys
import warnings

import structlog

from tidemark.text import harmless


def configure_logging(*, verbose: bool = False) -> None:
    """Set up logging to standard error: one event a line, as ``key=value``. Warnings of libraries are not shown."""
    warnings.filterwarnings("ignore", module=r"(pyspark|pyiceberg|great_expectations|sqlalchemy|py4j)\b.*")
    level = logging.DEBUG if verbose or os.environ.get("TIDEMARK_LOG") == "debug" else logging.INFO
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


def _as_harmless(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return a log entry with control characters escaped: its values may come from messages, as names of tables do."""
    return {name: harmless(value) if isinstance(value, str) else value for name, value in entry.items()}
