"""The names of tables, branches and tags."""

from __future__ import annotations

Identifier = tuple[str, str]


def history_of(target: Identifier) -> Identifier:
    """Where the versions of a published table's rows are kept; ``name_problem`` keeps the name free."""
    return (target[0], f"{target[1]}__history")
