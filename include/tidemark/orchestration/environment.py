"""Environment variables that a task sets while it works: the address of Spark, and the secrets of a source.

A stage, and a job that spark-submit starts from this process, read secrets from the environment. So a secret that an
Airflow connection holds is put there. It is in no argument, no field of an operator and no setting of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from tidemark.errors import ConfigurationError
from tidemark.sources.files import find_source
from tidemark.values.masking import SECRET_OF_ERASURES


@contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the context, and restore them at the end."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def secrets_of(source: str | None) -> dict[str, str]:
    """Return the secrets of a source that Airflow connections hold, by the names of their variables.

    These are the names that the source file has for them, and the one of the secret of erasures. The environment comes
    first, and is not looked up elsewhere. A source file that is wrong names no secret: the stage says what is wrong.

    Raises:
        AirflowFailException: a connection has no password.
    """
    try:
        found = find_source(source) if source else None
    except ConfigurationError:
        return {}
    names = {found.mask_secret, found.raw_key, SECRET_OF_ERASURES} if found else set()
    held = {name: _password(name) for name in names if name and not os.environ.get(name)}
    return {name: password for name, password in held.items() if password is not None}


def _password(name: str) -> str | None:
    """Return the password of an Airflow connection; None if there is no such connection."""
    try:
        password = BaseHook.get_connection(name).password
    except AirflowNotFoundException:
        return None
    if not password:
        raise AirflowFailException(f"Airflow connection '{name}' has no password: put the secret there")
    return password
