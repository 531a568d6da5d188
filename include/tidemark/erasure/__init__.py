"""Erases the rows of a data subject from every table that holds them, and proves that nothing of them is left."""
