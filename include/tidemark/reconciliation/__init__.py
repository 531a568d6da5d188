"""The lake against the source database: counts and checksums by bucket, then keys, then why they differ.

``run`` compares the tables of a source. ``connections`` and the modules of the two kinds of database read the source:
aggregates and keys leave it, no other values. ``canonical`` says what text stands for a value on every side.
"""
