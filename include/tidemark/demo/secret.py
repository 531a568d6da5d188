"""The secret of the masks of ``shop_options``: made once for each home, and given to tasks by their environment."""

from __future__ import annotations

import secrets
from pathlib import Path

from tidemark.lake.catalog import home
from tidemark.services.private_files import write_private

VARIABLE = "SHOP_MASK_SECRET"


def secret_file() -> Path:
    """Return the file that holds the secret, in the demo's folder."""
    return home() / "demo" / "mask-secret"


def make_secret() -> None:
    """Write a random secret to a file that only its owner may read, unless it is there."""
    file = secret_file()
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    write_private(file, secrets.token_hex(32))


def environment_of_masks() -> dict[str, str]:
    """Return the environment variable with the secret; nothing where no secret was made."""
    file = secret_file()
    return {VARIABLE: file.read_text(encoding="utf-8")} if file.exists() else {}
