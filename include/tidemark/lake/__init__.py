"""The Iceberg catalog, its tables, branches, commits, copies and upkeep."""
