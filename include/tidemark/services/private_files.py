"""Files with secrets, which only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Replace a file by one that only its owner may read, from its first byte on."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
        handle.write(text)
