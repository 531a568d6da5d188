"""Options of tables in source files, and what each makes of the rows of the model."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

import pytest

from support.histories import COLUMNS
from support.reference import Row

SECRET_VARIABLE, SECRET = "TIDEMARK_TEST_SECRET", "not a secret, but long enough"
KEY_VARIABLE, KEY = "TIDEMARK_TEST_RAW_KEY", base64.b64encode(bytes(32)).decode()

_OPTIONS: Sequence[Mapping[str, Any]] = (
    {"layout": {"partition": ["bucket(3, id)"], "sort": ["id desc"]}},
    {"mask": {"id": "hmac", "note": "last4"}, "layout": {"partition": ["name"]}},
    {"exclude": ["note"], "mask": {"name": "redact"}, "where": "id > 1"},
    {
        "rename": {"note": "remark"},
        "mask": {"n?te": "hmac", "name": "null"},
        "layout": {"partition": ["truncate(1, remark)", "bucket(2, id)"]},
    },
    {"select": ["id", "line", "NAME"]},
    {
        "layout": {"partition": ["note", "truncate(2, id)"], "sort": ["name desc nulls last", "id"]},
        "where": "name is null or id % 2 = 1",
        "derive": {"tag": "coalesce(name || '/' || note, 'none')"},
    },
    {"mask": {"id": "hmac", "amount": "hash"}, "layout": {"partition": ["bucket(2, id)"]}},
    {"exclude": ["note"], "layout": {"partition": ["name"], "properties": {"write.parquet.page-row-limit": 100}}},
    {
        "rename": {"id": "number", "name": "called"},
        "exclude": ["note"],
        "mask": {"called": "hash"},
        "derive": {"region": "'eu'", "next": "number + 1"},
    },
    {"select": ["id", "line", "name"], "layout": {"partition": ["bucket(2, name)"]}},
)
"""Of the tables ``t0`` to ``t9``. Tables of even numbers hold one history, and the messages of a run may have the key
alone: so only the key lays them out."""


_PASSES: Mapping[str, Callable[[Row], bool]] = {
    "id > 1": lambda row: row["id"] > 1,
    "name is null or id % 2 = 1": lambda row: row.get("name") is None or row["id"] % 2 == 1,
}
"""What the filters say, of rows with the names of the source."""

_MADE: Mapping[str, Callable[[Row], Any]] = {
    "coalesce(name || '/' || note, 'none')": lambda row: (
        "none" if None in {row.get("name"), row.get("note")} else f"{row['name']}/{row['note']}"
    ),
    "'eu'": lambda _: "eu",
    "number + 1": lambda row: row["id"] + 1,
}
"""What the derived columns hold, likewise."""

DERIVED = ("tag", "region", "next")
"""Names of derived columns."""


def the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the secret of masks, and the key of messages, into the environment."""
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def options_of(table: str) -> Mapping[str, Any]:
    """The options of the table ``t<n>`` of a generated source; none of another table."""
    if not table[1:].isdecimal():
        return {}
    return _OPTIONS[int(table.removeprefix("t")) % len(_OPTIONS)]


def promised(table: str, key: Sequence[str]) -> dict[str, Any]:
    """What the source file says of a table of a generated source."""
    options = options_of(table)
    called = options.get("rename", {})
    patterns = options.get("mask", {})
    masked = [name for name in COLUMNS for mask in patterns if fnmatch(name, mask) or called.get(name) == mask]
    types = {name: COLUMNS[name] for name in COLUMNS if name not in masked}
    return {"key": key, "columns": types, "feed": is_fed(table), **options}


def is_fed(table: str) -> bool:
    """Whether the table ``t<n>`` of a generated source has a feed."""
    return table[1:].isdecimal() and int(table[1:]) % 3 == 0


def shown(row: Row, options: Mapping[str, Any]) -> Row | None:
    """The row as a table with these options shows it; None where it does not."""
    if "where" in options and not _PASSES[options["where"]](row):
        return None
    made = {name: _MADE[text](row) for name, text in options.get("derive", {}).items()}
    select = [name.lower() for name in options.get("select", row)]
    left = {name: row[name] for name in row if name.startswith("_cdc") or name in select}
    left = {name: value for name, value in left.items() if name not in options.get("exclude", ())}
    called = options.get("rename", {})
    for pattern, mask in options.get("mask", {}).items():
        fits = (name for name in left if fnmatch(name, pattern) or called.get(name) == pattern)
        left |= {name: masked_text(mask, left[name]) for name in fits}
    return left | made


def as_at_source(row: Row, options: Mapping[str, Any]) -> Row:
    """A published row with the names that its columns have at the source."""
    names = {new: name for name, new in options.get("rename", {}).items()}
    return {names.get(name, name): value for name, value in row.items()}


def masked_text(mask: str, value: Any) -> str | None:
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
