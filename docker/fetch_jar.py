"""Fetch one jar, verify its SHA-256, and put it beside Spark's own: ``fetch_jar.py GROUP:ARTIFACT:VERSION SHA256``."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

from tidemark.jars import Jar, install

group, artifact, version = sys.argv[1].split(":")
install([Jar(group, artifact, version, sys.argv[2])], Path(pyspark.__file__).parent / "jars")
