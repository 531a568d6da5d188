"""Packages that bring a format to Tidemark, as an installer would put them into a folder."""

from __future__ import annotations

from pathlib import Path

from tidemark import formats


def plug_in(site: Path, package: str, name: str, code: str) -> None:
    """Put a package with one format there: its module with this code, and what its installer notes of it."""
    (site / f"{package}.py").write_text(code)
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{formats.GROUP}]\n{name} = {package}\n")
