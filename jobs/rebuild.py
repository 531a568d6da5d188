"""Request that the next compact builds tables again from their whole change log."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("rebuild")
