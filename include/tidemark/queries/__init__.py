"""What people ask of the lake: SQL, changes, status, the life of a row, differences. Nothing here writes."""
