"""PySpark's daemon of Python workers. It imports the modules that workers need before it forks the workers.

Spark ends workers that were idle for a minute, for example between the runs of a schedule. Importing the modules takes
a new worker more than half a second of processor time. A fork of this process has them already.
"""

from __future__ import annotations

import gc

import pyspark.sql.pandas.serializers  # noqa: F401
import pyspark.sql.pandas.types  # noqa: F401

# Importing it also reads from the command line which module works in the forks.
from pyspark.daemon import manager

import tidemark.dumps.tasks  # noqa: F401
import tidemark.normalization.tasks  # noqa: F401
import tidemark.values.image_reader  # noqa: F401  the forks begin with all three
from tidemark import formats


def main() -> None:
    """Import all formats, then fork workers until Spark ends the daemon."""
    for name in formats.names():
        formats.resolve(name)
    gc.freeze()  # else collecting garbage in a fork would copy the memory pages of the modules
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
