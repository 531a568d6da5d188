"""Decode new raw messages into the change log; set aside what cannot be read."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("normalize")
