"""The report in a real browser: on a phone and a desktop, in light and in dark, with its policy in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import PROGRAM, Tab, browser
from support.ledgers import Written, counts
from tidemark.lake.lake import Lake
from tidemark.report import site
from tidemark.report.words import table_page

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: apt-get install chromium")

_LONG = "a_table_with_a_name_that_is_longer_than_a_phone_is_wide"

_PAGES = ("index.html", "seen/index.html", f"seen/{table_page(f'seen.{_LONG}')}", "seen/cut-30.html")


@pytest.fixture(scope="module")
def tab(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A browser, and the report of a source with long names, many cuts and a failed one."""
    seen = Written(lake, "seen")
    for number in range(1, 31):
        bad = number == 30
        check = {"target": f"seen.{_LONG}", "name": "expect_column_values_to_be_between", "columns": (_LONG,)}
        seen.cut(
            number,
            {_LONG: counts(90, day=number, rows=900 * number, superseded=30, quarantined=5)},
            state="failed" if bad else "published",
            checks=[check | {"success": not bad, "observed": f"{number} of 90 unexpected"}],
            quarantined=7,
        )
    seen.write()
    site.write(lake, ["seen"], only=["seen"])
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.parametrize("page", _PAGES)
@pytest.mark.parametrize("width", [320, 375, 1280])
def test_a_page_fits_the_window_and_asks_for_nothing(tab: Tab, page: str, width: int) -> None:
    """No page is wider than the window, breaks its policy, or asks for anything but itself; its style is applied."""
    address = (site.folder() / page).as_uri()
    tab.look(width=width)
    tab.open(address)
    assert tab.requests() == [address]
    assert tab.complaints() == []
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value("getComputedStyle(document.querySelector('h1')).fontWeight") == "700"
    small = "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height).filter(h => h < 9)"
    assert tab.value(f"{small}.length") == 0


def test_the_page_follows_the_colour_scheme_and_the_keyboard(tab: Tab) -> None:
    """Dark is dark, light is light; the first stop of the keyboard leads to the content, the next ones are links."""
    tab.open(site.index_page().as_uri())
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.look(width=1280, dark=True)
    assert tab.value(ground) == "rgb(16, 23, 30)"
    tab.look(width=1280)
    assert tab.value(ground) == "rgb(255, 255, 255)"
    focused = []
    for _ in range(3):
        tab.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        focused.append(tab.value("document.activeElement.getAttribute('href')"))
    assert focused == ["#content", "seen/index.html", "seen/cut-30.html"]


def test_a_link_of_the_heat_map_leads_to_the_cut(tab: Tab, tmp_path: Path) -> None:
    """A click on the newest day of a source opens the page of its cut."""
    tab.open(site.index_page().as_uri())
    link = tab.value("[...document.querySelectorAll('a.cell')].at(-1).href")
    tab.open(link)
    assert tab.value("document.querySelector('h1').textContent") == "Cut 30 of seen"
