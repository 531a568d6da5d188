"""Servers on this machine, for `make up`, the demo and the tests."""
