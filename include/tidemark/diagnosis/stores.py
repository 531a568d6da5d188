"""What the lake has: its home, its catalog, and who writes to it. Nothing is made, and no lock is taken."""

from __future__ import annotations

import configparser
import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyiceberg.exceptions import RESTError
from pyiceberg.utils.config import Config
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from tidemark.diagnosis.findings import Finding, ok, problem, warning
from tidemark.errors import LakeError, TidemarkError
from tidemark.lake import clocks, locks, names
from tidemark.lake.catalog import catalog_name, configured_properties, cuts_password, home, lacks_embedded, opening
from tidemark.lake.lake import Lake
from tidemark.ledger.schemas import NAMES
from tidemark.text import first_line

_CONNECT_SECONDS: Final = 5.0

_LOCAL_EXECUTORS: Final = frozenset({"LocalExecutor", "SequentialExecutor"})

_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "http": 80, "https": 443, "thrift": 9083}


def examined(sources: Sequence[str]) -> Iterator[Finding]:
    """Yield what was found about the lake; ``sources`` are the names of the sources whose writers are looked for."""
    yield _home()
    catalog, lake = _catalog()
    yield catalog
    if catalog.level != "problem":
        yield lock_reach()
        yield from _writers(sources)
    if lake is not None:
        yield from _clock(lake)


def _home() -> Finding:
    folder = home()
    if not folder.exists():
        do = "the first run makes it; if you expect a lake, let TIDEMARK_HOME name its folder"
        return warning("home", f"{folder} does not exist yet", do)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return problem("home", f"{folder} may not be read and written", "correct its owner or mode, or TIDEMARK_HOME")
    return ok("home", str(folder))


def _catalog() -> tuple[Finding, Lake | None]:
    """Return what was found of the catalog; with the lake in it, if there is one."""
    do = "correct `.pyiceberg.yaml` or PYICEBERG_CATALOG__...: docs/operations/catalog-and-environment.md"
    try:
        properties = configured_properties()
        address = shown_address(properties.get("uri", ""))
        if lacks_embedded():
            return ok("catalog", f"embedded, not made yet: the first run makes {address}"), None
        _connect(properties.get("uri", ""))
        with opening():
            # Else PyIceberg makes the tables of an SQL catalog.
            lake = Lake(catalog_name(), {**properties, "init_catalog_tables": "false"})
            try:
                spaces = lake.catalog.list_namespaces()
            except SQLAlchemyError:
                return ok("catalog", f"{catalog_name()} at {address} answers, and holds no lake yet"), None
    except (TidemarkError, OSError, RESTError, ValueError) as error:
        mend = "start it, or correct its address" if isinstance(error, LakeError | OSError) else do
        return problem("catalog", f"{catalog_name()}: {_without_secrets(first_line(error))}", mend), None
    return ok("catalog", f"{catalog_name()} at {address} answers, {len(spaces)} namespaces"), lake


def shown_address(uri: str) -> str:
    """Return the address of a catalog without user, password and options."""
    if cuts_password(uri):
        return "(no address)"
    if uri.startswith(("http://", "https://", "thrift://")):
        parts = urlsplit(uri)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    with suppress(SQLAlchemyError, ValueError):
        url = make_url(uri)
        port = f":{url.port}" if url.port else ""
        return f"{url.drivername}://{url.host or ''}{port}/{url.database or ''}"
    return "(no address)"


def _without_secrets(text: str) -> str:
    """Return an error's text without the catalog's address, if it has one with secrets in it."""
    for secret in map(str, (Config().get_catalog_config(catalog_name()) or {}).values()):
        if len(secret) > 3:
            text = text.replace(secret, "...")
    return text


def _connect(uri: str) -> None:
    """Connect to the server of the catalog, so that one that does not answer takes seconds, and not minutes.

    Raises:
        OSError: it does not answer.
    """
    with suppress(SQLAlchemyError, ValueError):
        url = make_url(uri)
        port = url.port or _PORTS.get(url.get_backend_name())
        if url.host and port:
            socket.create_connection((url.host, port), _CONNECT_SECONDS).close()


def _clock(lake: Lake) -> Iterator[Finding]:
    """Yield how the clock of this machine compares with the newest commit to the ledger, if there is one."""
    try:
        with opening():
            ledger = [table.metadata for name in NAMES if (table := lake.find(names.ledger(name))) is not None]
    except TidemarkError as error:
        yield problem("clock", f"no commit can be read: {_without_secrets(first_line(error))}", "read the error")
        return
    newest = max(ledger, key=lambda metadata: metadata.last_updated_ms, default=None)
    if newest is None:
        return
    if clocks.behind(newest) > clocks.FAR:
        do = "set the clock of this machine, or of the one that is ahead: docs/operations/clocks.md"
        yield problem("clock", clocks.described(newest), do)
    else:
        yield ok("clock", "not behind the newest commit")


def lock_reach() -> Finding:
    """Return whether the lock of a source excludes every process that may write it."""
    if locks.is_lease():
        return ok("lock", "a lease in the catalog: it excludes writers on all machines")
    if locks.reaches_all_machines():
        return ok("lock", "in the database of the catalog: it excludes writers on all machines")
    found = "a file of this machine: it excludes writers of this machine only"
    many = [*_executors(), *_clustered_drivers()]
    if not many:
        return ok("lock", found)
    do = "use a catalog that all machines reach: PostgreSQL, REST, Glue or Hive; or run all tasks on one machine"
    return problem("lock", f"{found}, and tasks run on others: {', '.join(many)}", do)


def _executors() -> list[str]:
    """Return Airflow's executors that run tasks on other machines."""
    given = os.environ.get("AIRFLOW__CORE__EXECUTOR") or _airflow_setting("core", "executor") or "LocalExecutor"
    names = [name.strip().rpartition(":")[2] for name in given.split(",")]
    return [name for name in names if name.rpartition(".")[2] not in _LOCAL_EXECUTORS]


def _airflow_setting(section: str, name: str) -> str | None:
    file = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "airflow.cfg"
    settings = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error, OSError, UnicodeDecodeError):
        settings.read(file, encoding="utf-8")
    return settings.get(section, name, fallback=None)


def _clustered_drivers() -> list[str]:
    """Return the Spark connection of the environment, if its jobs run on a machine of the cluster."""
    with suppress(ValueError, TypeError, AttributeError):
        extra = json.loads(os.environ.get("AIRFLOW_CONN_SPARK_DEFAULT", "{}")).get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        return ["spark_default has deploy-mode cluster"] if extra.get("deploy-mode") == "cluster" else []
    return []


def _writers(sources: Sequence[str]) -> Iterator[Finding]:
    for source in sources:
        try:
            holder = locks.holder(source)
        except LakeError as error:
            yield problem("lock", first_line(error), "start the database of the catalog, or correct its address")
            return
        if holder:
            yield ok(f"lock of {source}", f"held by {holder}")
