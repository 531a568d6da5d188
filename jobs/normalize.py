"""Decode new raw messages into the change log; put messages that cannot be read into quarantine."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("normalize")
