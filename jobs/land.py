"""Copy the messages of one interval's dump files into the raw table, verbatim."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("land")
