"""How long what tables are made of is kept, as a source file declares it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt


class Retention(BaseModel):
    """For how long ``tidemark maintain`` keeps what tables are made of. What is not given is kept for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    raw_days: Annotated[StrictInt, Field(ge=1)] | None = None
    """Messages that were normalized earlier go from ``raw``. They cannot be decoded again then."""
    changelog_days: Annotated[StrictInt, Field(ge=1)] | None = None
    """Events of tables that need no earlier ones go from the change log. Such tables cannot be rebuilt from it then."""
    quarantine_days: Annotated[StrictInt, Field(ge=1)] | None = None
    """Messages that were set aside earlier lose their bytes and details in quarantine; places and reasons stay."""

    def problem(self, late: int) -> tuple[str, str] | None:
        """Return the key that does not fit the others, and why; None if all fit.

        Args:
            late: how many days an event may be late.
        """
        raw, events, aside = self.raw_days, self.changelog_days, self.quarantine_days
        if events is None:
            return None
        if events < late:
            return "changelog_days", f"must be {late} (`maintenance: tombstone_days`) or more: so late may an event be."
        if raw is not None and (aside is None or aside > events):
            text = (
                f"must be {events} (`changelog_days`) or less: without message and event, no erasure would find a row."
            )
            return "quarantine_days", text
        return None
