"""Refuses to decode batches again where something of them, or of what is built from them, is past its time."""

from __future__ import annotations

from collections.abc import Collection

from pyiceberg.table import Table

from tidemark.errors import ConfigurationError
from tidemark.lake.retention import gone_up_to
from tidemark.ledger.expired import Expired


def require(source: str, raw: Table | None, expired: Expired, batches: Collection[int]) -> None:
    """Refuse to decode some batches again where events would be lost, or tables could not be built from what is left.

    Args:
        source: the name of the source.
        raw: the messages, if any landed.
        expired: the events that are past their time.
        batches: whose events are derived again, those of retries among them.

    Raises:
        ConfigurationError: messages of a batch are past their time, or batches are left out whose events are.
    """
    gone = gone_up_to(raw)
    if any(batch <= gone for batch in batches):
        raise ConfigurationError(
            f"{source}: batches up to {gone} cannot be decoded again: raw has messages from batch {gone + 1} on "
            "(`retention: raw_days`). Give --start, so that no file of an earlier batch belongs to the interval; "
            "`ledger.files` tells the batch of each file"
        )
    left_out = {batch for _, batch in expired.among()} - set(batches)
    if batches and left_out:
        raise ConfigurationError(
            f"{source}: events of batches up to {max(left_out)} are past their time (`retention: changelog_days`). "
            "Decoding a batch again builds its tables again from all their events. Give no dates, so that all batches "
            "are decoded again, as long as raw has their messages"
        )
