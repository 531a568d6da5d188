"""What a table's entry says of its columns: which are published, and which are masked (docs/table-options.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import InitErrorDetails

from tidemark.sources import fields
from tidemark.sources.fields import wrong
from tidemark.values.masking import Mask

Names = Annotated[tuple[str, ...], AfterValidator(fields.unique_names)]


def _word(given: object) -> object:
    """Return the word of a mask: in YAML, ``null`` is no text."""
    return Mask.NULL.value if given is None else given


def _one_each(names: dict[str, str]) -> dict[str, str]:
    """Return new names by column: no two are equal, and none is a name that is given away."""
    new = [name.casefold() for name in names.values()]
    for name, given in names.items():
        if not given.strip():
            raise wrong(f"'{name}' gets an empty name.")
        if new.count(given.casefold()) > 1:
            raise wrong(f"two columns would be called '{given}'.")
        if given.casefold() in {other.casefold() for other in names}:
            raise wrong(f"'{given}' is renamed itself: choose another name for '{name}'.")
    return names


class ColumnOptions(BaseModel):
    """Options of a table's columns. Names are the source's, of any time; ``*`` and ``?`` are allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    select: Names | None = None
    """Columns that are published. None: all."""
    exclude: Names = ()
    """Columns that are not published; it counts before ``select``."""
    rename: Annotated[dict[str, str], AfterValidator(_one_each)] = Field(default_factory=dict)
    """Column -> the name that it is published under."""
    mask: dict[str, Annotated[Mask, BeforeValidator(_word)]] = Field(default_factory=dict)
    """Column -> what is published in place of its values. Where several entries fit, the first counts."""


def problems(options: ColumnOptions, key: tuple[str, ...], types: Mapping[str, str]) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with the options of a table, as far as the source file alone tells.

    Args:
        options: the options.
        key: the key that the source file gives; empty for none.
        types: the types that it gives, by column.
    """
    if options.select == ():
        yield fields.error_at(("select",), "empty: no column would be published. Leave it out to publish all.")
    for place, name in enumerate(options.exclude):
        if name in key:
            yield fields.error_at(("exclude", place), f"{name} is part of the key, so it cannot be left out.")
    for name, mask in options.mask.items():
        if name in key and mask is not Mask.HMAC:
            yield fields.error_at(("mask", name), f"{name} is part of the key; only hmac keeps rows apart.")
        if name in types:
            text = f"{name} is masked, and a mask is text. Leave its type out of `columns`."
            yield fields.error_at(("columns", name), text)
