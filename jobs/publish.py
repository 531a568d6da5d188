"""Move main of every table of the run to its checked candidate, in one cut."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("publish")
