"""Fold the change log onto the published tables, into a candidate branch of each."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("compact")
