"""The site: static pages beside the Data Docs. Only pages that changed are written.

Runs of several sources may write at the same time. A lock gives the site one writer, and a page is replaced as a whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tidemark.lake.catalog import home
from tidemark.lake.lake import Lake
from tidemark.lake.locks import only_writer
from tidemark.report import pages
from tidemark.report.figures import Figures, figures_of
from tidemark.report.overview import overview, summary_of
from tidemark.report.views import cut_view, source_view, table_view
from tidemark.report.words import cut_page, file_name, table_page

_SUMMARY, _WRITTEN = "summary.json", "pages.json"

_DOCS = "gx/uncommitted/data_docs/local_site/index.html"


def folder() -> Path:
    """Return the folder of the site."""
    return home() / "quality" / "site"


def index_page() -> Path:
    """Return the page of all sources."""
    return folder() / "index.html"


def write(
    lake: Lake, sources: Iterable[str], *, only: Container[str] | None = None, with_keys: Container[str] = ()
) -> list[Figures]:
    """Write the pages of some sources, and the page of all sources; return the figures that the pages show.

    Args:
        lake: the lake.
        sources: names of the sources.
        only: the sources that there are; pages of any other are dropped. None: none are dropped.
        with_keys: the sources whose files allow keys of rows.
    """
    found = [figures_of(lake, source, keys=source in with_keys) for source in sources]
    write_figures(found, only=only)
    return found


def drop(source: str) -> None:
    """Drop the pages of a source, if it has any. They can be written again.

    Raises:
        OSError: they cannot be removed.
    """
    pages_of_source = folder() / file_name(source)
    if pages_of_source.exists():
        with only_writer(folder()):
            shutil.rmtree(pages_of_source)


def write_figures(found: Iterable[Figures], *, only: Container[str] | None = None) -> None:
    """Write the pages that show some figures; arguments as ``write``."""
    with only_writer(folder()):
        for figures in found:
            _write_source(figures)
        summaries = []
        for file in sorted(folder().glob(f"*/{_SUMMARY}")):
            summary = msgspec.json.decode(file.read_bytes())
            if only is not None and summary["source"] not in only:
                shutil.rmtree(file.parent)
            else:
                summaries.append(summary)
        _write_pages(folder(), {"index.html": ("overview.html", overview(summaries) | {"docs": _docs(1)})})


def _write_source(figures: Figures) -> None:
    place = folder() / file_name(figures["source"])
    place.mkdir(parents=True, exist_ok=True)
    docs = {"docs": _docs(2)}
    made: dict[str, tuple[str, Mapping[str, Any]]] = {"index.html": ("source.html", source_view(figures) | docs)}
    for name in figures["status"]["tables"]:
        made[table_page(name)] = ("table.html", table_view(figures, name))
    for number, cut in enumerate(figures["cuts"]):
        made[cut_page(cut["cut"])] = ("cut.html", cut_view(figures, number) | docs)
    _write_pages(place, made)
    _replace(place / _SUMMARY, msgspec.json.encode(summary_of(figures)))


def _write_pages(place: Path, made: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Write the pages that changed, and drop the pages that are no longer made."""
    record = place / _WRITTEN
    before = msgspec.json.decode(record.read_bytes(), type=dict[str, str]) if record.exists() else {}
    now = {name: pages.digest(template, view) for name, (template, view) in made.items()}
    for name, (template, view) in made.items():
        if before.get(name) != now[name] or not (place / name).exists():
            _replace(place / name, pages.render(template, view).encode())
    for name in before.keys() - now.keys():
        (place / name).unlink(missing_ok=True)
    if now != before:
        _replace(record, msgspec.json.encode(now))


def _replace(file: Path, content: bytes) -> None:
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_bytes(content)
    fresh.replace(file)


def _docs(deep: int) -> str:
    """Return the way to the Data Docs from a page that lies ``deep`` folders below theirs; empty if there are none."""
    return "../" * deep + _DOCS if (home() / "quality" / _DOCS).exists() else ""
