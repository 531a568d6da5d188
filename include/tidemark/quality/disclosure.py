"""What may be shown of the result of a check: counts, names and figures about many rows, and never a value of one row.

Knows no Great Expectations: it works on the names and texts that Great Expectations and Spark give.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any, Final

_COUNTS: Final = {"element_count", "unexpected_count", "unexpected_percent", "missing_count", "missing_percent"}

_AGGREGATE: Final = re.compile(
    "expect_table_|expect_column_(to_exist|type_to_be|unique_value_count|proportion_of|mean|stdev|sum)"
    "|expect_column_values_to_be_(of_type|in_type_list)"
)
"""Expectations whose ``observed_value`` is a figure or a name. That of any other may be the value of one row."""

_BEFORE_READING: Final = re.compile(r"\[(UNRESOLVED_COLUMN|DATATYPE_MISMATCH)")
"""Spark errors that are found before a row is read. The text of others (``CAST_INVALID_INPUT``) may quote a value."""

_JAVA_ERROR: Final = re.compile(r"(?:[a-z]\w*\.)+(\w+(?:Exception|Error))\b")

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")

_LENGTH: Final = 200


def may_show_observed(expectation: str) -> bool:
    """Return whether the ``observed_value`` of an expectation is never the value of one row."""
    return bool(_AGGREGATE.match(expectation))


def figures(result: Mapping[str, Any], *, with_observed: bool) -> dict[str, Any]:
    """Return the counts in an expectation's result and, if it may be shown, the observed value."""
    kept = _COUNTS | {"observed_value"} if with_observed else _COUNTS
    found = {key: value for key, value in result.items() if key in kept}
    if "unexpected_percent" not in found:
        found.pop("unexpected_count", None)  # the page cannot show the count without the percentage
    return found


def error_line(text: str, columns: Container[str]) -> str:
    """Return the first line of an error's text without what it may quote from a row; ``columns`` may be quoted."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    condition = re.search(r"\[[A-Z][A-Z0-9_.]+\]", line)
    if condition and not _BEFORE_READING.search(line):
        return condition.group()
    if line.startswith(("An error occurred while calling", "Job aborted")):  # the cause follows, in Java's words
        return short(", ".join(dict.fromkeys(_JAVA_ERROR.findall(text))))
    return short(_QUOTED.sub(lambda quoted: quoted[0] if quoted[0][1:-1] in columns else "'...'", line))


def short(text: str) -> str:
    """Return a text, cut to 200 characters."""
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 3]}..."
