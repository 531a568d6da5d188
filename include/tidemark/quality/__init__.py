"""Great Expectations and the built-in invariants."""
