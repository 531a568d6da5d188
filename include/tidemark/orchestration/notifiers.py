"""Airflow's own notifiers, which a source file names: they are called for failed tasks, beside ``alerts``."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator

from airflow.sdk import BaseNotifier

from tidemark.errors import ConfigurationError
from tidemark.sources.model import Source
from tidemark.sources.notifier import Notifier

log = logging.getLogger(__name__)


def notifiers_of(source: Source) -> Iterator[BaseNotifier]:
    """Yield the notifiers of a source. One that cannot be made is logged and left out; ``require`` raises for it."""
    for entry in source.on_failure:
        try:
            yield _made(source.source, entry)
        except ConfigurationError as error:
            log.error("%s", error)  # noqa: TRY400 - the sentence says all


def require(sources: Iterable[Source]) -> None:
    """Make every notifier of some sources, to see whether Airflow can.

    Raises:
        ConfigurationError: one cannot be made; with all that cannot.
    """
    wrong = []
    for source in sources:
        for entry in source.on_failure:
            try:
                _made(source.source, entry)
            except ConfigurationError as error:
                wrong.append(str(error))
    if wrong:
        raise ConfigurationError("\n".join(wrong))


def _made(source: str, entry: Notifier) -> BaseNotifier:
    module, _, name = entry.notifier.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except Exception as error:  # a provider may raise anything while it is imported
        raise ConfigurationError(
            f"{source}: on_failure: there is no {entry.notifier}: {error}. Is its provider installed?"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise ConfigurationError(f"{source}: on_failure: {entry.notifier} is no notifier of Airflow")
    try:
        return kind(**entry.arguments)
    except Exception as error:
        raise ConfigurationError(
            f"{source}: on_failure: {entry.notifier} does not take these arguments: {error}"
        ) from error
