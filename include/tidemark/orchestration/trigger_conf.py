"""What a person gave to a run as its ``conf``, which no trigger form has looked at."""

from __future__ import annotations

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tidemark.text import suggestion


def refuse_unknown(operator: BaseOperator, context: Context) -> None:
    """Refuse names that the form of the DAG does not have.

    Airflow takes them, and no task would ask for them: with a misspelt ``dry_run``, a run would reprocess.

    Raises:
        AirflowFailException: there is one; with the names that there are.
    """
    for name in getattr(context.get("dag_run"), "conf", None) or ():
        if name not in operator.dag.params:
            raise AirflowFailException(f"unknown name '{name}' in `conf`.{suggestion(name, operator.dag.params)}")
