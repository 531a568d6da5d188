"""Tidemark turns change-data-capture dumps into checked Apache Iceberg tables."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

PACKAGE = Path(__file__).parent
"""The folder of this package."""

INCLUDE = PACKAGE.parent
"""The folder that is on Python's path; ``sources/`` lies in it too."""
