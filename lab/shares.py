"""Which tables a delivery of a setting publishes: a part of them, in turn, so that all have their turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matrix import Round
from producers import OWN, Setting
from workloads import workload


def share(round_: Round, setting: Setting, delivery: int, parts: int, tables: Iterable[str]) -> list[str]:
    """Return the tables of one delivery of a setting, if each publishes one of so many parts.

    Tables that belong together are in one part: earlier names of a table, and tables that a transaction changes. In
    three parts, the three deliveries of a setting publish each table once. The next setting takes other parts. Where
    there are fewer tables than parts, each delivery has one of them at least.

    Args:
        round_: of the setting.
        setting: one of the round.
        delivery: its number among all deliveries.
        parts: into how many parts the tables are dealt. One: all tables.
        tables: of the database.
    """
    groups = _groups(round_.database, _captured(round_, setting, tables))
    turn, most = round_.connectors.index(setting) + delivery, min(parts, len(groups))
    wanted = [name for number, group in enumerate(groups) if (number + turn) % most == 0 for name in group]
    return [*wanted, *OWN] if parts == 1 else wanted


def _captured(round_: Round, setting: Setting, tables: Iterable[str]) -> list[str]:
    """Return the tables that a setting captures."""
    if only := setting.options.get("table"):
        return [only.rsplit(".", 1)[-1]]
    return [name for name in tables if not setting.of_values or name in workload(round_.database).of_values]


def _groups(database: str, tables: Sequence[str]) -> list[list[str]]:
    together = {name: group for group in workload(database).together for name in group}
    found = {name: list(together.get(name, [name])) for name in tables}
    return [group for number, group in enumerate(found.values()) if group not in list(found.values())[:number]]
