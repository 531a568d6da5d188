"""Pages as a browser sees them: their elements, and whatever they could load from elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_LOADS = {"src", "href", "srcset", "action", "formaction", "data", "poster", "background", "ping", "xlink:href", "cite"}


@dataclass
class Page(HTMLParser):
    """One page, read."""

    path: Path
    links: list[str] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)
    metas: dict[str, str] = field(default_factory=dict)
    styles: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    unnamed: int = 0
    """Drawings without a name for those who cannot see them."""
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in an element."""
        given = {name: value or "" for name, value in attrs}
        self.elements.append(tag)
        self._open.append(tag)
        self.links += [value for name, value in given.items() if name in _LOADS]
        self.handlers += [name for name in given if name.startswith("on") or name == "style"]
        self.ids.update(filter(None, [given.get("id")]))
        if tag == "meta":
            self.metas[given.get("http-equiv") or given.get("name") or "charset"] = given.get("content", "")
        if tag == "svg" and not (given.get("aria-label") or given.get("aria-hidden") == "true"):
            self.unnamed += 1

    def handle_data(self, data: str) -> None:
        """Take in text."""
        if self._open and self._open[-1] == "style":
            self.styles.append(data)
        else:
            self.text += f" {data}"

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        while self._open and self._open.pop() != tag:
            pass

    def broken_links(self) -> list[str]:
        """Return the links that lead nowhere, or out of the folder tree that the page's site lies in."""
        return [link for link in self.links if not self._leads(link)]

    def _leads(self, link: str) -> bool:
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/", link):
            return False
        path, _, place = link.partition("#")
        target = (self.path.parent / unquote(path)).resolve() if path else self.path
        return target.is_file() and (not place or f'id="{place}"' in target.read_text(encoding="utf-8"))
