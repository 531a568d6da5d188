"""Rewrite small files, expire old snapshots, remove orphans."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("maintain")
