"""Validation errors of a model, put into plain words, with their places in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tidemark.sources.fields import CUT_TYPE, NOT_SHOWN
from tidemark.sources.yaml_document import Document, Location, Problem, Value
from tidemark.text import suggestion

_EXPECTED: Mapping[str, str] = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping (key: value)",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "list_type": "must be a list, as in [id]",
    "model_attributes_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "set_type": "must be a list, as in [id]",
    "string_type": "must be text",
    "tuple_type": "must be a list, as in [id]",
}
"""Pydantic's type of error -> what the file must hold instead."""

_URL = re.compile(r"[^\s'\"]*://[^\s'\"]*")

_AT_KEY = frozenset({"extra_forbidden", "unknown_key"})


def explain(document: Document, error: ValidationError, models: Mapping[Location, type[BaseModel]]) -> list[Problem]:
    """Return the errors of a model as problems of the file, in the order of the lines.

    Args:
        document: the file.
        error: what the model raised.
        models: location -> the model there, whose fields are the allowed keys. ``"*"`` in a location stands for any
            key.
    """
    problems = [
        _problem(document, details, models) for details in error.errors() if details["type"] != "unknown_format"
    ]
    cut = {problem.line for problem in problems if CUT_TYPE in problem.message}
    # YAML made a key of the rest of a type. Another problem of the same line asks for quotes around the type.
    remaining = [problem for problem in problems if problem.line not in cut or not problem.key.endswith(")")]
    return sorted(remaining, key=lambda problem: (problem.line, problem.column))


def _problem(document: Document, details: ErrorDetails, models: Mapping[Location, type[BaseModel]]) -> Problem:
    kind, location = details["type"], details["loc"]
    if location and location[-1] == "[key]":
        return document.problem(location[:-1], _message(details), at_key=True)
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1], models)
        problem = document.problem(location, f"unknown key.{suggestion(str(location[-1]), known)}", at_key=True)
        return _without_urls(problem)
    problem = _without_urls(document.problem(location, _message(details), at_key=kind in _AT_KEY))
    return replace(problem, text="") if kind == NOT_SHOWN else problem


def _without_urls(problem: Problem) -> Problem:
    """Return the problem; where the file has a URL in ``reconcile``, without it: it may have a password."""
    if not problem.key.startswith("reconcile") or not ("://" in problem.text or "://" in problem.message):
        return problem
    return replace(problem, text="", message=_URL.sub("(a URL)", problem.message))


def _known_keys(location: Location, models: Mapping[Location, type[BaseModel]]) -> list[str]:
    for pattern, model in models.items():
        pairs = zip(pattern, location, strict=False)
        if len(pattern) == len(location) and all(part in {"*", key} for part, key in pairs):
            return [field.alias or name for name, field in model.model_fields.items()]
    return []


def _message(details: ErrorDetails) -> str:
    kind, given = details["type"], details["input"]
    if expected := _EXPECTED.get(kind):
        return f"{expected}, not {_shown(given)}."
    if kind == "missing":
        return "missing, and there is no default."
    if kind in {"enum", "literal_error"}:
        allowed = re.findall(r"'([^']*)'", details["ctx"]["expected"])
        return f"unknown value {_shown(given)}.{suggestion(str(given), allowed)}"
    text = details["msg"].removeprefix("Value error, ")
    if kind in {"tidemark", NOT_SHOWN, "unknown_key", "missing_key", "value_error"}:
        return text
    return f"{text[:1].lower()}{text[1:]}, not {_shown(given)}."


def _shown(value: Value) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"'{value}'"
        case list():
            return "a list"
    return "a mapping"
