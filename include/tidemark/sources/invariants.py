"""What follows from each built-in check of change data, as a source file declares it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from tidemark.sources.choices import Consequence


def _spelt(given: object) -> object:
    """Return ``off`` for the ``off`` without quotes, which YAML reads as false."""
    return Consequence.OFF if given is False else given


Chosen = Annotated[Consequence, BeforeValidator(_spelt)]


class Invariants(BaseModel):
    """The consequence of each built-in check that is a matter of opinion."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    missing_rows: Chosen = Consequence.WARN
    """An UPDATE or DELETE of a row that is not there: the event that made the row is lost."""
    existing_rows: Chosen = Consequence.WARN
    """An INSERT of a row that is there: the event that deleted it is lost, or the key is not one."""
    incomplete_rows: Chosen = Consequence.WARN
    """An UPDATE with some columns of a row that was not there, or an INSERT without some of the row's columns: they are
    null, and their values are not known."""
    before_images: Chosen = Consequence.WARN
    """A before image that is not the row before: an UPDATE is lost. Of large batches and tables a share is compared."""
    different_copies: Chosen = Consequence.WARN
    """Events at one position with different contents: only one of them is published."""
    loaded_again: Chosen = Consequence.BLOCK
    """Loaded rows that rank below all changes and seem to be of a second load, which does not show which rows are gone:
    they were read after the newest published change, or have keys that were loaded before. ``reloads`` of the table
    lets the load replace it; ``warn`` adds the rows that are not there."""
    value_bounds: Chosen = Consequence.WARN
    """Values that the source's own type rules out (a length, a range, labels): a sign that they were misread."""
    volume: Chosen = Consequence.WARN
    """Far more or fewer events of a table than in its cuts before."""
    schema_drift: Chosen = Consequence.WARN
    """Columns of a published table that a cut adds, drops, renames or gives another type."""
    unknown_messages: Chosen = Consequence.WARN
    """Messages with an operation or a type of a column that the format does not know: the producer changed."""
    unknown_members: Chosen = Consequence.WARN
    """Members of messages, beside their rows, that the format does not know: reported once, when they are new."""
    lone_tombstones: Chosen = Consequence.BLOCK
    """Records without a value in a source whose messages never deleted a row: most likely they are its deletes."""
    missing_offsets: Chosen = Consequence.WARN
    """Records of a partition of Kafka that did not land, between others that did."""
    quarantined_share: Chosen = Consequence.BLOCK
    """More messages of a cut, or events of a table, set aside than ``max_quarantined`` allows."""
    open_transactions: Chosen = Consequence.BLOCK
    """Transactions that are open for longer than ``max_open_hours``. ``block`` ends every run with status 1. The cut is
    published, because it has none of their events."""
