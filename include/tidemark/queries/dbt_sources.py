"""``tidemark dbt``: the published tables of a source as dbt's ``sources`` (dbt 1.10.5 and later).

Columns and types come from the lake, tests from the key and the checks of the source file. Only checks that dbt has
without a package are written: dbt would fail at any other name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from io import StringIO
from itertools import islice, pairwise
from typing import Any, Final

from pyiceberg.table import Table
from ruamel.yaml import YAML

from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, beside, is_feed, is_history
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.sources.check import Check
from tidemark.sources.choices import Severity
from tidemark.sources.freshness import Freshness
from tidemark.sources.model import Source
from tidemark.sources.schedules import times
from tidemark.tables.feeds import OWN_NAMES
from tidemark.tables.schemas import COMMITTED_AT, DELETED, IS_CURRENT, POSITION, VALID_FROM, key_of
from tidemark.values.iso8601 import EPOCH

_JINJA: Final = re.compile(r"\{[{%#]")

_TICKS: Final = 400
"""Runs of a schedule that are looked at for its longest pause: more than a year of a daily one."""

_TESTS: Final[Mapping[str, str]] = {
    "expect_column_values_to_not_be_null": "not_null",
    "expect_column_values_to_be_unique": "unique",
    "expect_column_values_to_be_in_set": "accepted_values",
}
"""Great Expectations' name -> dbt's own test of the same meaning."""


_NEVER_NULL: Final = frozenset({POSITION, DELETED})

_NEVER_NULL_BESIDE: Final = frozenset({POSITION, VALID_FROM, IS_CURRENT, *OWN_NAMES})
"""Columns of histories and feeds."""


def sources_of(lake: Lake, source: Source) -> dict[str, Any]:
    """Return what dbt's file of sources says of a source: an entry for each namespace that its tables are in.

    Raises:
        ConfigurationError: nothing of the source is published yet.
    """
    published = Ledger(lake, source.source).published_tables()
    by_namespace: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(published.values(), key=lambda row: row.target or ""):
        if row.target:
            by_namespace.setdefault(row.identifier.namespace, []).extend(_tables(lake, source, row))
    if not any(by_namespace.values()):
        raise ConfigurationError(f"{source.source} has published nothing yet: `tidemark run {source.source}`")
    loaded = {"loader": "tidemark", "description": f"Published by Tidemark from {source.source} ({source.format})"}
    return {
        "version": 2,
        "sources": [
            {"name": namespace, **loaded, "schema": namespace, **_fresh(source), "tables": tables}
            for namespace, tables in by_namespace.items()
        ],
    }


def as_yaml(sources: Mapping[str, Any]) -> str:
    """Return the sources as YAML. dbt reads YAML 1.1, in which ``yes`` is no text: such texts are quoted.

    dbt renders Jinja in every text, and names and comments are those of the source database. So what begins an
    expression stands in one that is itself, ``{{ '{{' }}``.
    """
    writer = YAML()
    writer.version = (1, 1)
    writer.width = 120
    text = StringIO()
    writer.dump(_unrendered(dict(sources)), text)
    return text.getvalue().removeprefix("%YAML 1.1\n---\n")


def _unrendered(value: Any) -> Any:  # noqa: ANN401 - any part of the file
    if isinstance(value, str):
        return _JINJA.sub(r"{{ '\g<0>' }}", value)
    if isinstance(value, Mapping):
        return {key: _unrendered(inner) for key, inner in value.items()}
    return [_unrendered(inner) for inner in value] if isinstance(value, list) else value


def _fresh(source: Source) -> dict[str, Any]:
    """Return when a table counts as stale: after two of the longest pauses of the schedule; nothing without one."""
    if source.schedule is None:
        return {}
    runs = islice(times(source.schedule, EPOCH), _TICKS)
    longest = max((after - before for before, after in pairwise(runs)), default=timedelta(0))
    minutes = int(2 * longest / timedelta(minutes=1))
    count, period = (minutes // 60, "hour") if minutes % 60 == 0 else (minutes, "minute")
    fresh = {"warn_after": {"count": count, "period": period}}
    return {"config": {"loaded_at_field": COMMITTED_AT, "freshness": fresh}}


def _as_dbt(limits: Freshness) -> dict[str, Any]:
    """Return the limits of a table in dbt's words, in minutes, because dbt takes whole numbers."""
    given = {"warn_after": limits.warn_after_hours, "error_after": limits.block_after_hours}
    return {
        name: {"count": max(1, round(hours * 60)), "period": "minute"}
        for name, hours in given.items()
        if hours is not None
    }


def _tables(lake: Lake, source: Source, row: TableRow) -> Iterator[dict[str, Any]]:
    """Yield a published table, and its history and feed where they are kept."""
    for identifier in (row.identifier, *beside(row.identifier)):
        table = lake.find(identifier)
        if table is not None:
            description = _description(identifier, row)
            # Without a time of the newest event, dbt's question would have no answer.
            fresh: dict[str, Any] = (
                {} if row.committed_at or source.schedule is None else {"config": {"freshness": None}}
            )
            limits = source.table_for(row.object).freshness
            if limits is not None and row.committed_at and identifier == row.identifier:
                fresh = {"config": {"loaded_at_field": COMMITTED_AT, "freshness": _as_dbt(limits)}}
            columns = list(_columns(identifier, table, source.table_for(row.object).checks))
            yield {"name": identifier.name, "description": description, **fresh, "columns": columns}


def _description(identifier: Identifier, row: TableRow) -> str:
    if is_history(identifier.name):
        return f"Every version of the rows of {row.object}"
    if is_feed(identifier.name):
        return f"What each cut changed in the rows of {row.object}"
    return f"{row.object} as the source has it"


def _columns(identifier: Identifier, table: Table, checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    plain = not (is_history(identifier.name) or is_feed(identifier.name))
    key = key_of(table)
    for field in table.schema().fields:
        tests = list(_of_checks(field.name, checks)) if plain else []
        if plain and field.name in key:
            tests = [*(["unique"] if len(key) == 1 else []), "not_null", *tests]
        if field.name in (_NEVER_NULL if plain else _NEVER_NULL_BESIDE):
            tests = [*tests, "not_null"]
        once = [test for number, test in enumerate(tests) if test not in tests[:number]]
        described = {"description": field.doc} if field.doc else {}
        tested = {"data_tests": once} if once else {}
        yield {"name": field.name, **described, "data_type": str(field.field_type), **tested}


def _of_checks(column: str, checks: Sequence[Check]) -> Iterator[Any]:
    """Yield the tests of a column that mean exactly what checks of it mean."""
    for check in checks:
        arguments = check.arguments
        name = _TESTS.get(check.type)
        values = arguments.get("value_set")
        if name is None or arguments.get("column") != column or arguments.keys() - {"column", "value_set"}:
            continue
        said: dict[str, Any] = {} if values is None else {"arguments": {"values": list(values)}}
        if check.judged_as is Severity.WARN:
            said["config"] = {"severity": "warn"}
        yield {name: said} if said else name
