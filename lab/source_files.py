"""What the source file of a setting says, as a person would write it."""

from __future__ import annotations

from typing import Any

from matrix import Round
from producers import Setting
from workloads import workload


def of_file(each: Round, setting: Setting) -> dict[str, Any]:
    """Return what the source file says because of the tool and its setting."""
    return {"format": each.tool.format, "options": dict(setting.options), "tables": _said(each, setting)}


def _said(each: Round, setting: Setting) -> dict[str, Any]:
    """Return what the source file says of tables: because of the database, and because of the setting."""
    work, where = workload(each.database), "lab.public." if each.database == "postgresql" else "lab."
    said: dict[str, Any] = {name: dict(table) for name, table in work.said.items()}
    for kind, encoding in setting.encodings.items():
        for name, columns in work.binary[kind].items():
            table = said.setdefault(name, {})
            table["columns"] = {**table.get("columns", {}), **dict.fromkeys(columns, "binary")}
            table["encodings"] = {**table.get("encodings", {}), **dict.fromkeys(columns, encoding)}
    return {where + name: table for name, table in said.items() if not setting.of_values or name in work.of_values}
