"""Find what is new, decide, build on a branch, account for it."""
