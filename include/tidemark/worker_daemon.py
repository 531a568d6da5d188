"""PySpark's daemon of Python workers, which imports what they need before it forks them.

Spark ends workers that had nothing to do for a minute, as they have between the runs of a schedule. A new one would
import it all again, for more than half a second of processor time; a fork of this process has it.
"""

from __future__ import annotations

import gc

import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types  # noqa: F401
from pyspark.daemon import manager

from tidemark import formats


def main() -> None:
    """Fork workers until Spark says to end."""
    for name in formats.names():
        formats.resolve(name)
    gc.freeze()  # collecting garbage in a fork would copy the pages of all that
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
