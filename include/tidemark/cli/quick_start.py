"""What lets a command begin sooner."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    """Says that pandas is not installed."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Raise the error of a module that is missing."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def keep_pandas_out() -> None:
    """Let PyArrow do without pandas until it is to convert something to pandas.

    Where pandas is installed, PyArrow imports it to make its first array. That takes 0.4 CPU seconds, a third of the
    start of `tidemark status`. PyArrow looks for it once, and again when a conversion needs it.

    Not for commands that show the values of tables: PyArrow needs pandas for times with nanoseconds.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(finder)
