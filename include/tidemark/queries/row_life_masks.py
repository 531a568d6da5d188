"""Masks in the life of a row: events are compared by their plain values, and shown with the masked ones.

Of values that were masked before they were written, nothing but the masked ones is known.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.queries.row_life import Key, Step
from tidemark.values.masking import Masks
from tidemark.values.plain_types import Value


class MaskedText(str):
    """A value that was masked before it was written."""

    __slots__ = ()


def as_shown(name: str, value: Value, masks: Masks) -> Value:
    """Return a value as the table shows it."""
    if value is None or name not in masks.kinds or isinstance(value, MaskedText):
        return value
    return masks.shown(name, str(value))


def masked(step: Step, masks: Masks) -> Step:
    """Return a step with its values as the table shows them."""
    if not masks.kinds:
        return step
    return replace(
        step,
        cells=shown(step.cells, masks),
        leaves=shown(step.leaves, masks),
        moved_from=step.moved_from and shown(step.moved_from, masks),
        moved_to=step.moved_to and shown(step.moved_to, masks),
    )


def shown(values: Key, masks: Masks) -> Key:
    """Return values by column as the table shows them."""
    return {name: as_shown(name, value, masks) for name, value in values.items()}
