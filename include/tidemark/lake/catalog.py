"""Where the lake is: its home, the catalog's name and properties, and Spark's settings for the same catalog."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from urllib.parse import quote, unquote

from pyiceberg.exceptions import ForbiddenError, NotInstalledError, RESTError, UnauthorizedError
from pyiceberg.utils.config import Config

from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.text import first_line


def home() -> Path:
    """Return the folder of the embedded warehouse, catalog and reports: ``TIDEMARK_HOME``, else ``.tidemark``."""
    return Path(os.environ.get("TIDEMARK_HOME") or ".tidemark").resolve()


def catalog_name() -> str:
    """Return the name of the catalog, which is part of every key in it: ``TIDEMARK_CATALOG``, else ``tidemark``."""
    return os.environ.get("TIDEMARK_CATALOG") or "tidemark"


def home_described() -> str:
    """Return where the home is, and what says so."""
    given = os.environ.get("TIDEMARK_HOME")
    why = f"TIDEMARK_HOME is {given}" if given else "TIDEMARK_HOME is not set, so it is `.tidemark` where you are"
    return f"{home()} ({why})"


def require_catalog() -> None:
    """Check that there is a catalog to read, without making one.

    Of a catalog that a server keeps, this is for the server to say.

    Raises:
        ConfigurationError: there is none, and the error says where it was looked for; or as ``configured_properties``.
    """
    if lacks_embedded():
        raise ConfigurationError(
            f"there is no lake in {home_described()}. Set TIDEMARK_HOME to the folder of the lake; "
            "`tidemark run SOURCE` makes a new one there."
        )
    configured = configured_properties()
    if not is_configured() or configured.get("type") != "sql":
        return
    from sqlalchemy import create_engine, inspect  # noqa: PLC0415  for a database that a user configured
    from sqlalchemy.engine import make_url  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    url = make_url(str(configured.get("uri", "")))
    files = [Path(name) for name in {url.database or "", unquote(url.database or "")}]
    if url.get_backend_name() == "sqlite" and not any(file.is_file() for file in files):
        raise ConfigurationError(f"catalog {catalog_name()!r}: there is no lake in {url.database}. {_MAKES}")
    if url.get_backend_name() != "sqlite":
        engine = create_engine(url, poolclass=NullPool)
        if not inspect(engine).has_table("iceberg_tables"):
            shown = url.render_as_string(hide_password=True)
            raise ConfigurationError(f"catalog {catalog_name()!r}: there is no lake in {shown}. {_MAKES}")


_MAKES = "Look at `.pyiceberg.yaml` and PYICEBERG_CATALOG__...; `tidemark run SOURCE` makes a new one there."


def catalog_properties() -> Mapping[str, str]:
    """Return the properties of the catalog, as ``configured_properties``; make the folder of an embedded warehouse.

    Raises:
        ConfigurationError: the path of the embedded catalog contains a question mark.
    """
    if not is_configured():
        (home() / "warehouse").mkdir(parents=True, exist_ok=True)
    return configured_properties()


def is_configured() -> bool:
    """Return whether PyIceberg's configuration names the catalog. If it does not, the embedded one is used."""
    return bool(Config().get_catalog_config(catalog_name()))


def lacks_embedded() -> bool:
    """Return whether the embedded catalog is to be used, and was not made yet."""
    return not is_configured() and not embedded_file().is_file()


def embedded_file() -> Path:
    """Return where the embedded catalog is, or will be."""
    return home() / "catalog.db"


def configured_properties() -> Mapping[str, str]:
    """Return the properties of the catalog that PyIceberg is configured with, else of the embedded one on SQLite.

    Nothing is made: the embedded catalog may not be there yet.

    Raises:
        ConfigurationError: the path of the embedded catalog contains a question mark, or a password has an `@` that is
            not written as `%40`.
    """
    configured = Config().get_catalog_config(catalog_name())
    if configured:
        if cuts_password(str(configured.get("uri", ""))):
            raise ConfigurationError(
                f"catalog {catalog_name()!r}: its `uri` has an `@` behind that of its password, so a part of "
                "the password would be read as the host. Write each `@` of a password, or of an option, as `%40`."
            )
        return {key: str(value) for key, value in configured.items()}
    base = home()
    if "?" in str(base):  # behind it, Java's driver reads options
        raise ConfigurationError(f"TIDEMARK_HOME is {str(base)!r}: a path without '?' is needed.")
    return {
        "type": "sql",
        "uri": f"sqlite:///{quote(str(embedded_file()))}",
        "warehouse": (base / "warehouse").as_uri(),
    }


def cuts_password(uri: str) -> bool:
    """Return whether the password in an address may have an ``@`` as it is: readers take the first one for its end."""
    access, at, behind = uri.partition("://")[2].partition("@")
    user, colon, _ = access.partition(":")
    return bool(at and colon) and "/" not in user and "@" in behind


@contextmanager
def opening() -> Iterator[None]:
    """Turn errors of opening the catalog into errors that say what is wrong with it.

    Raises:
        ConfigurationError: the catalog cannot be opened as it is configured.
        RetriableLakeError: the catalog cannot be reached.
    """
    try:
        yield
    except (ImportError, NotInstalledError, _sql_errors().ArgumentError, ValueError) as error:
        raise ConfigurationError(
            f"catalog {catalog_name()!r} cannot be opened as it is configured: {first_line(error)}. Look at "
            "`.pyiceberg.yaml` and PYICEBERG_CATALOG__...; a database is given as `postgresql+psycopg://...`"
        ) from error
    except (PermissionError, UnauthorizedError, ForbiddenError) as error:
        raise ConfigurationError(f"catalog {catalog_name()!r} refuses this user: {first_line(error)}") from error
    except (OSError, _sql_errors().SQLAlchemyError, RESTError, *driver_errors()) as error:
        raise RetriableLakeError(f"catalog {catalog_name()!r} cannot be opened: {first_line(error)}") from error


_OF_DRIVERS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("thrift.Thrift", "TException"),
)
"""Errors of the packages by which PyIceberg reaches Glue and Hive. Neither is installed without need."""


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the packages that reach the catalog, as far as this process uses them."""
    return tuple(getattr(sys.modules[module], name) for module, name in _OF_DRIVERS if module in sys.modules)


def _sql_errors() -> ModuleType:
    """Return the errors of SQLAlchemy. Its import takes long, and what succeeds does not ask for them."""
    from sqlalchemy import exc  # noqa: PLC0415

    return exc


def spark_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for Iceberg's catalog in Spark with the same meaning as PyIceberg's ``properties``."""
    kind = properties.get("type", "rest" if properties.get("uri", "").startswith("http") else "sql")
    if kind == "sql":
        return _jdbc_properties(properties)
    if kind in {"rest", "hive", "glue"}:
        return {**properties, "type": kind}
    raise ConfigurationError(f"catalog type {kind!r} is not known to Spark: use sql, rest, hive or glue")


def _jdbc_properties(properties: Mapping[str, str]) -> dict[str, str]:
    from sqlalchemy.engine import make_url  # noqa: PLC0415  for Spark alone

    url = make_url(properties["uri"])
    kept = {key: value for key, value in properties.items() if key not in {"type", "uri"}}
    jdbc = {**kept, "type": "jdbc", "jdbc.schema-version": "V1"}
    if url.get_backend_name() == "sqlite":
        # With write-ahead logging, readers of the catalog do not wait while a commit is written.
        return {**jdbc, "uri": f"jdbc:sqlite:{url.database}?journal_mode=WAL&busy_timeout=30000"}
    port = f":{url.port}" if url.port else ""
    access = {"jdbc.user": url.username, "jdbc.password": url.password}
    secrets = {key: value for key, value in access.items() if value is not None}
    return {**jdbc, **secrets, "uri": f"jdbc:{url.get_backend_name()}://{url.host}{port}/{url.database}"}
