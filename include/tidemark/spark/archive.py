"""The package ``tidemark`` as one zip file, for the executors of a cluster."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

from tidemark import PACKAGE, __version__
from tidemark.lake.catalog import home


def archive() -> Path:
    """Return the path of a zip file of ``tidemark``, for ``spark-submit --py-files``.

    The file is made once for each state of the package's files. The libraries that the workers import (pyarrow,
    msgspec, pyiceberg) are not in it, because they belong to the Python environment of the cluster.
    """
    files = sorted(file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    state = hashlib.sha256()
    for file in files:
        status = file.stat()
        state.update(f"{file.relative_to(PACKAGE)} {status.st_size} {status.st_mtime_ns}\n".encode())
    made = home() / "package" / f"tidemark-{__version__}-{state.hexdigest()[:12]}.zip"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        temporary = made.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as content:
            for file in files:
                content.write(file, Path(PACKAGE.name) / file.relative_to(PACKAGE))
        temporary.replace(made)
    return made
