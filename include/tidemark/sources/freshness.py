"""How old the newest data of a source or a table may be, as a source file declares it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tidemark.sources.fields import error_at

Hours = Annotated[float, Field(gt=0, le=876_000, strict=True)]


class Freshness(BaseModel):
    """How many hours old the newest data may be when a run checks it: of a source, of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    warn_after_hours: Hours | None = None
    """If it is older, the run reports it."""
    block_after_hours: Hours | None = None
    """If it is older, the cut awaits approval, and the run ends with status 1, also if it brought nothing new."""

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        warn, block = self.warn_after_hours, self.block_after_hours
        if warn is None and block is None:
            text = "says nothing: give warn_after_hours, block_after_hours or both."
            raise ValidationError.from_exception_data("Freshness", [error_at((), text)])
        if warn is not None and block is not None and warn >= block:
            text = f"must be more than warn_after_hours ({warn:g})."
            raise ValidationError.from_exception_data("Freshness", [error_at(("block_after_hours",), text)])
        return self
