"""Parts of the decoder of Canal JSON."""
