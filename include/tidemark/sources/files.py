"""Source files of a folder: finding, reading and validating them together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import (
    BaseModel,
    ValidationError,
)

from tidemark import INCLUDE, formats
from tidemark.errors import ConfigurationError, InvalidSourceError, UnknownNameError
from tidemark.sources.freshness import Freshness
from tidemark.sources.history import History
from tidemark.sources.invariants import Invariants
from tidemark.sources.layout import Layout, overlap
from tidemark.sources.maintenance import Maintenance
from tidemark.sources.model import Source, Table
from tidemark.sources.problems import explain
from tidemark.sources.reconcile import Reconcile
from tidemark.sources.retention import Retention
from tidemark.sources.schema_policy import SchemaPolicies
from tidemark.sources.yaml_document import DocumentError, Location, Problem, Value, read_document
from tidemark.text import first_line, suggestion
from tidemark.values.declared_types import is_pattern

BUNDLED = INCLUDE / "sources"
"""The sources of the demo. A package that pip installed has none beside it."""

FOLDER_VARIABLE = "TIDEMARK_SOURCES"
"""Environment variable that names another folder of source files."""


def load_source(path: Path) -> Source:
    """Read one source file.

    Raises:
        InvalidSourceError: the file has problems; the error lists each with file, line, column and key.
    """
    read = _read(path)
    if isinstance(read, Source):
        return read
    raise _invalid(read)


def load_sources(folder: Path | None = None) -> list[Source]:
    """Read all source files of a folder; return the sources sorted by name.

    The default folder is ``TIDEMARK_SOURCES``, or else ``include/sources``.

    Raises:
        InvalidSourceError: some files have problems; the error lists all of them.
        ConfigurationError: there is no such folder.
    """
    sources, problems = read_sources(folder)
    if problems:
        raise _invalid(problems)
    return sources


def find_source(name: str, folder: Path | None = None) -> Source:
    """Return the source called ``name``. Problems in the files of other sources do not matter.

    Raises:
        UnknownNameError: no file declares it.
        InvalidSourceError: it is not found, and some files have problems.
    """
    files = _files(folder or default_folder())
    # Searching a file for a text takes a hundredth of the time of reading YAML. So the files that contain the name are
    # read first. All files are read if that finds no source, because a file may write the name with escapes.
    for some in ([file for file in files if _mentions(file, name)], files):
        sources, problems = _read_all(some)
        for source in sources:
            if source.source == name:
                return source
    if problems:
        raise _invalid(problems)
    hint = suggestion(name, [source.source for source in sources])
    raise UnknownNameError(f"Unknown source '{name}' in {folder or default_folder()}.{hint}")


def validate(paths: Iterable[Path] = ()) -> tuple[int, list[Problem]]:
    """Return how many source files there are, and every problem of them.

    Args:
        paths: files and folders of source files; default: the default folder.

    Raises:
        ConfigurationError: there is no such file or folder, or a folder has no source file.
    """
    files = []
    for path in list(paths) or [default_folder()]:
        found = _files(path)
        if not found:
            raise ConfigurationError(f"No source file (*.yaml, *.yml) in {path}. Name the folder that has them.")
        files += found
    sources, problems = _read_by_name(files)
    return len(files), [*problems, *_shared_places(sources.values())]


def read_sources(folder: Path | None = None) -> tuple[list[Source], list[Problem]]:
    """Return the valid sources of a folder, sorted by name, and every problem of its other files.

    If two files declare the same name, neither is valid.
    """
    return _read_all(_files(folder or default_folder()))


def _mentions(file: Path, text: str) -> bool:
    try:
        return text.encode() in file.read_bytes()
    except OSError:
        return True  # so that the file is read, which reports the problem


def default_folder() -> Path:
    """Return the folder that ``TIDEMARK_SOURCES`` names, else the bundled sources, else ``sources`` where we are."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else BUNDLED if BUNDLED.is_dir() else Path("sources")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in {".yaml", ".yml"})
    if path.exists():
        return [path]
    raise ConfigurationError(f"No source file or folder at {path}. Name another by {FOLDER_VARIABLE}, or create it.")


def _read_all(files: Sequence[Path]) -> tuple[list[Source], list[Problem]]:
    found, problems = _read_by_name(files)
    return [found[name][1] for name in sorted(found)], problems


def _read_by_name(files: Sequence[Path]) -> tuple[dict[str, tuple[Path, Source]], list[Problem]]:
    """Return by name the valid sources, each with its file, and every problem of the files."""
    found: dict[str, tuple[Path, Source]] = {}
    problems: list[Problem] = []
    twice: set[str] = set()
    for file in files:
        read = _read(file)
        if not isinstance(read, Source):
            problems += read
        elif read.source in found:
            twice.add(read.source)
            problems.append(_declared_twice(file, read.source, found[read.source][0]))
        else:
            found[read.source] = file, read
    return {name: read for name, read in found.items() if name not in twice}, problems


def _shared_places(found: Iterable[tuple[Path, Source]]) -> Iterator[Problem]:
    """Yield a problem for each ``layout.location`` that shares a folder with one in the file of another source.

    Entries for several tables are left out: which folders they make, the names of their tables say.
    """
    earlier: list[tuple[str, str, Path]] = []
    for path, source in found:
        places = [
            (name, table.layout.location)
            for name, table in source.tables.items()
            if table.layout and table.layout.location and not is_pattern(name)
        ]
        for name, place in places:
            other = next((each for each in earlier if overlap(place, each[1])), None)
            if other is not None:
                text = f"it shares a folder with that of {other[0]} in {other[2]}, {other[1]}. Each needs its own."
                yield read_document(path).problem(("tables", name, "layout", "location"), text)
        earlier += [(*each, path) for each in places]


def _read(path: Path) -> Source | list[Problem]:
    try:
        document = read_document(path)
    except DocumentError as error:
        return [error.problem]
    if not isinstance(document.value, Mapping):
        return [document.problem((), "holds no source: begin with 'source:', 'format:' and 'landing:'.")]
    try:
        return Source.model_validate(document.value)
    except ValidationError as error:
        return explain(document, error, _models(document.value))
    except Exception as error:  # noqa: BLE001 - a file that nothing foresaw must not take other sources with it
        return [document.problem((), f"cannot be read as a source: {type(error).__name__}: {first_line(error)}")]


def _models(values: Mapping[str, Value]) -> dict[Location, type[BaseModel]]:
    models: dict[Location, type[BaseModel]] = {
        (): Source,
        ("tables", "*"): Table,
        ("maintenance",): Maintenance,
        ("retention",): Retention,
        ("schema",): SchemaPolicies,
        ("reconcile",): Reconcile,
        ("invariants",): Invariants,
        ("freshness",): Freshness,
        ("tables", "*", "freshness"): Freshness,
        ("tables", "*", "layout"): Layout,
        ("tables", "*", "history"): History,
        ("tables", "*", "schema"): SchemaPolicies,
    }
    if values.get("format") in formats.names():
        models["options",] = formats.resolve(str(values["format"])).Options
    return models


def _declared_twice(path: Path, name: str, first: Path) -> Problem:
    return read_document(path).problem(("source",), f"'{name}' is declared in {first} already. Rename one of the two.")


def _invalid(problems: Sequence[Problem]) -> InvalidSourceError:
    return InvalidSourceError("\n\n".join(map(str, problems)))
