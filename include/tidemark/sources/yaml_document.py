"""Reading YAML files that people write, with the place of every key and value, so that an error can point at it.

A file gives text, numbers, booleans, null, lists and mappings, and nothing else. Tags are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, Union

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StringMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BYTES = 1024 * 1024

MAX_DEPTH = 24

MAX_VALUES = 100_000
"""Limits of a file. A broken or hostile file, for example with aliases of aliases, so ends in a clear error."""

Value: TypeAlias = Union[str, int, float, bool, list["Value"], dict[str, "Value"], None]  # noqa: UP007 - names itself

Location: TypeAlias = tuple[str | int, ...]
"""The path to a value from the top: keys, and list indexes from 0."""

Place: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

_TAG = "tag:yaml.org,2002:"

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What no file and no message can hold. In JSON two of them make a character; in YAML they do not."""

_KINDS = frozenset({"map", "seq", "str", "null", "bool", "int", "float", "timestamp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in one file, with its place."""

    path: Path
    line: int
    column: int
    key: str
    """Path to the value (``tables.shop.orders.key[0]``); empty if the problem is the file as a whole."""
    message: str
    text: str
    """The line that has the problem."""

    def __str__(self) -> str:
        """Return ``file:line:column: key: message``, then the line, with a caret under the place."""
        where = f"{self.path}:{self.line}:{self.column}: "
        what = f"{self.key}: {self.message}" if self.key else self.message
        margin = f"  {self.line} | "
        caret = " " * (len(margin) + self.column - 1) + "^"
        return f"{where}{what}\n{margin}{self.text}\n{caret}" if self.text.strip() else f"{where}{what}"


class DocumentError(Exception):
    """The file is no readable YAML. The error has the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The values of a file and the places of its keys and values."""

    path: Path
    lines: list[str]
    value: Value = None
    keys: dict[Location, Place] = field(default_factory=dict)
    values: dict[Location, Place] = field(default_factory=dict)

    def problem(self, location: Location, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem that points at a value, or at its key; if it is missing, at the nearest key above it."""
        place = (self.keys if at_key else self.values).get(location)
        above = location
        while place is None and above:
            above = above[:-1]
            place = self.keys.get(above) or self.values.get(above)
        return self.problem_at(place or (1, 1), message, key=dotted(location))

    def problem_at(self, place: Place, message: str, *, key: str = "") -> Problem:
        """Return a problem that points at a line and a column."""
        line, column = place
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Problem(path=self.path, line=line, column=column, key=key, message=message, text=text)


def dotted(location: Location) -> str:
    """Return a location as people write it: ``tables.shop.orders.checks[0].type``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def read_document(path: Path) -> Document:
    """Read one YAML document.

    Raises:
        DocumentError: the file is unreadable, larger than 1 MiB, not UTF-8 or not YAML 1.2, or has two documents, a
            key twice, or a tag.
    """
    text = _read_text(path)
    document = Document(path=path, lines=text.splitlines())
    if problem := _other_version(document):
        raise DocumentError(problem)
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise DocumentError(_syntax_problem(document, error)) from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise DocumentError(document.problem_at((1, 1), f"not readable as YAML: {_first_line(error)}")) from error
    reader = _Reader(document)
    value = reader.read(node, ()) if node else None
    return Document(path=path, lines=document.lines, value=value, keys=document.keys, values=document.values)


def _other_version(document: Document) -> Problem | None:
    """Return the problem of a directive for another YAML than 1.2; directives stand before all else."""
    for number, line in enumerate(document.lines, start=1):
        if line.startswith("%YAML") and line.split()[1:2] != ["1.2"]:
            text = "source files are YAML 1.2. In 1.1, yes and on are no texts, and 010 is 8. Leave the line out."
            return document.problem_at((number, 1), text)
        if line.strip() and not line.startswith(("%", "#")):
            return None
    return None


def _read_text(path: Path) -> str:
    nowhere = Document(path=path, lines=[])
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentError(nowhere.problem_at((1, 1), f"cannot be read: {error.strerror}")) from error
    if len(content) > MAX_BYTES:
        raise DocumentError(nowhere.problem_at((1, 1), f"larger than {MAX_BYTES} bytes, the limit of a source file"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(nowhere.problem_at((line, 1), "not UTF-8 text: save the file as UTF-8")) from error


def _syntax_problem(document: Document, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = error.problem or error.context or "broken"
    message = f"{error.context} {problem}" if problem.startswith("but ") else problem
    if "cannot start any token" in problem:
        message += ". Indent by spaces" if "'\\t'" in problem else ". Put the value in quotes"
    return document.problem_at(place, f"not YAML: {message}.")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


class _Reader:
    """Turns YAML nodes into plain values, and notes their places in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0

    def read(self, node: Node, location: Location) -> Value:
        self._count += 1
        self._document.values.setdefault(location, _place(node))
        if self._count > MAX_VALUES or len(location) > MAX_DEPTH:
            raise self._error(node, (), f"more than {MAX_VALUES} values or {MAX_DEPTH} levels, aliases followed")
        if (kind := str(node.tag)).removeprefix(_TAG) not in _KINDS:
            raise self._error(node, location, f"tag {kind} is not allowed: write plain text, numbers, lists, mappings.")
        self._refuse_half_characters(node, location)
        if isinstance(node, MappingNode):
            return self._mapping(node, location)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*location, index)) for index, item in enumerate(node.value)]
        return _scalar(str(node.tag).removeprefix(_TAG), str(node.value))

    def _mapping(self, node: MappingNode, location: Location) -> Value:
        mapping: dict[str, Value] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or str(key.tag) == f"{_TAG}merge":
                raise self._error(key, location, "a key must be plain text.")
            self._refuse_half_characters(key, location)
            below = (*location, key.value)
            if key.value in mapping:
                first = self._document.keys[below][0]
                raise self._error(key, below, f"given twice, first in line {first}.")
            self._document.keys[below] = _place(key)
            mapping[key.value] = self.read(value, below)
        return mapping

    def _refuse_half_characters(self, node: Node, location: Location) -> None:
        if isinstance(node, ScalarNode) and _SURROGATE.search(node.value):
            raise self._error(node, location, "a \\u escape of D800 to DFFF is half of a character: write \\U0001F600.")

    def _error(self, node: Node, location: Location, message: str) -> DocumentError:
        return DocumentError(self._document.problem_at(_place(node), message, key=dotted(location)))


def _scalar(kind: str, text: str) -> Value:
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text, 0) if text.lstrip("+-")[:2].lower() in {"0x", "0o"} else int(text)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text
    return text


def _place(node: Node) -> Place:
    mark: StringMark = node.start_mark
    return mark.line + 1, mark.column + 1
