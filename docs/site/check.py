"""Fails if a page of the site loads anything from another host: ``python docs/site/check.py FOLDER``.

``make docs`` runs it. Links to other hosts are fine: a reader follows them, a page does not.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "link": "href"}
"""Tag -> the attribute that a browser loads by itself."""

_ONLY_NAMED = frozenset({"canonical", "prev", "next", "alternate"})
"""Kinds of ``link`` that a browser does not load."""


class _Loads(HTMLParser):
    """What a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(_LOADS.get(tag, "")) or ""
        is_named = tag == "link" and given.get("rel") in _ONLY_NAMED
        if not is_named and address.startswith(("http:", "https:", "//")):
            self.foreign.append(address)


def main(folder: Path) -> None:
    """Look at all pages below a folder; end with status 1 and the addresses that are of other hosts."""
    pages = sorted(folder.rglob("*.html"))
    found = []
    for page in pages:
        parser = _Loads()
        parser.feed(page.read_text("utf-8"))
        found += [f"{page}: {address}" for address in parser.foreign]
    if not pages or not (folder / "search" / "search_index.js").is_file():
        found.append(f"{folder}: no page, or nothing to search in")
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
