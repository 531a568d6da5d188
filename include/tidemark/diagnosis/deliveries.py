"""What the sources have: valid files, and landing folders with dump files that match."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tidemark.diagnosis.findings import Finding, ok, problem, warning
from tidemark.dumps.listing import find
from tidemark.dumps.unmatched import Unmatched, unmatched
from tidemark.errors import ConfigurationError
from tidemark.sources.files import default_folder, read_sources
from tidemark.sources.model import Source
from tidemark.text import first_line

_BEGIN: Final = "`tidemark init NAME SAMPLE...` writes a source file"

_VALIDATE: Final = "correct the file; `tidemark validate` shows the line"


_LANDING: Final = "TIDEMARK_LANDING"

_DELIVER: Final = (
    f"let {_LANDING} name the folder of your dumps; for the bundled sources, `make demo` and `make up` write dumps of "
    "their own"
)


def known() -> tuple[list[Source], list[Finding]]:
    """Return the valid sources, and what was found about the source files."""
    folder = default_folder()
    try:
        sources, problems = read_sources(folder)
    except ConfigurationError as error:
        return [], [problem("sources", str(error), _BEGIN)]
    wrong = [
        problem("source file", f"{each.path}:{each.line}: {each.key}: {each.message}", _VALIDATE) for each in problems
    ]
    if not sources and not wrong:
        empty = warning("sources", f"no source file in {folder}", "`tidemark init NAME SAMPLE...` writes one")
        return [], [empty]
    return sources, [*wrong, ok("sources", f"{len(sources)} valid in {folder}")]


def examined(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield for each source what its landing path matches; sources that lack the same folder are one finding."""
    lacking: dict[str, list[str]] = {}
    for source in sources:
        found = _landing(source)
        if isinstance(found, Finding):
            yield found
        else:
            lacking.setdefault(found.path, []).append(source.source)
    for path, named in lacking.items():
        what, lack = f"landing of {', '.join(named)}", f"there is no {path}, so no file can match"
        if path == str(Path("landing").absolute()) and not os.environ.get(_LANDING):
            yield warning(what, f"{lack}: it is used because {_LANDING} is not set", _DELIVER)
            continue
        do = "create the folder, or correct `landing` in the source file, and the environment variables that it names"
        yield problem(what, lack, do)


def _landing(source: Source) -> Finding | Unmatched:
    """Return what the landing path matches, or the part of it that is certainly not there."""
    what, path = f"landing of {source.source}", source.landing
    try:
        files = find(path, start=None, end=None, zone=source.zone).files
        if files:
            return ok(what, f"{len(files)} files match {path}")
        missing = unmatched(path, landed=False)
    except ConfigurationError as error:
        return problem(what, first_line(error), _VALIDATE)
    except OSError as error:
        do = "correct the access to the store, or `landing` in the source file"
        return problem(what, f"{path} cannot be listed: {first_line(error)}", do)
    if missing.certain:
        return missing
    found = f"no file matches {path}; the first part without a match is {missing.path}"
    return warning(what, found, "deliver dump files there, or correct `landing` in the source file")
