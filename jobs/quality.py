"""Check the tables of a source at a published cut."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("quality")
