"""Build the candidate of a table with a key: fold, combine with the stored rows, merge."""

from __future__ import annotations

LARGE = 200_000
"""Rows from which on two passes over a table's keys cost less than one that shuffles them: see docs/adr/0020."""
