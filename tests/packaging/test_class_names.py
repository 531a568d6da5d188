"""A name of a class means one thing in the library."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "include" / "tidemark"

ROLES_OF_FORMATS = {"Envelope", "Layouts", "Options", "Payload", "Record", "Row"}
"""What several formats have, each its own: the same part has the same name in each."""

WORDS_OF_VENDORS = {"Image", "Lineage", "Source", "SourceTable", "TableColumn"}
"""Parts of messages, as their vendors call them. In the rest of the library, each is a word of our own."""

WORDS_OF_THE_DEMO = {"Column", "Database", "DumpFile", "Outcome", "Step", "Transaction"}
"""The demo has a shop with a database of its own, whose tables, transactions and dumps it models."""


def test_no_two_classes_have_one_public_name() -> None:
    """No public name of a class is defined twice, but for roles that formats share, and words of vendors and the demo.

    Each exception is needed, and none of them has two definitions outside ``formats`` and ``demo``.
    """
    everywhere, shared = Counter[str](), Counter[str]()
    for path in LIBRARY.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
        everywhere.update(names)
        if path.relative_to(LIBRARY).parts[0] not in {"formats", "demo"}:
            shared.update(names)
    assert {name for name, count in shared.items() if count > 1} == set()
    assert {name for name, count in everywhere.items() if count > 1} == (
        ROLES_OF_FORMATS | WORDS_OF_VENDORS | WORDS_OF_THE_DEMO
    )
