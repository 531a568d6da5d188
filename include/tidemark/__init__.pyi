from pathlib import Path

from tidemark.api import Source as Source
from tidemark.api import decode as decode
from tidemark.api import run as run

__version__: str
PACKAGE: Path
INCLUDE: Path
