"""The page of what commands print with ``--json``, from the types of their answers."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from docs.reference.markdown import sentence, table

from tidemark.cli.format_list import FormatAnswer
from tidemark.cli.plan_text import PlanAnswer
from tidemark.cli.reconcile_command import ComparisonAnswer
from tidemark.cli.stage_commands import QualityAnswer
from tidemark.diagnosis.findings import Finding
from tidemark.queries.row_life_text import LifeEvent
from tidemark.queries.status_answer import Status

_ANSWERS: tuple[tuple[str, str, type], ...] = (
    ("tidemark status", "An object for each source.", Status),
    ("tidemark plan", "One object.", PlanAnswer),
    ("tidemark explain", "An object for each event of the row, in the order of position.", LifeEvent),
    ("tidemark quality", "An object for each table of the cut.", QualityAnswer),
    ("tidemark reconcile", "An object for each table.", ComparisonAnswer),
    ("tidemark doctor", "An object for each thing that was looked at.", Finding),
    ("tidemark formats", "An object for each format.", FormatAnswer),
)

_OTHER_ANSWERS = (
    (
        "tidemark sql --format json",
        "a row, by column: decimals, infinity and NaN as texts, bytes as Base64, times as ISO 8601",
    ),
    ("tidemark quarantine list --json", "a message: `reason`, `detail`, `object`, `file`, `place`"),
    ("tidemark quarantine show --json", "the same with `key` and `value`, Base64"),
    ("tidemark decode", "an event: [the canonical event](../architecture.md)"),
    ("tidemark report --json", "the [figures of the report](../operations/report.md)"),
    ("tidemark erase --json", "the [certificate](../operations/erase.md)"),
)
"""Answers that have no type of their own: a row of a table, an event, a document."""


def json_output() -> Iterator[str]:
    """Yield the parts of the page of what commands print with ``--json``."""
    yield "# JSON output"
    yield (
        "What commands print with `--json`, made from the types of their answers. Each answer is one object on a "
        "line of its own. Keys are stable: a later version may add keys, and takes none away without a word in the "
        "[changelog](../../CHANGELOG.md). Times are ISO 8601, UTC."
    )
    for command, what, answer in _ANSWERS:
        yield f"## {command}"
        yield what
        yield from _members(answer, set())
    yield "## Others"
    yield table(["command", "what it prints"], ([f"`{command}`", what] for command, what in _OTHER_ANSWERS))


def _members(answer: type, seen: set[type]) -> Iterator[str]:
    """Yield the table of an answer's keys, then the tables of the answers that stand in it."""
    seen.add(answer)
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(answer))).body
    texts = _field_texts(body.body if isinstance(body, ast.ClassDef) else [])
    hints = get_type_hints(answer)
    yield sentence(inspect.getdoc(answer) or "")
    yield table(["key", "value", "meaning"], ([f"`{name}`", _json_type(hints[name]), texts[name]] for name in hints))
    for inner in _answers_in(hints.values()):
        if inner not in seen:
            yield f"**{inner.__name__}**"
            yield from _members(inner, seen)


def _field_texts(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Return the texts that stand under the fields of a class; a field without one is told by its name."""
    found = {}
    for statement, after in itertools.pairwise([*body, ast.Pass()]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = str(ast.literal_eval(after.value)) if is_text else ""  # type: ignore[attr-defined]
            found[statement.target.id] = sentence(text)
    return found


def _answers_in(hints: Iterable[Any]) -> Iterator[type]:
    for hint in hints:
        if is_typeddict(hint):
            yield hint
        else:
            yield from _answers_in(get_args(hint))


def _json_type(hint: Any) -> str:
    """Return in words what a value of a type is in JSON."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(f"`{each.value}`" for each in hint)
    if is_typeddict(hint):
        return f"{hint.__name__}"
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return f"list of {_json_type(inner[0])}"
    if origin is dict or origin is Mapping:
        return f"names to {_json_type(inner[1])}"
    if inner:
        return " or ".join(_json_type(each) for each in inner)
    words: dict[Any, str] = {int: "number", str: "text", bool: "`true`, `false`", type(None): "null"}
    return words.get(hint, "any value")
