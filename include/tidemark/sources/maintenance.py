"""``maintenance`` of a source file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt


class Maintenance(BaseModel):
    """What ``tidemark maintain`` keeps, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_cuts: Annotated[StrictInt, Field(ge=1)] = 30
    """Number of the newest cuts that stay readable, whatever their age. Cuts of erasures are not counted."""
    keep_days: Annotated[StrictInt, Field(ge=0)] = 7
    """Cuts, and all other snapshots, that are younger than this stay readable too."""
    orphan_days: Annotated[StrictInt, Field(ge=1)] = 3
    """Files that no snapshot refers to are removed when they are older than this. No run may take longer."""
    tombstone_days: Annotated[StrictInt, Field(ge=1)] = 90
    """Days for which deletes are remembered. An event that arrives later may bring its deleted row back."""
