"""The only Spark session, and work spread over its workers."""
