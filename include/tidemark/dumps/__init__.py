"""Dump files: which ones a run takes, how they are opened safely, and how they are cut into messages."""
