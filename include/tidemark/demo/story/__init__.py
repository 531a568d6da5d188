"""The history of one shop. The dumps of all formats are rendered from it."""
