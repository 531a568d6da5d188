"""Which changes of a row begin a version in its history, as a source file declares it (docs/history.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticKnownError

from tidemark.sources.column_options import Names


class History(BaseModel):
    """A history in which only some columns make versions. Names are the source's; ``*`` and ``?`` are allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    track: Names | None = None
    """A version begins where one of these columns changes. None: where any column does that is not ignored."""
    ignore: Names = ()
    """Columns whose changes begin no version; it counts before ``track``."""

    @property
    def rule(self) -> str:
        """The same as text, which shows by what rule a history was built."""
        return self.model_dump_json()


def _declared(given: object) -> object:
    """Return whether a history is kept, or how.

    Raises:
        PydanticKnownError: it is neither true nor false, and no mapping.
    """
    if isinstance(given, bool | History):
        return given
    if isinstance(given, dict):
        return History.model_validate(given)
    raise PydanticKnownError("bool_type")


DeclaredHistory = Annotated[bool | History, BeforeValidator(_declared, json_schema_input_type=bool | History)]
