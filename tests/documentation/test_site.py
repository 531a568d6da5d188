"""The documents as a site: it is built whole, opens as files, and its search finds pages there."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.browser import PROGRAM, browser

ROOT = Path(__file__).parents[2]

CHECK = runpy.run_path(str(ROOT / "docs" / "site" / "check.py"))["main"]

_SEARCH = """
document.querySelector('label[for="__search"]').click();
const field = document.querySelector('.md-search__input');
field.focus(); field.value = 'quarantine retry';
field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
field.dispatchEvent(new Event('input', {bubbles: true}));
"""


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ('<a href="https://x.org/">x</a><link rel="canonical" href="https://x.org/"><img src="a.png">', False),
        ('<script src="https://x.org/a.js"></script>', True),
        ('<link rel="stylesheet" href="//x.org/a.css">', True),
        ('<picture><source srcset="http://x.org/a.png"></picture>', True),
    ],
)
def test_what_a_page_loads_from_another_host_is_told(text: str, foreign: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """A link is followed by a reader; a script, a picture and a style are not."""
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.js").touch()
    (tmp_path / "index.html").write_text(text, "utf-8")
    if not foreign:
        CHECK(tmp_path)
        return
    with pytest.raises(SystemExit, match=r"x\.org"):
        CHECK(tmp_path)


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: apt-get install chromium")
def test_the_site_is_searched_as_files(tmp_path: Path) -> None:
    """`make docs`, then a page that no web server serves: the search finds pages, and asks no other host."""
    make = shutil.which("make")
    assert make
    subprocess.run([make, "docs"], cwd=ROOT, check=True, capture_output=True)
    page = min((ROOT / "build" / "site").glob("index.html")).as_uri()
    with browser(tmp_path / "profile") as tab:
        tab.open(page)
        tab.value(_SEARCH)
        end = time.monotonic() + 60
        while not (found := tab.value("document.querySelectorAll('.md-search-result__item').length")):
            assert time.monotonic() < end, "the search finds nothing"
            time.sleep(0.2)
        assert found > 3
        assert all(asked.startswith(("file:", "data:")) for asked in tab.requests()), tab.requests()
