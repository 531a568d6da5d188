"""Pure functions over frames: events to rows of tables with a key, of bags, and of histories."""
