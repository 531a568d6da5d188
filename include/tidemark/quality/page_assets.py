"""What Great Expectations' pages show themselves with, laid beside them: a page asks no other host for anything.

The pages name scripts and styles of content networks, and a picture that tells its host who looks. Each that is needed
lies in a pinned WebJar (``pages.lock``) and is copied into the site once; the others are left out.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog

from tidemark import jars

log = structlog.get_logger(__name__)

FOLDER: Final = "vendor"
"""Folder of the site that has the files."""

_FILES: Final[Mapping[str, str]] = {
    "bootstrap.min.css": "bootstrap/4.3.1/css/bootstrap.min.css",
    "bootstrap.min.js": "bootstrap/4.3.1/js/bootstrap.min.js",
    "bootstrap-datepicker.min.css": "bootstrap-datepicker/1.9.0/css/bootstrap-datepicker.min.css",
    "bootstrap-datepicker.min.js": "bootstrap-datepicker/1.9.0/js/bootstrap-datepicker.min.js",
    "bootstrap-table.min.css": "bootstrap-table/1.19.1/dist/bootstrap-table.min.css",
    "bootstrap-table.min.js": "bootstrap-table/1.19.1/dist/bootstrap-table.min.js",
    "bootstrap-table-filter-control.min.css": (
        "bootstrap-table/1.19.1/dist/extensions/filter-control/bootstrap-table-filter-control.min.css"
    ),
    "bootstrap-table-filter-control.min.js": (
        "bootstrap-table/1.19.1/dist/extensions/filter-control/bootstrap-table-filter-control.min.js"
    ),
    "css/all.min.css": "font-awesome/6.6.0/css/all.min.css",
    "webfonts/fa-regular-400.woff2": "font-awesome/6.6.0/webfonts/fa-regular-400.woff2",
    "webfonts/fa-solid-900.woff2": "font-awesome/6.6.0/webfonts/fa-solid-900.woff2",
    "font-awesome-licence.txt": "font-awesome/6.6.0/LICENSE.txt",
    "jquery.min.js": "jquery/3.7.1/jquery.min.js",
    "popper.min.js": "popper.js/1.14.3/umd/popper.min.js",
}
"""File in the folder -> its place in a WebJar."""

_WEBJARS: Final = "META-INF/resources/webjars/"

_NAMES: Final = {
    **{name.rpartition("/")[2]: name for name in _FILES},
    "jquery-3.7.1.min.js": "jquery.min.js",
    "bootstrap-table-filter-control.css": "bootstrap-table-filter-control.min.css",
}
"""How the pages name a file -> the file in the folder."""

_ELEMENT: Final = re.compile(
    r"<link\b[^>]*?href=\"(https?:[^\"]*)\"[^>]*>|<script\b[^>]*?src=\"(https?:[^\"]*)\"[^>]*></script>"
)

_PICTURES: Final = re.compile(r"(static_images_dir = )\"https?:[^\"]*\"")

_BACKGROUNDS: Final = re.compile(r"url\(['\"]?https?:[^)]*\)")

_POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'self' file: 'unsafe-inline'; style-src 'self' file: 'unsafe-inline'; font-src 'self' file:; "
    "img-src 'self' file: data:; base-uri 'none'; form-action 'none'\">"
)
"""The pages have scripts and styles of their own in them, so these are allowed. No other host is."""


def lay_out(site: Path) -> None:
    """Copy the files into a site, unless they are there. Without the WebJars, pages look plain."""
    folder = site / FOLDER
    if all((folder / name).exists() for name in _FILES):
        return
    paths = [path for jar in jars.locked(jars.PAGES_LOCK) if (path := jars.folder() / jar.filename).is_file()]
    found: set[str] = set()
    for path in paths:
        with zipfile.ZipFile(path) as content:
            inside = set(content.namelist())
            for name, place in ((name, place) for name, place in _FILES.items() if _WEBJARS + place in inside):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                fresh = folder / f"{name}.new"
                fresh.write_bytes(content.read(_WEBJARS + place))
                fresh.replace(folder / name)
                found.add(name)
    if missing := sorted(_FILES.keys() - found):
        log.warning("page_assets_missing", files=missing, next=jars.FETCH)


def own(template: str) -> str:
    """Return a template of Great Expectations that asks for files of the site alone, by the variable ``vendor``."""
    text = _PICTURES.sub(r'\1vendor ~ "static/images/"', _BACKGROUNDS.sub("none", _ELEMENT.sub(_ours, template)))
    text = text.replace('static_images_dir + "favicon.ico"', 'vendor ~ "static/images/favicon.ico"')
    return text.replace("<head>", f"<head>\n    {_POLICY}", 1)


def _ours(found: re.Match[str]) -> str:
    address = found[1] or found[2]
    name = _NAMES.get(address.partition("?")[0].rpartition("/")[2])
    if name is None:
        return ""
    place = f"{{{{ vendor }}}}{FOLDER}/{name}"
    return f'<link rel="stylesheet" href="{place}">' if found[1] else f'<script src="{place}"></script>'
