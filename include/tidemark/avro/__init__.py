"""Avro, bounded against hostile schemas and data."""
