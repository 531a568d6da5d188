"""One published table: its plan, columns, key, target and schemas."""
