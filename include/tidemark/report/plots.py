"""The geometry of plots: numbers to places in a drawing, which the templates draw as SVG.

Drawings are 360 units wide, about the width of a phone, so that their text can be read there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from tidemark.report.words import compact

WIDTH, HEIGHT = 360.0, 150.0

LEFT, RIGHT, TOP, BOTTOM = 46.0, 8.0, 12.0, 20.0

_BAR = 34.0
"""Widest bar."""

_LEAST = 3.0
"""Least width of a part of a flow that is not zero."""

_NAMED = 8
"""About how many places of the horizontal axis are named."""

Words = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One place of a drawing, with what it says."""

    x: float
    y: float
    text: str
    width: float = 0.0
    height: float = 0.0
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawing over cuts: lines or bars, and the axes."""

    path: str
    """Of a line; empty for bars."""
    marks: tuple[Mark, ...]
    rows: tuple[Mark, ...]
    """Lines of the grid, with the numbers that they stand for."""
    columns: tuple[Mark, ...]
    """Names under the horizontal axis."""
    base: float
    """Where zero is, or the least number."""


def line(values: Sequence[float | None], names: Sequence[str], words: Words = compact) -> Plot:
    """Return a line through one number for each name; where a number is missing, the line goes on to the next one."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    low = 0.0 if low > 0 and low < high / 2 else low
    scale = _Scale.over(low, high)
    marks = tuple(
        Mark(x=_x(place, len(values)), y=scale.y(value), text=f"{name}: {words(value)}")
        for place, (name, value) in enumerate(zip(names, values, strict=True))
        if value is not None
    )
    path = " ".join(f"{'L' if place else 'M'}{mark.x:.1f} {mark.y:.1f}" for place, mark in enumerate(marks))
    return Plot(path=path, marks=marks, rows=scale.rows(words), columns=_columns(names), base=scale.y(scale.low))


def bars(series: Mapping[str, Sequence[int]], names: Sequence[str]) -> Plot:
    """Return one bar for each name, the series one on the other; negative numbers count as zero."""
    totals = [sum(max(0, values[place]) for values in series.values()) for place in range(len(names))]
    scale = _Scale.over(0.0, max(totals, default=0) or 1.0)
    width = min(_BAR, 0.8 * (WIDTH - LEFT - RIGHT) / max(1, len(names)))
    marks = []
    for place, name in enumerate(names):
        below = 0
        for kind, values in series.items():
            if values[place] <= 0:
                continue
            top, bottom = scale.y(below + values[place]), scale.y(below)
            below += values[place]
            text = f"{name}: {values[place]:,} {kind}"
            x = _x(place, len(names)) - width / 2
            marks.append(Mark(x=x, y=top, width=width, height=bottom - top, kind=kind.lower(), text=text))
    return Plot(path="", marks=tuple(marks), rows=scale.rows(compact), columns=_columns(names), base=scale.y(0.0))


def spark(values: Sequence[float | None], width: float = 96.0, height: float = 20.0) -> str:
    """Return the path of a line without axes; empty if there are fewer than two numbers."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return ""
    low, high = min(value for _, value in known), max(value for _, value in known)
    step = (width - 4) / max(1, len(values) - 1)
    reach = high - low or 1.0
    points = [(2 + place * step, height - 3 - (height - 6) * (value - low) / reach) for place, value in known]
    return " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    low: float
    high: float
    step: float

    @classmethod
    def over(cls, low: float, high: float) -> _Scale:
        """Return a scale of about three steps that has room for both numbers."""
        if high <= low:
            low, high = (low - 1, high + 1) if low else (0.0, 1.0)
        rough = (high - low) / 3
        unit = 10.0 ** floor(log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough * 0.999)
        step = max(step, 1.0) if high - low >= 1 else step
        first = floor(low / step + 1e-9) * step
        last = first
        while last < high - step * 1e-6:
            last += step
        return cls(low=first, high=last, step=step)

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - self.low) / (self.high - self.low))

    def rows(self, words: Words) -> tuple[Mark, ...]:
        count = round((self.high - self.low) / self.step)
        levels = [self.low + self.step * place for place in range(count + 1)]
        return tuple(Mark(x=LEFT, y=self.y(level), text=words(level)) for level in levels)


def _x(place: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / max(1, count)


def _columns(names: Sequence[str]) -> tuple[Mark, ...]:
    every = max(1, -(-len(names) // _NAMED))
    last = len(names) - 1
    return tuple(
        Mark(x=_x(place, len(names)), y=HEIGHT - 6, text=name)
        for place, name in enumerate(names)
        if (last - place) % every == 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """What flows from one part of a level to the level below: a closed path."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The ledger as a flow from top to bottom."""

    levels: tuple[tuple[Mark, ...], ...]
    bands: tuple[Band, ...]
    height: float


_THICK, _APART = 20.0, 58.0


def flow(messages: Mapping[str, int], events: Mapping[str, int], published: int | None) -> Flow:
    """Return the flow of messages and events to the published rows.

    Args:
        messages: ``landed``, then what it is the sum of; empty if there is nothing to say of messages.
        events: ``events``, then what it is the sum of.
        published: rows that readers see in the end; None if nothing was published.
    """
    levels: list[tuple[Mark, ...]] = []
    bands: list[Band] = []
    top = 4.0
    if messages.get("landed", 0) > 0:
        levels, top = [_whole("landed", messages["landed"], top)], top + _APART
        levels.append(_parts(messages, top))
        bands += [_band(_under(levels[0][0], part), part) for part in levels[1]]
        top += _APART
    if events.get("events", 0) > 0:
        whole = _whole("events", events["events"], top)
        decoded = [part for part in levels[1] if part.kind == "decoded"] if levels else []
        bands += [_band(part, whole[0]) for part in decoded]
        levels.append(whole)
        top += _APART
        parts = _parts(events, top)
        bands += [_band(_under(whole[0], part), part) for part in parts]
        levels.append(parts)
        top += _APART
        applied = next((part for part in parts if part.kind == "applied"), None)
        if applied is not None and published is not None:
            end = _whole("rows published", published, top, kind="published")
            bands.append(_band(applied, end[0], kind="applied"))
            levels.append(end)
            top += _APART
    return Flow(levels=tuple(levels), bands=tuple(bands), height=max(0.0, top - _APART + _THICK + 18))


def _whole(name: str, count: int, y: float, *, kind: str = "whole") -> tuple[Mark, ...]:
    return (Mark(x=0.0, y=y, width=WIDTH, height=_THICK, kind=kind, text=f"{count:,} {name}"),)


def _parts(counts: Mapping[str, int], y: float) -> tuple[Mark, ...]:
    """Return the parts of a level in proportion; a small part is wide enough to be seen."""
    parts = [(name, count) for name, count in list(counts.items())[1:] if count > 0]
    total = sum(count for _, count in parts) or 1
    widths = [max(_LEAST, WIDTH * count / total) for _, count in parts]
    shrunk = WIDTH / sum(widths) if widths else 1.0
    x, marks = 0.0, []
    for (name, count), width in zip(parts, widths, strict=True):
        marks.append(Mark(x=x, y=y, width=width * shrunk, height=_THICK, kind=name, text=f"{count:,} {name}"))
        x += width * shrunk
    return tuple(marks)


def _under(whole: Mark, part: Mark) -> Mark:
    """Return the place in a whole level that is right above a part of the level below."""
    return Mark(x=part.x, y=whole.y, width=part.width, height=whole.height, text="")


def _band(upper: Mark, lower: Mark, *, kind: str | None = None) -> Band:
    top, bottom = upper.y + upper.height, lower.y
    middle = (top + bottom) / 2
    left, right = (upper.x, lower.x), (upper.x + upper.width, lower.x + lower.width)
    bent = f"{middle:.1f}"
    path = (
        f"M{left[0]:.1f} {top:.1f} C{left[0]:.1f} {bent} {left[1]:.1f} {bent} {left[1]:.1f} {bottom:.1f} "
        f"L{right[1]:.1f} {bottom:.1f} C{right[1]:.1f} {bent} {right[0]:.1f} {bent} {right[0]:.1f} {top:.1f} Z"
    )
    return Band(path=path, kind=kind or lower.kind)
