"""What was done, which transactions are open, what is published together."""
