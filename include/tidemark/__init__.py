"""Tidemark turns change-data-capture dumps into checked Apache Iceberg tables."""

__version__ = "0.1.0"
