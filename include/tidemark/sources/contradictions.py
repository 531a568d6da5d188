"""What follows where events contradict the rows that are stored, as a source file declares it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tidemark.sources.choices import Consequence


class Contradictions(BaseModel):
    """The consequence of each kind of contradiction between events and rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    missing_rows: Consequence = Consequence.WARN
    """An UPDATE or DELETE of a row that is not there: the event that made the row is lost."""
    existing_rows: Consequence = Consequence.WARN
    """An INSERT of a row that is there: the event that deleted it is lost, or the key is not one."""

    @property
    def are_sought(self) -> bool:
        """Whether any of them has a consequence."""
        return {self.missing_rows, self.existing_rows} != {Consequence.OFF}
