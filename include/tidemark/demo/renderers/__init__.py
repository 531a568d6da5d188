"""The shop's history as dumps: one module for each format, and modules that several formats share."""
