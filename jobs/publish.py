"""Move ``main`` of every table of the cut to its checked candidate."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("publish")
