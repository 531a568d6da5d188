"""Published rows and the rows of the model in one form, to compare them: of tables, of histories, and marked ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from support.histories import COLUMNS
from support.reference import Row, Version
from tidemark.positions import Position, encode_position, identity

_NAMES = (*COLUMNS, "_cdc_position", "_cdc_committed_at", "_cdc_deleted", "valid_from", "valid_to", "is_current")


def comparable(rows: Iterable[Row]) -> list[Row]:
    """Rows with all columns that any of them may have, in one order; positions without the delivery."""
    return sorted(({name: without_delivery(row).get(name) for name in _NAMES} for row in rows), key=repr)


def without_delivery(row: Row) -> Row:
    """The row with the position that the copies of its event share."""
    return {**row, "_cdc_position": identity(row["_cdc_position"])} if "_cdc_position" in row else row


def of_versions(
    versions: Iterable[Version], times: Mapping[Position, datetime], typed: Callable[[Row], Row]
) -> list[Row]:
    """The model's versions as rows of a history table.

    Args:
        versions: ``reference.versions`` of one table.
        times: when each event was committed.
        typed: gives a row the types of the table.
    """
    return comparable(
        {
            **typed(version.row),
            "_cdc_position": encode_position(version.position),
            "_cdc_committed_at": times[version.position],
            "valid_from": version.valid_from,
            "valid_to": version.valid_to,
            "is_current": version.valid_to is None,
        }
        for version in versions
    )
