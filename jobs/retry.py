"""Decode quarantined messages again."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("retry")
