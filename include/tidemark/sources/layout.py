"""How the files of a published table are laid out: partitions, sort order, properties (docs/table-options.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from tidemark.sources.fields import wrong
from tidemark.text import suggestion
from tidemark.values.declared_types import is_pattern

TRANSFORMS = ("bucket", "day", "hour", "month", "truncate", "year")
"""Functions of a column by which a table is partitioned or sorted; a column alone stands for itself."""

_WITH_NUMBER = frozenset({"bucket", "truncate"})

_CALL = re.compile(r"(?P<name>\w+)\((?:(?P<number>[^,()]*),)?(?P<column>[^()]*)\)", re.DOTALL)

_VERSION = 2

_ORDER = re.compile(r"(?P<what>.*?)(?P<down> +desc| +asc)?(?P<nulls> +nulls +(?:first|last))?", re.DOTALL)

_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*:)?/+", re.IGNORECASE)

_OWN = ("tidemark.", "format-version")

_SET = frozenset({
    "write.merge.mode", "write.delete.mode", "write.update.mode", "write.data.path", "write.metadata.path",
    "write.metadata.delete-after-commit.enabled", "write.metadata.metrics.column._cdc_position",
})  # fmt: skip
"""Properties on which compact, publish and maintain build."""


class Transformed(NamedTuple):
    """A column, or a function of it."""

    column: str
    transform: str | None = None
    """One of ``TRANSFORMS``; None: the column itself."""
    number: int | None = None
    """How many buckets, or the width of what is kept."""

    def __str__(self) -> str:
        if self.transform is None:
            return self.column
        return f"{self.transform}({'' if self.number is None else f'{self.number}, '}{self.column})"


class Sorted(NamedTuple):
    """One part of a sort order."""

    by: Transformed
    descending: bool = False
    nulls_first: bool = False


def transformed(text: str) -> Transformed:
    """Return what ``month(created_at)``, ``bucket(16, id)`` or ``country`` says."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        if not text.strip() or "(" in text:
            raise wrong(
                f"'{text}' is no column and no function of one: write id, month(created_at), or with quotation marks, "
                'because of the comma, "bucket(16, id)".'
            )
        return Transformed(text.strip())
    name, number, column = match["name"].lower(), match["number"], match["column"].strip()
    if name not in TRANSFORMS:
        raise wrong(f"unknown function '{match['name']}'.{suggestion(name, TRANSFORMS)}")
    if name not in _WITH_NUMBER:
        if number is not None or not column:
            raise wrong(f"{name}() takes a column alone: {name}(created_at).")
        return Transformed(column, name)
    if number is None or not number.strip().isdecimal() or not 0 < int(number) < 1 << 31 or not column:
        raise wrong(f"{name}() takes a whole number above 0, and a column: {name}(16, id).")
    return Transformed(column, name, int(number))


def sorted_by(text: str) -> Sorted:
    """Return what ``created_at desc``, or ``bucket(16, id) asc nulls last`` says; nulls come first in ``asc``."""
    match = _ORDER.fullmatch(text.strip())
    what, down, nulls = (match["what"], match["down"], match["nulls"]) if match else (text, None, None)
    descending = bool(down) and str(down).strip().lower() == "desc"
    first = nulls.lower().endswith("first") if nulls else not descending
    return Sorted(transformed(what), descending, first)


def _properties(given: Any) -> Any:  # noqa: ANN401  whatever stands in the file
    """Return properties as texts; Iceberg knows no other values."""
    if not isinstance(given, dict):
        return given
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value
        for name, value in given.items()
    }


def _allowed(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if name in _SET or name.startswith(_OWN):
            raise wrong(f"{name} is set by Tidemark. Any other property may stand here.")
    return properties


def _version(number: int) -> int:
    if number != _VERSION:
        raise wrong(f"{number}: only version {_VERSION} can be written and published without Spark.")
    return number


def _once(parts: tuple[str, ...]) -> tuple[str, ...]:
    for place, part in enumerate(parts):
        if part in parts[:place]:
            raise wrong(f"'{part}' stands in the list twice.")
    return parts


def _as_written(read: Any) -> AfterValidator:  # noqa: ANN401  a function of the text
    """Check a text by a function that reads it, and keep the text."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)


def overlap(first: str, second: str) -> bool:
    """Return whether one of two folders is, or lies in, the other. Of an address, the scheme does not count."""
    return bool(sharing([("first", first), ("second", second)]))


def sharing(places: Iterable[tuple[str, str]]) -> set[str]:
    """Return the names of those places whose folder is, holds or lies in the folder of another one."""
    found: set[str] = set()
    outer, holder = "", ""
    for folder, name in sorted((f"{_SCHEME.sub('/', place).rstrip('/')}/", name) for name, place in places):
        if outer and folder.startswith(outer):
            found |= {holder, name}
        else:
            outer, holder = folder, name
    return found


class Layout(BaseModel):
    """How the files of a table are laid out. What is left out is the owner's, or Iceberg's, own choice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: Annotated[tuple[Annotated[str, _as_written(transformed)], ...], AfterValidator(_once)] = ()
    """Columns, or functions of them. Each file has one value of each."""
    sort: Annotated[tuple[Annotated[str, _as_written(sorted_by)], ...], AfterValidator(_once)] = ()
    """Order of the rows in a file."""
    properties: Annotated[dict[str, str], BeforeValidator(_properties), AfterValidator(_allowed)] = Field(
        default_factory=dict
    )
    """Properties of the Iceberg table."""
    location: str | None = None
    """Folder of the files of a new table; a table that is there stays where it is. In an entry for several tables, it
    holds a folder for each of them, which is named by namespace and table."""
    format_version: Annotated[StrictInt, AfterValidator(_version)] = 2
    """Version of Iceberg's table format."""

    def place(self, entry: str, target: Sequence[str]) -> str | None:
        """Return where the files of a new table are to be: below ``location``, if the entry may match several tables.

        Args:
            entry: name of the entry in the source file.
            target: namespace and name of the published table.
        """
        if self.location is None or not is_pattern(entry):
            return self.location
        return "/".join((self.location.rstrip("/"), *target))

    def partitions(self) -> list[Transformed]:
        """Return ``partition``, read."""
        return [transformed(text) for text in self.partition]

    def order(self) -> list[Sorted]:
        """Return ``sort``, read."""
        return [sorted_by(text) for text in self.sort]
