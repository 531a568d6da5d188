"""The demo: one history of a small shop, rendered as the dumps of every format."""
