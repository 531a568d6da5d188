"""Options of tables in source files, and what each makes of the rows of the model."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

import pytest

from support.histories import COLUMNS
from support.reference import Row

SECRET_VARIABLE, SECRET = "TIDEMARK_TEST_SECRET", "not a secret, but long enough"

_OPTIONS: Sequence[Mapping[str, Any]] = (
    {},
    {"mask": {"id": "hmac", "note": "last4"}},
    {"exclude": ["note"], "mask": {"name": "redact"}},
    {"mask": {"n?te": "hmac", "name": "null", "amount": "hash"}},
    {"select": ["id", "line", "NAME"]},
)


def the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the secret of masks into the environment."""
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)


def options_of(table: str) -> Mapping[str, Any]:
    """The options of the table ``t<n>`` of a generated source."""
    return _OPTIONS[int(table.removeprefix("t")) % len(_OPTIONS)]


def promised(table: str, key: Sequence[str]) -> dict[str, Any]:
    """What the source file says of a table of a generated source."""
    options = options_of(table)
    masked = [name for name in COLUMNS if any(fnmatch(name, pattern) for pattern in options.get("mask", {}))]
    return {"key": key, "columns": {name: COLUMNS[name] for name in COLUMNS if name not in masked}, **options}


def shown(row: Row, options: Mapping[str, Any]) -> Row:
    """The row as a table with these options shows it."""
    select = [name.lower() for name in options.get("select", row)]
    left = {name: row[name] for name in row if name.startswith("_cdc") or name in select}
    left = {name: value for name, value in left.items() if name not in options.get("exclude", ())}
    for pattern, mask in options.get("mask", {}).items():
        left |= {name: told(mask, value) for name, value in left.items() if fnmatch(name, pattern)}
    return left


def told(mask: str, value: Any) -> str | None:
    """What a mask makes of a value."""
    if value is None or mask == "null":
        return None
    text = str(value)
    match mask:
        case "hash":
            return hashlib.sha256(text.encode()).hexdigest()
        case "hmac":
            return hmac.digest(SECRET.encode(), text.encode(), "sha256").hex()
        case "last4":
            return "****" + (text[-4:] if len(text) > 4 else "")
    return "****"
