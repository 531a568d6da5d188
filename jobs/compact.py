"""Fold new events of the change log into a candidate branch of each table."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("compact")
