"""One published table: its target, key, columns, schemas, and the plan of what a cut does to it."""
