"""From DDL text to schema changes, and the names of columns through time."""
