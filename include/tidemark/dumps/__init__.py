"""Dump files: which there are, opened with care, cut into messages."""
