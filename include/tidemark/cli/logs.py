"""Logging to standard error, without anything that steers a terminal."""

from __future__ import annotations

import logging
import os
import sys
import warnings

import structlog

from tidemark.text import harmless


def configure_logging(*, verbose: bool = False) -> None:
    """Log one event a line, key=value, to standard error; libraries speak up only when something is wrong."""
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
        # Looked up at each line: standard error may have been replaced since.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _as_harmless(_logger: object, _method: str, told: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Log values of messages, as names of tables, without what would steer a terminal."""
    return {name: harmless(value) if isinstance(value, str) else value for name, value in told.items()}
