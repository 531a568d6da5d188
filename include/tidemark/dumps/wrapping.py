"""What messages in a dump file may be wrapped in. This module is light to import."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidemark.dumps.beyond_limit import LIMIT


class Wrapping(StrEnum):
    """What stands around the messages of a dump file."""

    PLAIN = "plain"
    """Nothing."""
    KAFKA = "kafka"
    """Kafka records, as objects or rows with ``topic partition offset timestamp key value``."""
    KCAT = "kcat"
    """Kafka records, as ``kcat -J`` writes them."""
    CONSOLE = "console"
    """Kafka records, as Kafka's console consumer writes them: fields of a line, separated by tabs."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How the dump files of a source are read."""

    limit: int = LIMIT
    """Most bytes of one message."""
    wrapping: Wrapping | None = None
    """What the source file says about the messages of text files; None: their content decides."""
