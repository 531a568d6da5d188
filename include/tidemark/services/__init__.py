"""Servers that Tidemark runs on this machine, for ``make up``, the demo and the tests."""
