"""Where the source database is: the connection that a source file names, from the environment or from Airflow.

A source file never has a URL. ``connection: erp_db`` is an environment variable ``erp_db`` with a URL in it, or an
Airflow connection ``erp_db``, which Airflow and everybody else finds in ``AIRFLOW_CONN_ERP_DB``. What is secret in it
stays in this package: it is in no log, no error, no table and no report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from tidemark.errors import ConfigurationError
from tidemark.text import first_line, harmless, suggestion

_DIALECTS: Mapping[str, str] = {
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""Kind of database, as URLs and Airflow's connections name it -> dialect of SQL."""

_PORTS: Mapping[str, int] = {"postgres": 5432, "mysql": 3306}

_OPTIONS: Mapping[str, frozenset[str]] = {
    "postgres": frozenset({"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"}),
    "mysql": frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity"}),
}
"""Dialect -> what may stand behind the question mark of a URL, or in the extras of an Airflow connection."""

_SHORTEST_SECRET = 3
"""A password of fewer characters is not looked for in texts: it would be found everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is, and as whom to read it."""

    name: str
    """The connection's name, which is all that people are shown."""
    dialect: str
    host: str | None = field(repr=False)
    port: int = field(repr=False)
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    database: str | None = field(repr=False)
    options: Mapping[str, str] = field(repr=False)

    def without_secrets(self, error: BaseException) -> str:
        """Return the first line of a driver's error, without the parts of the address that are secret."""
        text = harmless(first_line(error))
        for secret in (self.password, self.user, self.host):
            if secret and len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text


def address_of(name: str, given: str | None = None) -> Address:
    """Return the address behind the name of a connection.

    Args:
        name: as the source file has it.
        given: the connection as text, where the caller has it from Airflow; None: from the environment.

    Raises:
        ConfigurationError: there is no such connection, or it is of no kind that is read here. The text does not have
            what the connection holds.
    """
    variable = f"AIRFLOW_CONN_{name.upper()}"
    text = given or os.environ.get(name) or os.environ.get(variable)
    if not text:
        raise ConfigurationError(
            f"connection '{name}' is not set: put a URL (postgresql://user:password@host:5432/database, mysql://...) "
            f"into the environment variable {name} or {variable}, or make an Airflow connection '{name}'"
        )
    parts = _from_json(name, text) if text.lstrip().startswith("{") else _from_url(name, text)
    kind = str(parts.pop("kind")).partition("+")[0].lower()
    if kind not in _DIALECTS:
        raise ConfigurationError(f"connection '{name}' is of the kind '{kind[:40]}'.{suggestion(kind, _DIALECTS)}")
    dialect = _DIALECTS[kind]
    options = {key: str(value) for key, value in parts.pop("options").items() if not key.startswith("__")}
    if unknown := sorted(options.keys() - _OPTIONS[dialect]):
        hint = suggestion(unknown[0], _OPTIONS[dialect])
        raise ConfigurationError(f"connection '{name}' has the unknown option '{unknown[0][:40]}'.{hint}")
    port = parts.pop("port") or _PORTS[dialect]
    return Address(name=name, dialect=dialect, port=int(port), options=options, **parts)


def _from_url(name: str, text: str) -> dict[str, Any]:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Without the error of SQLAlchemy, which may have the text.
        raise ConfigurationError(f"connection '{name}' holds no URL: kind://user:password@host:port/database") from None
    return {
        "kind": url.drivername,
        "host": url.host or None,
        "port": url.port,
        "user": url.username,
        "password": None if url.password is None else str(url.password),
        "database": url.database or None,
        "options": dict(url.query),
    }


def _from_json(name: str, text: str) -> dict[str, Any]:
    """Return the parts of an Airflow connection in JSON."""
    try:
        connection = json.loads(text)
        extra = connection.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else dict(extra)
        port = int(connection.get("port") or 0)
    except (ValueError, TypeError, AttributeError):
        raise ConfigurationError(f"connection '{name}' holds no readable JSON of an Airflow connection") from None
    return {
        "kind": connection.get("conn_type") or "",
        "host": connection.get("host") or None,
        "port": port,
        "user": connection.get("login"),
        "password": connection.get("password"),
        "database": connection.get("schema") or None,
        "options": extra,
    }
