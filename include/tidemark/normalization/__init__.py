"""Turns messages into rows of the change log, settles which transactions are open, and finishes retries."""
