"""Shards: the tables that a target is folded from, read as one (docs/adr/0047).

The events of a shard are read as if its rows had the columns that the source file adds, and the shard's own name:
they are put in front of the members of each image. So all that follows takes them for columns of the source. Renames
and drops, and constants that rows got with an added column, are those of one shard. They are settled here as well:
where an event stands among the changes of its shard says which names its image has, and which constants it lacks.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.ddl.names import ColumnNames
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError, UnreadableValueError
from tidemark.events import Column, Encoding, Shape
from tidemark.lake.properties import SHARDS_PROPERTY
from tidemark.sources.model import Table as Promised
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables.plan import Found, Shard
from tidemark.tables.schemas import columns_of
from tidemark.values.images import NamesByShape
from tidemark.values.plain import read_value
from tidemark.values.types import is_number

_FILLED = "_cdc_filled "
"""Begins the names that constants of added columns have in images."""


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")

_LONGEST = (1 << 31) - 1


class _Fill(NamedTuple):
    """A constant that the rows of a shard got when a column was added."""

    position: str
    column: Column
    """As it stands in images: its name there, type and encoding."""
    name: str
    """Today's name of the column."""
    value: str
    """As JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stages:
    """The changes of one shard that its images depend on: an event is in the stage of as many as are below it."""

    number: int
    """Of the shard, which tells its shapes from those of others."""
    shard: Shard
    names: ColumnNames
    fills: tuple[_Fill, ...]
    places: tuple[str, ...]

    def shapes(self, shape_id: str, shape: Shape) -> Iterator[tuple[int, str, Shape, dict[str, str], list[_Fill]]]:
        """Yield for each stage its number, the id of the shape there, the shape, today's names, and what is filled."""
        for stage in range(len(self.places) + 1):
            end = self.places[stage] if stage < len(self.places) else None
            epoch = sum(1 for each in self.names.renamings if end is None or each.position < end)
            named = {column.name: self.names.today(column.name, epoch) for column in shape.columns}
            filled = [
                fill
                for fill in self.fills
                if end is not None and fill.position >= end and fill.name not in named.values()
            ]
            today = {old: new for old, new in named.items() if new is not None}
            today |= {fill.column.name: fill.name for fill in filled}
            columns = (*shape.columns, *(fill.column for fill in filled))
            yield stage, f"{shape_id}@{self.number}.{stage}", Shape(columns), today, filled


class Shards:
    """The shards of one table, and how their events are read."""

    def __init__(
        self, shards: Sequence[Shard], called: Mapping[str, str], shapes: Mapping[str, Shape], table: Table | None
    ) -> None:
        """Prepare to read events.

        Args:
            shards: all of a table.
            called: columns that are published under other names, as ``Found.called``.
            shapes: by the ids that the change log has.
            table: as it is published; None if nothing is.
        """
        self._shards, self._called, self._own = shards, called, _added_columns(shards)
        stored = (name for name, _ in columns_of(table))
        self._spelled = [*(column.name for shape in shapes.values() for column in shape.columns), *stored]
        self._log_shapes = shapes
        staged = [(number, shard) for number, shard in enumerate(shards) if _is_staged(shard)]
        self._staged = [self._stages(number, shard) for number, shard in staged]
        self._plain = ColumnNames((), self._spelled, called)

    def _stages(self, number: int, shard: Shard) -> _Stages:
        names = ColumnNames(shard.history.renamings, self._spelled, self._called)
        fills = tuple(_fills(shard, names))
        places = sorted({*(each.position for each in shard.history.renamings), *(each.position for each in fills)})
        return _Stages(number=number, shard=shard, names=names, fills=fills, places=tuple(places))

    @property
    def is_uniform(self) -> bool:
        """Whether the shapes of the change log tell how images are read, whatever their shard and position."""
        return not self._staged

    def shapes(self, occurring: Iterable[str] | None = None) -> tuple[dict[str, Shape], NamesByShape]:
        """Return the shapes of events as ``read`` gives them, and today's names of their columns.

        Args:
            occurring: ids of shapes that occur; None: all that may.
        """
        found: dict[str, Shape] = {}
        names: dict[str, dict[str, str]] = {}
        renames = self._staged or self._plain.touches(self._spelled)
        own = {column.name: column.name for column in self._own}

        def add(shape_id: str, shape: Shape, today: dict[str, str]) -> None:
            if occurring is None or shape_id in present:
                found[shape_id] = Shape((*self._own, *shape.columns))
                if renames:
                    names[shape_id] = own | today

        present = set(occurring or ())
        for shape_id, shape in self._log_shapes.items():
            add(shape_id, shape, {column.name: self._plain.published(column.name) for column in shape.columns})
            for stages in self._staged:
                for _, staged_id, staged, today, _ in stages.shapes(shape_id, shape):
                    add(staged_id, staged, today)
        return found, names

    def read(self, events: DataFrame) -> DataFrame:
        """Return change events of the shards with the added columns in their images, and the ids of ``shapes``."""
        of_shard = F.lit(None).cast("string")
        for stages in self._staged:
            stage = F.lit(0)
            for place in stages.places:
                stage = stage + F.when(F.col("position") > place, 1).otherwise(0)
            suffix = F.concat(F.lit(f"@{stages.number}."), stage.cast("string"))
            of_shard = F.when(F.col("object") == stages.shard.object, suffix).otherwise(of_shard)
        shape = F.concat("shape", F.coalesce(of_shard, F.lit("")))
        beginning = F.try_element_at(_constant_map(self._beginnings()), F.col("beginning of"))
        part_of = F.when(of_shard.isNotNull(), F.concat("object", F.lit(" "), shape)).otherwise(F.col("object"))
        staged = events.withColumn("beginning of", part_of).withColumn("beginning", beginning)
        images = {side: _behind(F.col("beginning"), F.col(side)) for side in ("before", "after")}
        return staged.withColumns({**images, "shape": shape}).drop("beginning", "beginning of")

    def _beginnings(self) -> dict[str, str]:
        """Return the text that images begin with: by shard, and where constants are filled in, by shape as well."""
        found = {}
        for shard in self._shards:
            found[shard.object] = _members(_own_members(shard))
        for stages in self._staged:
            shard = stages.shard
            own = _own_members(shard)
            for shape_id, shape in self._log_shapes.items():
                for _, staged_id, _, _, filled in stages.shapes(shape_id, shape):
                    values = own | {fill.column.name: fill.value for fill in filled}
                    found[f"{shard.object} {staged_id}"] = _members(values)
        return found


def _constant_map(values: Mapping[str, str]) -> Expression:
    """Return a map of constants as one literal, which costs the same for any number of entries to make."""
    return F.from_json(F.lit(json.dumps(values)), "map<string,string>")


def _own_members(shard: Shard) -> dict[str, str]:
    """Return what each row of a shard has, as JSON."""
    own = {SHARD_COLUMN: shard.object, **shard.added}
    return {name: json.dumps(value, ensure_ascii=False) for name, value in own.items()}


def _members(values: Mapping[str, str]) -> str:
    """Return the beginning of a JSON object that has some members, up to the next member; values are JSON."""
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in values.items())


def _behind(beginning: Expression, image: Expression) -> Expression:
    """Return an image, a JSON object, with further members in front of its own; null for null."""
    rest = F.ltrim(F.substring(image, 2, _LONGEST))
    return F.when(F.startswith(rest, F.lit("}")), F.concat(beginning, rest)).otherwise(
        F.concat(beginning, F.lit(","), rest)
    )


def _added_columns(shards: Sequence[Shard]) -> tuple[Column, ...]:
    added = dict.fromkeys(name for shard in shards for name in shard.added)
    return (Column(SHARD_COLUMN, "string"), *(Column(name, "string", Encoding.TEXT) for name in added))


def _is_staged(shard: Shard) -> bool:
    return bool(shard.history.renamings) or any(each.default is not None for each in shard.history.additions)


def _fills(shard: Shard, names: ColumnNames) -> Iterator[_Fill]:
    """Yield the constants that rows of a shard got, the first for each column."""
    seen = set[str]()
    for added in shard.history.additions:
        name = names.today(added.name, names.epoch(added.position, after=True))
        if added.default is None or name is None or name in seen:
            continue
        seen.add(name)
        fill = added.default
        encoding, value = Encoding.TEXT, json.dumps(fill.text, ensure_ascii=False)
        if fill.octets is not None:
            encoding, value = Encoding.BASE64, json.dumps(base64.b64encode(fill.octets).decode())
        elif added.type is not None and is_number(added.type) and _NUMBER.fullmatch(fill.text or ""):
            encoding, value = Encoding.PLAIN, str(fill.text)  # or its type would be guessed as that of a text
        yield _Fill(added.position, Column(_FILLED + name, None, encoding), name, value)


def together(found: Found) -> SchemaHistory:
    """Return the schema changes of all shards that the table as a whole follows, with the names that columns have."""
    additions: list[Addition] = []
    emptyings, notes = [], []
    spelled = [column.name for shape in found.shapes.values() for column in shape.columns]
    for shard in found.shards:
        history = shard.history
        names = ColumnNames(history.renamings, [*spelled, *(each.name for each in history.additions)])
        for each in history.additions:
            name = names.today(each.name, names.epoch(each.position, after=True))
            additions += [each._replace(name=name, default=None)] if name is not None else []
        emptyings += [each._replace(shard=shard.object) for each in history.emptyings]
        notes += [note._replace(text=f"{shard.object}: {note.text}") for note in history.notes]
    return SchemaHistory((), tuple(additions), tuple(emptyings), tuple(dict.fromkeys(notes)))


def recorded(table: Table | None) -> dict[str, dict[str, str]]:
    """Return the shards that a table was built from, each with the columns that were added to it; empty for none."""
    told: dict[str, dict[str, str]] = (
        json.loads(table.properties.get(SHARDS_PROPERTY, "{}")) if table is not None else {}
    )
    return told


def refuse_onward(found: Found, table: Table) -> None:
    """Refuse to go on from rows that the shards' changes reach back to.

    Raises:
        RebuildNeededError: other tables belong to it than it was built from, or a shard renamed or dropped a column,
            or added one with a constant: rows of the others keep theirs.
    """
    known = recorded(table)
    joined = [shard.object for shard in found.shards if shard.since <= found.after and shard.object not in known]
    left = sorted(known.keys() - {shard.object for shard in found.shards})
    for shard in found.shards:
        if known.get(shard.object, shard.added) != shard.added:
            raise RebuildNeededError(f"{shard.object}: other columns, or other values, are added to it than before")
    if joined or left:
        names = ", ".join([*joined, *left])
        raise RebuildNeededError(f"{found.object}: other tables are folded into it than before: {names}")
    for shard in found.shards:
        for renaming in shard.history.renamings:
            if renaming.batch > found.after:
                raise RebuildNeededError(
                    f"{shard.object}: column {renaming.old!r} was renamed or dropped in this shard"
                )
        for addition in shard.history.additions:
            if addition.batch > found.after and addition.default is not None:
                raise RebuildNeededError(
                    f"{shard.object}: column {addition.name!r} was added to this shard with a value"
                )


def refuse_unfit(found: Found, promised: Promised) -> None:
    """Refuse added columns that the source has too, and values that their types do not hold.

    Raises:
        IncompatibleSchemaError: a column has to be called otherwise, or given another type.
    """
    own = {column.name for column in _added_columns(found.shards)}
    told = {column.name.casefold() for shape in found.shapes.values() for column in shape.columns[len(own) :]}
    for name in own:
        if name.casefold() in told:
            raise IncompatibleSchemaError(
                f"{found.object}: `add` gives a column {name!r}, and the source has a column of that name: "
                "choose another"
            )
    for shard in found.shards:
        for name, value in shard.added.items():
            kind = promised.columns.get(name, "string")
            try:
                read_value(json.dumps(value).encode(), Column(name, kind, Encoding.TEXT))
            except UnreadableValueError as error:
                raise IncompatibleSchemaError(f"{shard.object}: `add` gives it {name} = {value!r}: {error}") from error


def tells_apart(found: Found, key: Iterable[str]) -> bool:
    """Return whether the added columns of a key have other values in each shard: no two shards can share a key."""
    wanted = list(key)
    told = {tuple(shard.added.get(name) for name in wanted) for shard in found.shards}
    return len(told) == len(found.shards)
