"""Check the candidates: the declared checks, and the equations of the ledger."""

from __future__ import annotations

from tidemark.cli import job

if __name__ == "__main__":
    job("check")
