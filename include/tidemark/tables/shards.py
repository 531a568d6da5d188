"""Shards: the tables that a target is folded from, read as one (docs/adr/0047).

The events of a shard are read as if its rows had the columns that the source file adds, and the shard's own name:
they are put in front of the members of each image. So all that follows takes them for columns of the source. Renames
and drops, and constants that rows got with an added column, concern one shard. They are settled here as well:
where an event stands among the changes of its shard says which names its image has, and which constants it lacks.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.first_additions import first_additions
from tidemark.ddl.names import ColumnNames
from tidemark.events import Column, Encoding, Shape
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables.plan import Shard
from tidemark.tables.schemas import columns_of
from tidemark.values.images import NamesByShape
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


class _Variant(NamedTuple):
    """How events of one shard, one stage and one shape are read."""

    shape_id: str
    """Equal for all that are read alike; the id in the change log where that is as if nothing had changed."""
    shape: Shape
    today: dict[str, str]
    """The names of its columns in the table."""
    filled: tuple[_Fill, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stages:
    """The changes of one shard that its images depend on: an event is in the stage of as many as are below it."""

    shard: Shard
    names: ColumnNames
    fills: tuple[_Fill, ...]
    places: tuple[str, ...]

    def variants(self, shape_id: str, shape: Shape, plain: Mapping[str, str]) -> Iterator[_Variant]:
        """Yield how a shape is read in each stage; ``plain``: names of its columns where nothing changed."""
        for end in (*self.places, None):
            epoch = sum(1 for each in self.names.renamings if end is None or each.position < end)
            named = {column.name: self.names.today(column.name, epoch) for column in shape.columns}
            filled = tuple(
                fill
                for fill in self.fills
                if end is not None and fill.position >= end and fill.name not in named.values()
            )
            today = {old: new for old, new in named.items() if new is not None}
            text = json.dumps([sorted(today.items()), [fill.column.name + fill.column.encoding for fill in filled]])
            own_id = (
                shape_id
                if not filled and today == plain
                else f"{shape_id}@{hashlib.sha256(text.encode()).hexdigest()[:16]}"
            )
            today |= {fill.column.name: fill.name for fill in filled}
            yield _Variant(own_id, Shape((*shape.columns, *(fill.column for fill in filled))), today, filled)


class Shards:
    """The shards of one table, and how their events are read."""

    def __init__(
        self,
        shards: Sequence[Shard],
        called: Mapping[str, str],
        shapes: Mapping[str, Mapping[str, Shape]],
        table: Table | None,
    ) -> None:
        """Prepare to read events.

        Args:
            shards: all of a table.
            called: columns that are published under other names, as ``Found.called``.
            shapes: by shard, the shapes of its events by their ids in the change log, in the order that columns have.
            table: as it is published; None if nothing is.
        """
        self._shards, self._own, self._log_shapes = shards, added_columns(shards), shapes
        every = [column.name for of_shard in shapes.values() for shape in of_shard.values() for column in shape.columns]
        self._spelled = list(dict.fromkeys([*every, *(name for name, _ in columns_of(table))]))
        self._staged = [_stages(shard, self._spelled, called) for shard in shards if _is_staged(shard)]
        self._plain = ColumnNames((), self._spelled, called)

    @property
    def is_uniform(self) -> bool:
        """Whether the shapes of the change log alone say how images are read, whatever their shard and position."""
        return not self._staged

    def shapes(self, occurring: Iterable[str] | None = None) -> tuple[dict[str, Shape], NamesByShape]:
        """Return the shapes of events as ``read`` gives them, and today's names of their columns.

        Args:
            occurring: ids of shapes that occur; None: all that may.
        """
        present = None if occurring is None else set(occurring)
        renames = self._staged or self._plain.touches(self._spelled)
        own = {column.name: column.name for column in self._own}
        found: dict[str, Shape] = {}
        names: dict[str, dict[str, str]] = {}
        for variant in self._variants():
            if present is None or variant.shape_id in present:
                found[variant.shape_id] = Shape((*self._own, *variant.shape.columns))
                if renames:
                    names[variant.shape_id] = own | variant.today
        return found, names

    def _variants(self) -> Iterator[_Variant]:
        staged = {stages.shard.object for stages in self._staged}
        for shard in self._shards:
            if shard.object not in staged:
                for shape_id, shape in self._log_shapes.get(shard.object, {}).items():
                    yield _Variant(shape_id, shape, self._plainly(shape), ())
        for stages in self._staged:
            for shape_id, shape in self._log_shapes.get(stages.shard.object, {}).items():
                yield from stages.variants(shape_id, shape, self._plainly(shape))

    def _plainly(self, shape: Shape) -> dict[str, str]:
        """Return the names that the columns of a shape have in the table where no shard changed them."""
        return {column.name: self._plain.published(column.name) for column in shape.columns}

    def read(self, events: DataFrame) -> DataFrame:
        """Return change events of the shards with the added columns in their images, and the ids of ``shapes``."""
        ids, beginnings, places = self._constants()
        part, shape = F.col("object"), F.col("shape")
        if places:
            below = F.try_element_at(_constant_map(places, "array<string>"), F.col("object"))
            stage = F.size(F.filter(below, lambda place: place < F.col("position"))).cast("string")
            part = F.when(below.isNotNull(), F.concat_ws(" ", "object", stage, "shape")).otherwise(part)
            shape = F.coalesce(F.try_element_at(_constant_map(ids), F.col("part of")), shape)
        beginning = F.try_element_at(_constant_map(beginnings), F.col("part of"))
        parted = events.withColumn("part of", part).withColumns({"beginning": beginning, "shape": shape})
        images = {side: _behind(F.col("beginning"), F.col(side)) for side in ("before", "after")}
        return parted.withColumns(images).drop("beginning", "part of")

    def _constants(self) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
        """Return what events are read by: ids, beginnings and places.

        Returns:
            Ids: of shapes, by shard, stage and shape in the change log.
            Beginnings: the texts that images begin with, by the same; by shard alone where it has no stages.
            Places: where the stages of a shard end, by shard.
        """
        ids: dict[str, str] = {}
        beginnings = {shard.object: _members(_own_members(shard)) for shard in self._shards}
        for stages in self._staged:
            own = _own_members(stages.shard)
            for shape_id, shape in self._log_shapes.get(stages.shard.object, {}).items():
                for stage, variant in enumerate(stages.variants(shape_id, shape, self._plainly(shape))):
                    part = f"{stages.shard.object} {stage} {shape_id}"
                    ids[part] = variant.shape_id
                    beginnings[part] = _members(own | {fill.column.name: fill.value for fill in variant.filled})
        return ids, beginnings, {stages.shard.object: list(stages.places) for stages in self._staged}


def _stages(shard: Shard, spelled: Sequence[str], called: Mapping[str, str]) -> _Stages:
    names = ColumnNames(shard.history.renamings, spelled, called)
    fills = tuple(_fills(shard, names))
    places = sorted({*(each.position for each in shard.history.renamings), *(each.position for each in fills)})
    return _Stages(shard=shard, names=names, fills=fills, places=tuple(places))


def _constant_map(values: Mapping[str, object], kind: str = "string") -> Expression:
    """Return a map of constants as one literal, which costs the same for any number of entries to make."""
    return F.from_json(F.lit(json.dumps(values)), f"map<string,{kind}>")


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


def added_columns(shards: Sequence[Shard]) -> tuple[Column, ...]:
    """Return the columns that the images of shards get: the shard's name, and what the source file adds."""
    added = dict.fromkeys(name for shard in shards for name in shard.added)
    return (Column(SHARD_COLUMN, "string"), *(Column(name, "string", Encoding.TEXT) for name in added))


def _is_staged(shard: Shard) -> bool:
    return bool(shard.history.renamings) or any(each.default is not None for each in shard.history.additions)


def _fills(shard: Shard, names: ColumnNames) -> Iterator[_Fill]:
    """Yield the constants that rows of a shard got, where the first statement that added the column had one."""
    for name, added in first_additions(shard.history.additions, names):
        fill = added.default
        if fill is None:
            continue
        encoding, value = Encoding.TEXT, json.dumps(fill.text, ensure_ascii=False)
        if fill.octets is not None:
            encoding, value = Encoding.BASE64, json.dumps(base64.b64encode(fill.octets).decode())
        elif added.type is not None and is_number(added.type) and _NUMBER.fullmatch(fill.text or ""):
            encoding, value = Encoding.PLAIN, str(fill.text)  # or its type would be guessed as text
        yield _Fill(added.position, Column(_FILLED + name, None, encoding), name, value)
