"""What is known of differences: ``reasons.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import pydantic
from ruamel.yaml import YAML


class Reason(pydantic.BaseModel, extra="forbid", frozen=True):
    """Why columns of a table differ in some rounds and settings; see the file."""

    table: str
    why: str
    columns: tuple[str, ...] = ()
    rounds: str = ".*"
    settings: str = ".*"
    rows: Literal["missing", "extra"] | None = None
    contradictions: tuple[str, ...] = ()


def reasons(round_: str, setting: str, table: str) -> Iterator[Reason]:
    """Yield what is known of a table in this round and setting."""
    for each in known():
        if (
            re.fullmatch(each.table, table)
            and re.fullmatch(each.rounds, round_)
            and re.fullmatch(each.settings, setting)
        ):
            yield each


@cache
def known() -> list[Reason]:
    """Return all reasons of the file."""
    written = YAML(typ="safe").load(Path(__file__).with_suffix(".yaml"))
    return [Reason.model_validate(each) for each in written]
