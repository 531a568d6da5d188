"""One module for each format: the shop's history as dumps of that format."""
