"""How long what tables are made of is kept, as a source file declares it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt


class Retention(BaseModel):
    """For how long ``tidemark maintain`` keeps what tables are made of. What is not given is kept for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    raw_days: Annotated[StrictInt, Field(ge=1)] | None = None
    """Messages that landed earlier go from ``raw``. They cannot be decoded again then."""
