"""Values of a source file that have a grammar: landing path, target name, column type, list of names.

Each function takes the value of the file and returns the value that the stages use. It raises an error that says what
is wrong and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import LiteralString
from zoneinfo import ZoneInfo, available_timezones

from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from tidemark.dumps.time_fields import lacking
from tidemark.errors import ConfigurationError
from tidemark.sources import routes
from tidemark.text import nearest, suggestion
from tidemark.values.iso8601 import moment

RESERVED_NAMES = frozenset({"raw", "changelog", "quarantine", "ledger", "state", "rebuild", "default"})
"""Namespaces of Tidemark's own tables, and a namespace that catalogs reserve."""

COLUMN_TYPES = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary")
"""Iceberg types of one word that a column can have, beside ``decimal(p, s)``. Spark can read and write all of them."""

LANDING_FIELDS = "YmdHMSj"
"""``strftime`` letters that a landing path may have. They stand for parts of the interval's start."""

CUT_TYPE = "ends at its comma"
"""In the message about a type that YAML cut, as it stands in braces without quotes."""

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")

_CONNECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")

_KEYS_OF_STORE = re.compile(
    r"s3://[^/]*@|[a-z][a-z0-9+.-]*://[^/@]*:[^/]*@|(?:abfss?|az)://.*[?&](?:client_secret|sig)="
    r"|(?!file:)[a-z][a-z0-9+.-]*://.*[?&][a-z_-]*(?:secret|token|(?:access|account)_?key)[a-z_-]*=",
    re.IGNORECASE,
)
"""Begins an address with a key or a password in it. A name alone is none: ``abfs://container@...``, ``hdfs://user@...``.

Elsewhere than in Azure's addresses ``sig`` is a part of a name, behind a wildcard: ``s3://dumps/a?sig=1``.
"""

_TARGET_TEXT = re.compile(r"[A-Za-z0-9_.]*")

_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")

_TYPES_OF_DATABASES = {
    "bigint": "long",
    "blob": "binary",
    "bool": "boolean",
    "char": "string",
    "datetime": "timestamp",
    "decimal": "decimal(38, 18)",
    "integer": "int",
    "json": "string",
    "number": "decimal(38, 0)",
    "numeric": "decimal(38, 18)",
    "real": "float",
    "smallint": "int",
    "text": "string",
    "time": "string",
    "tinyint": "int",
    "uuid": "string",
    "varbinary": "binary",
    "varchar": "string",
}


NOT_SHOWN: LiteralString = "not_shown"
"""Type of an error in a value that may be a secret: its line is not shown."""


_OWN: Mapping[str, LiteralString] = {kind: kind for kind in ("tidemark", "unknown_key", "missing_key", NOT_SHOWN)}
"""Types of the errors that Pydantic does not know, because they are made here."""


def wrong(message: str) -> PydanticCustomError:
    """Return an error with exactly this message: braces in it are no placeholders."""
    return PydanticCustomError("tidemark", "{message}", {"message": message})


def error_at(place: tuple[str | int, ...], message: str, kind: LiteralString = "tidemark") -> InitErrorDetails:
    """Return an error with exactly this message at a place in a model, for ``ValidationError.from_exception_data``."""
    return InitErrorDetails(type=PydanticCustomError(kind, "{message}", {"message": message}), loc=place, input=None)


def again(found: ErrorDetails) -> InitErrorDetails:
    """Return an error that a model found, to be raised once more beside others."""
    context = found.get("ctx", {})
    kind = found["type"]
    error_type = PydanticCustomError(_OWN[kind], "{message}", context) if kind in _OWN else kind
    return InitErrorDetails(type=error_type, loc=found["loc"], input=found["input"], ctx=context)


def source_name(text: str) -> str:
    """Return the name of a source, which must be valid as a namespace, as part of a DAG id and as a Python name."""
    if not _IDENTIFIER.fullmatch(text):
        raise wrong(f"'{text}' is no name: a small letter, then up to 62 small letters, digits or underscores.")
    if text in RESERVED_NAMES:
        raise wrong(f"'{text}' is reserved, with {', '.join(sorted(RESERVED_NAMES - {text}))}. Choose another name.")
    return text


def column_type(text: str) -> str:
    """Return an Iceberg type string as Iceberg writes it: ``decimal(18,2)`` becomes ``decimal(18, 2)``."""
    if text in COLUMN_TYPES:
        return text
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision}, {scale})"
        raise wrong(f"'{text}' does not exist: decimal(p, s) needs 1 <= p <= 38 and s <= p.")
    if re.fullmatch(r"decimal\(\s*[0-9]+\s*", text):  # YAML ends a value in braces at a comma
        raise wrong(f"'{text}' {CUT_TYPE}: put the type in quotes, \"decimal(10, 2)\".")
    word = text.lower().partition("(")[0].strip()
    if same := _TYPES_OF_DATABASES.get(word):
        raise wrong(f"unknown type '{text}'. Did you mean '{same}'? Allowed: {', '.join(COLUMN_TYPES)}, decimal(p, s).")
    raise wrong(f"unknown type '{text}'.{suggestion(word, COLUMN_TYPES)[:-1]}, decimal(p, s).")


def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of names, in which no name may occur twice."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise wrong(f"'{name}' stands in the list twice.")
    return names


def timezone(name: str) -> str:
    """Return the name of a time zone, which must be in the IANA database: ``Europe/Berlin``."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = nearest(name, available_timezones())
        allowed = "names of the IANA database, such as Europe/Berlin, and UTC"
        raise wrong(f"unknown time zone '{name}'.{hint} Allowed: {allowed}.") from None
    return name


def start_date(given: object, zone: tzinfo = UTC) -> datetime:
    """Return a date or a time as a moment; without a zone of its own it is in ``zone``."""
    try:
        found = moment(given, zone)
    except ConfigurationError:
        found = None
    if found is None:
        raise wrong(f"'{given}' is no date: write 2026-01-31 or 2026-01-31T06:00:00Z.")
    return found


def connection(text: str) -> str:
    """Return the name of a connection. A text that is no name may be a URL with a password in it."""
    if not _CONNECTION.fullmatch(text):
        raise wrong(
            "no name of a connection: a letter, then letters, digits, underscores, dots or dashes. A URL does not "
            "belong into the file: put it into an environment variable, and write the variable's name."
        )
    return text


def landing(text: str) -> str:
    """Return a landing path with its environment variables replaced: ``${ROOT}/erp/%Y-%m-%d/*.json.gz``.

    The fields of time stay in it; they must be letters of ``LANDING_FIELDS``.
    """
    path = _VARIABLE.sub(_variable, text)
    if _KEYS_OF_STORE.match(path):
        raise PydanticCustomError(NOT_SHOWN, "{message}", {"message": _NO_KEYS})
    if "${" in _VARIABLE.sub("", text):
        raise wrong(f"'{text}' holds a broken variable: write ${{NAME}} or ${{NAME:-default}}.")
    fields = re.findall(r"%(.?)", path.replace("%%", ""))
    for field in fields:
        if field not in LANDING_FIELDS or not field:
            allowed = ", ".join(f"%{letter}" for letter in LANDING_FIELDS)
            raise wrong(f"unknown field of time '%{field}'. Allowed: {allowed}; a percent sign is %%.")
    if problem := lacking(fields):
        raise wrong(f"{problem}.")
    if not path.strip():
        raise wrong("empty: name a folder, a file or a pattern.")
    return path


_NO_KEYS = (
    "the address holds a key or a password of its store, and the addresses of files stand in tables, reports and logs. "
    "Leave it out, and give access by what the store's own tools read in the environment of each process: for s3 "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for abfs AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET."
)


def secret_variable(given: object) -> str:
    """Return the name of the environment variable in ``${NAME}``: a secret itself never stands in a source file."""
    match = _VARIABLE.fullmatch(given) if isinstance(given, str) else None
    if match is None or match["default"] is not None:
        text = "name the environment variable that holds the secret: ${NAME}, without a default."
        raise PydanticCustomError(NOT_SHOWN, "{message}", {"message": text})
    return match["name"]


def _variable(match: re.Match[str]) -> str:
    name, default = match["name"], match["default"]
    value = os.environ.get(name) or default
    if value is None:
        raise wrong(f"environment variable {name} is not set. Set it, or write ${{{name}:-default}}.")
    return value


def target(text: str) -> str:
    """Return a target pattern: ``namespace.table`` with fields of ``routes.FIELDS`` in braces, ``{table}`` among them.

    Without ``{table}``, all tables of the source would have one name.
    """
    if problem := next(routes.problems(text, 0), None):
        raise wrong(problem)
    if "table" not in routes.fields_in(text):
        raise wrong("{table} is missing: every table would land in one.")
    _check_target_text(text, routes.plain(text))
    return text


def target_of_table(text: str) -> str:
    """Return the target of one entry, ``table`` or ``namespace.table``; fields are checked with the entry's name."""
    plain = routes.plain(text)
    _check_target_text(text, plain if "." in plain else f"x.{plain}")
    return text


def _check_target_text(text: str, plain: str) -> None:
    if not _TARGET_TEXT.fullmatch(plain):
        raise wrong(f"'{text}' holds more than fields, letters, digits, underscores and dots.")
    names = plain.split(".")
    if len(names) < 2 or not all(names):
        raise wrong(f"'{text}' needs a namespace and a table with a dot between, as in {{source}}.{{table}}.")
    if (namespace := text.partition(".")[0]) in RESERVED_NAMES:
        raise wrong(f"namespace '{namespace}' is reserved. Choose another.")
