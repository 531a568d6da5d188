"""The demo: the history of one small shop, rendered as the dumps of every format."""
