"""DDL text to changes, and the names of columns through time."""
