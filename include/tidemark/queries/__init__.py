"""Queries of the lake by people: SQL, changes, status, the life of a row, differences. Nothing here writes."""
