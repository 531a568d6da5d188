"""Avro, read within limits, because schemas and data may be hostile."""
