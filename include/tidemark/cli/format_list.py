"""``tidemark formats``: what each format is, from the modules of the formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import msgspec
from rich.text import Text

from tidemark import formats
from tidemark.cli.layout import folded
from tidemark.cli.printing import print_lines, width


class FormatOption(TypedDict):
    """An option of a format."""

    type: str
    default: Any
    meaning: str


class FormatAnswer(TypedDict):
    """A format."""

    format: str
    tools: list[str]
    """Tools that write it."""
    cannot_tell: list[str]
    """What its messages do not say."""
    options: dict[str, FormatOption]
    """By name."""


def described(name: str) -> FormatAnswer:
    """Return what a format is, ready for JSON.

    Raises:
        UnknownNameError: there is no such format.
    """
    module = formats.resolve(name)
    schema = module.Options.model_json_schema()["properties"]
    return {
        "format": name,
        "tools": list(module.TOOLS),
        "cannot_tell": list(module.UNTOLD),
        "options": {
            option: {"type": _type(field), "default": field.get("default"), "meaning": _plain(field["description"])}
            for option, field in schema.items()
        },
    }


def _type(field: dict[str, Any]) -> str:
    """Return the type of an option in a word, or the values that it may have."""
    kinds = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    return " or ".join(word for kind in kinds for word in kind.get("enum") or [kind.get("const") or kind["type"]])


def _plain(text: str) -> str:
    """Return a docstring as one line of plain text."""
    return re.sub(r"\s+", " ", text).replace("``", "`").strip()


def print_formats(names: Sequence[str] | None, *, as_json: bool) -> None:
    """Print what formats are, all if none is named: for people, or one object a line.

    Raises:
        UnknownNameError: there is no such format.
    """
    found = [described(name) for name in names or formats.names()]
    if as_json:
        print_lines([Text(msgspec.json.encode(entry).decode()) for entry in found])
    else:
        print_lines([Text(line) for line in as_lines(found, width())])


def as_lines(found: Sequence[FormatAnswer], width: int | None) -> Iterator[str]:
    """Yield lines about formats for people, broken between words where they are longer than ``width``."""
    for number, entry in enumerate(found):
        if number:
            yield ""
        for line in _lines(entry):
            yield from folded(line, width, indent=2)


def _lines(found: FormatAnswer) -> Iterator[str]:
    yield found["format"]
    yield f"  tools: {', '.join(found['tools'])}"
    yield f"  cannot tell: {'; '.join(found['cannot_tell'])}"
    for name, option in found["options"].items():
        default = "none" if option["default"] is None else _yaml(option["default"])
        yield f"  option {name} ({option['type']}, default {default}): {option['meaning']}"


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
