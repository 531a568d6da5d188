"""Masks in the life of a row: events are compared by their plain values, and told by the masked ones."""

from __future__ import annotations

from dataclasses import replace

from tidemark.queries.row_life import Key, Step
from tidemark.values.masking import Masks


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
    told = {name: masks.told(name, str(value)) for name, value in values.items() if value is not None}
    return {name: told[name] if name in masks.kinds and name in told else value for name, value in values.items()}
