"""Checks of candidates before they are published: Great Expectations and the built-in invariants."""
