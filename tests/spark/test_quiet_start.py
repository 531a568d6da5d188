"""What a JVM writes to standard error is passed on, but for the lines that every start of Spark prints."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import subprocess, sys
from tidemark.spark.quiet_start import without_banner
with without_banner():
    child = subprocess.Popen(["sh", "-c", 'echo "WARNING: Using incubator modules: jdk.incubator.vector" >&2; '
        'echo "Setting default log level to \\\\"WARN\\\\"." >&2; echo "out of memory" >&2; read go; echo "later" >&2'],
        stdin=subprocess.PIPE)
sys.stderr.write("from python\\n")
child.communicate(b"go\\n")
import threading
for thread in threading.enumerate():
    if thread.name.startswith("stderr"):
        thread.join(10)
"""


def test_only_the_banner_is_left_out() -> None:
    """Lines of the whole life of the child come through, and standard error is this process's own again."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert sorted(done.stderr.splitlines()) == ["from python", "later", "out of memory"]
