"""Takes the pictures of this folder: ``python docs/pictures/generate.py``, after ``make demo``; it needs Chromium.

The pages are those of the report in ``TIDEMARK_HOME``, in light and in dark, on a desktop and on a phone.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

sys.path[:0] = [str(ROOT / "include"), str(ROOT / "tests")]

from support.browser import browser  # noqa: E402  the browser of the tests
from tidemark.report import site  # noqa: E402

FOLDER = Path(__file__).parent

LARGEST = 200_000
"""Bytes. Whoever opens the README waits for its pictures."""


class Picture(NamedTuple):
    """A picture of a page of the report."""

    name: str
    page: str
    """Pattern of the page's file below the report; the first one that fits is taken."""
    width: int
    height: int
    """Pixels from the top of the page; what lies below is not in the picture."""
    part: str = "body"
    """CSS selector of the element at the top of the picture."""


PICTURES = (
    Picture("report-table", "shop_canal/table-*orders.html", 1100, 620),
    Picture("report-sources", "index.html", 1100, 960, "#days"),
    Picture("report-source", "shop_canal/index.html", 1100, 900),
    Picture("report-phone", "shop_canal/table-*orders.html", 375, 760),
)

SCHEMES = {"light": False, "dark": True}


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        tab.call("Emulation.setScrollbarsHidden", hidden=True)  # the whole page has none, and other line breaks
        for picture in PICTURES:
            page = min(site.folder().glob(picture.page))
            for scheme, is_dark in SCHEMES.items():
                tab.look(width=picture.width, dark=is_dark)
                tab.open(page.as_uri())
                top = tab.value(f"document.querySelector({picture.part!r}).getBoundingClientRect().top")
                low = min(picture.height, tab.value("document.documentElement.scrollHeight") - top)
                clip = {"x": 0, "y": top, "width": picture.width, "height": low, "scale": 1}
                taken = tab.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
                content = base64.b64decode(taken["data"])
                if len(content) > LARGEST:
                    raise SystemExit(f"{picture.name}: {len(content)} bytes are more than {LARGEST}")
                (FOLDER / f"{picture.name}-{scheme}.png").write_bytes(content)


if __name__ == "__main__":
    main()
