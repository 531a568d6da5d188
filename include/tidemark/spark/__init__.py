"""Spark: the only place that makes a session, and work that is spread over Spark's workers."""
