"""Fold the whole change log again, beside the tables, then swap."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("rebuild")
