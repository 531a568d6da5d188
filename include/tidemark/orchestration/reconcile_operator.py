"""The comparison of a source with its database as an Airflow task."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSkipException

from tidemark.errors import ConfigurationError
from tidemark.orchestration.environment import secrets_of, variables
from tidemark.orchestration.trigger_conf import refuse_unknown
from tidemark.sources.files import find_source

if TYPE_CHECKING:
    from tidemark.ledger.reconciliation_rows import ReconciliationRow


class ReconcileOperator(BaseOperator):
    """Compares the published tables of a source with its database.

    The task fails if a key is lost, extra or different, or if a table that was compared before is not any more. It does
    not fail where the lake is only behind: it always is. If no table could be compared, the task is skipped: it is no
    success.
    """

    ui_color = "#c7e3ea"

    def __init__(self, *, source: str, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own arguments
        """Name the task after what it does."""
        kwargs.setdefault("task_id", "reconcile")
        super().__init__(**kwargs)
        self.source = source

    def execute(self, context: Context) -> dict[str, str]:
        """Compare, and return the result of each table for XCom.

        Raises:
            AirflowFailException: something differs, a table is not compared any more, or the source file or its
                connection is wrong.
            AirflowSkipException: no table could be compared.
        """
        refuse_unknown(self, context)
        try:
            found, before = self._compare(context["params"].get("table"))
        except ConfigurationError as error:
            raise AirflowFailException(f"{type(error).__name__}: {error}") from error
        _judge(self.source, found, before)
        return {row.target: row.result for row in found}

    def _compare(self, table: str | None) -> tuple[list[ReconciliationRow], set[str]]:
        """Return how the tables compare, and which tables earlier runs have compared."""
        from tidemark.reconciliation.run import compared_before, reconcile  # noqa: PLC0415

        source = find_source(self.source)
        name = source.reconcile.connection if source.reconcile else ""
        found = []
        with variables(secrets_of(self.source)):
            before = compared_before(source)
            for row in reconcile(source, table, connection=_connection(name)):
                found.append(row)
                counts = {word: getattr(row, word) for word in ("behind", "lost", "extra", "different")}
                self.log.info("%s: %s %s%s", row.target, row.result, counts, f": {row.reason}" if row.reason else "")
        return found, before


def _judge(source: str, found: Sequence[ReconciliationRow], before: Collection[str]) -> None:
    """Raise for what is no success; for arguments and errors see ``ReconcileOperator``."""
    from tidemark.ledger.reconciliation_rows import Result  # noqa: PLC0415 - a DAG is parsed without an engine

    wrong = [row.target for row in found if row.result == Result.DIFFERS]
    skipped = [row for row in found if row.result == Result.NOT_COMPARED]
    problems = []
    if wrong:
        problems.append(f"{', '.join(wrong)} differ from the source database: `tidemark reconcile {source}` lists keys")
    if gone := [f"{row.target}: {row.reason}" for row in skipped if row.object in before]:
        remedy = "mend it, or leave the table out of `reconcile: tables` in the source file"
        problems.append(f"compared before, and not any more: {'; '.join(gone)}: {remedy}")
    if problems:
        raise AirflowFailException("\n".join(problems))
    if len(skipped) == len(found):
        raise AirflowSkipException("no table could be compared: the log has the reasons")


def _connection(name: str) -> str | None:
    """Return an Airflow connection as JSON; None if the environment has one, or Airflow does not."""
    if not name or os.environ.get(name):
        return None
    try:
        found = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return None
    parts = {name: getattr(found, name) for name in ("conn_type", "login", "password", "host", "schema", "port")}
    return json.dumps({**parts, "extra": found.extra_dejson})
