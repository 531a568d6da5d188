"""Tidemark turns change-data-capture dumps into checked Apache Iceberg tables.

``run``, ``decode`` and ``Source`` are the Python API (``tidemark.api``). They are imported when they are first used, so
that ``import tidemark`` imports nothing else.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

PACKAGE = Path(__file__).parent
"""The folder of this package."""

INCLUDE = PACKAGE.parent
"""The folder that is on Python's path; ``sources/`` lies in it too."""

_API = ("Source", "decode", "run")


def __getattr__(name: str) -> Any:  # noqa: ANN401 - their types stand in __init__.pyi
    if name in _API:
        return getattr(importlib.import_module("tidemark.api"), name)
    raise AttributeError(f"module 'tidemark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
