"""What a source file checks of a table: expectations of Great Expectations."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from tidemark.sources.choices import Severity
from tidemark.sources.expectation_names import EXPECTATIONS, REQUIRED
from tidemark.sources.fields import error_at, wrong
from tidemark.text import nearest, suggestion


class Check(BaseModel):
    """One expectation of Great Expectations for one table, with its own name and arguments."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    severity: Severity = Severity.BLOCK
    """``block``: a failed check holds the cut back. ``warn``: it is told, and the cut is published."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the expectation, as the file gives them."""
        return dict(self.model_extra or {})

    @field_validator("type")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in EXPECTATIONS:
            hint = nearest(name, EXPECTATIONS)
            raise wrong(f"unknown expectation '{name}'.{hint} Allowed: the expect_... names of Great Expectations.")
        return name

    @model_validator(mode="after")
    def _arguments_known(self) -> Self:
        given, allowed = self.arguments, EXPECTATIONS[self.type]
        unknown = [name for name in given if name not in allowed]
        errors = [error_at((name,), f"unknown key.{suggestion(name, allowed)}", "unknown_key") for name in unknown]
        missing = sorted(REQUIRED[self.type] - given.keys())
        errors += [error_at((name,), f"missing: {self.type} needs it.", "missing_key") for name in missing]
        if errors:
            raise ValidationError.from_exception_data("Check", errors)
        return self
