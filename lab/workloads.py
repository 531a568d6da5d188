"""Workloads of the lab: statements of ``workloads/*.sql``, and what a source file says of their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "workloads"


@dataclass(frozen=True)
class Workload:
    """What is done to a database."""

    tables: Sequence[str]
    """The statements that make the tables."""
    loaded: Sequence[str]
    """What is in them before a capture tool starts."""
    changes: Sequence[str]
    """What is done while it runs."""
    later: Sequence[str]
    """What is done after that, and after a restart of the tool where a round has one."""
    said: Mapping[str, Mapping[str, Any]]
    """What the source file says of tables, because messages alone do not say it."""
    of_values: Sequence[str]
    """The tables that show how values are written."""
    binary: Mapping[str, Mapping[str, Sequence[str]]]
    """``bytes`` and ``bits`` -> table -> its columns of this kind."""
    together: Sequence[Sequence[str]]
    """Tables that one stream has to bring together: names of one table, and tables that a transaction changes."""


def workload(database: str) -> Workload:
    """Return the workload of a kind of database."""
    if database == "postgresql":
        return Workload(
            *_sections("postgresql"),
            said=_SAID_OF_POSTGRESQL,
            of_values=_VALUES_OF_POSTGRESQL,
            binary=_BINARY_OF_POSTGRESQL,
            together=_TOGETHER_IN_POSTGRESQL,
        )
    return Workload(
        *_sections("mysql"),
        said=_SAID_OF_MYSQL,
        of_values=_VALUES_OF_MYSQL,
        binary=_BINARY_OF_MYSQL,
        together=_TOGETHER_IN_MYSQL,
    )


def _sections(name: str) -> list[list[str]]:
    text = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    _, *sections = re.split(r"^-- (?:tables|loaded|changes|later)\n", text, flags=re.MULTILINE)
    return [[each for each in re.split(r";\s+", section) if each] for section in sections]


def _texts(*columns: str) -> dict[str, Any]:
    return {"columns": dict.fromkeys(columns, "string")}


_SAID_OF_POSTGRESQL: Final = {"extremes": _texts("d", "w", "z"), "by_index": {"key": ["code"]}}
_SAID_OF_MYSQL: Final = {"zero_times": _texts("d", "w", "z"), "zero_times_not_null": _texts("d", "w", "z")}

_VALUES_OF_POSTGRESQL: Final = (
    "numbers", "hundreds", "times", "texts", "others", "extremes", "defaults", "time_keys", "uuid_keys",
    "demanding",
)  # fmt: skip
_VALUES_OF_MYSQL: Final = (
    "numbers", "big_unsigned", "bits", "times", "long_times", "zero_times", "zero_times_not_null", "texts", "labels",
    "bytes", "shapes", "defaults", "byte_keys", "big_keys", "time_keys", "enum_keys",
)  # fmt: skip

_BINARY_OF_POSTGRESQL: Final = {
    "bytes": {"texts": ["b"], "demanding": ["ba"]},
    "bits": {"others": ["b8", "bv"], "demanding": ["b8"]},
}
_BINARY_OF_MYSQL: Final = {
    "bytes": {"bytes": ["b", "vb", "tb", "bl", "lb", "vt"], "byte_keys": ["k"]},
    "bits": {"bits": ["b8", "b10", "b64"]},
}

_TOGETHER_IN_POSTGRESQL: Final = (("parted", "parted_1", "parted_2"), ("parent", "child"))
_TOGETHER_IN_MYSQL: Final = (
    ("old_name", "new_name"),
    ("swap_a", "swap_b", "swap_c"),
    ("hot", "copied", "as_selected"),
    ("triggered", "trigger_log"),
    ("parent", "child"),
)
