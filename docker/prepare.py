"""Prepare the start of Airflow: secrets checked, its user's password, the bucket of the lake, its database's schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyarrow.fs import S3FileSystem

_LAKE = "PYICEBERG_CATALOG__TIDEMARK__"
_SECRETS = (
    "POSTGRES_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__CORE__FERNET_KEY",
    f"{_LAKE}S3__ACCESS_KEY_ID",
    f"{_LAKE}S3__SECRET_ACCESS_KEY",
)
_LEAST = 24


def weak(environment: Mapping[str, str]) -> list[str]:
    """Return the names of secrets that are missing, short, or have few different characters.

    ``make env`` writes no such secrets.
    """
    given = {name: environment.get(name, "") for name in _SECRETS}
    return [name for name, value in given.items() if len(value) < _LEAST or len(set(value)) < 8]


def main() -> int:
    """Prepare, and return the exit status: 2 if a secret is weak."""
    if names := weak(os.environ):
        sys.stderr.write(f"not a secret: {', '.join(names)}. Run `make env` for random ones.\n")
        return 2
    _write_private(
        Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]),
        json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}),
    )
    scheme, _, address = os.environ[f"{_LAKE}S3__ENDPOINT"].partition("://")
    store = S3FileSystem(
        access_key=os.environ[f"{_LAKE}S3__ACCESS_KEY_ID"],
        secret_key=os.environ[f"{_LAKE}S3__SECRET_ACCESS_KEY"],
        endpoint_override=address,
        scheme=scheme,
        region=os.environ[f"{_LAKE}S3__REGION"],
        allow_bucket_creation=True,
    )
    store.create_dir(os.environ[f"{_LAKE}WAREHOUSE"].removeprefix("s3://").strip("/"))
    return subprocess.run(["airflow", "db", "migrate"], check=False).returncode  # noqa: S607


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
        handle.write(text)


if __name__ == "__main__":
    sys.exit(main())
