"""Pure functions over frames: from events to the rows of keyed tables, of tables without a key, and of histories."""
