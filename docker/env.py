"""``make env``: write ``.env`` with random secrets for docker-compose.yaml.

It uses only the standard library, and prints no secret.
"""

from __future__ import annotations

import os
import secrets
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

SECRETS: Mapping[str, int] = {
    "POSTGRES_PASSWORD": 24,
    "S3_ACCESS_KEY": 16,
    "S3_SECRET_KEY": 32,
    "AIRFLOW_ADMIN_PASSWORD": 18,
    "AIRFLOW_JWT_SECRET": 64,
    "AIRFLOW_SESSION_KEY": 64,
    "AIRFLOW_FERNET_KEY": 32,
}
"""Variable -> number of random bytes."""


def main(file: Path) -> int:
    """Write the file and return the exit status: 2 if the file exists, because its secrets may be in use."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.stderr.write(f"{file} exists already and was left as it is: remove it to make new secrets\n")
        return 2
    with os.fdopen(handle, "w", encoding="utf-8") as env:
        env.writelines(f"{name}={_made(name, size)}\n" for name, size in SECRETS.items())
    return 0


def _made(name: str, size: int) -> str:
    made = secrets.token_bytes(size)
    # Fernet needs Base64. The other secrets stand in addresses and JSON, where only letters and digits are safe.
    return urlsafe_b64encode(made).decode() if name == "AIRFLOW_FERNET_KEY" else made.hex()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
