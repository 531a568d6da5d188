"""The report: figures of the ledger on static pages that load nothing and keep names harmless."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from support.html_pages import Page
from support.ledgers import Written, counts, moment
from tidemark.cli.app import app
from tidemark.lake.lake import Lake
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.event_counts import NO_EVENTS
from tidemark.ledger.landing_rows import RefusalRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.tally import Seen
from tidemark.pipeline import REPORT_VARIABLE, run_stage
from tidemark.queries.status import status_of
from tidemark.report import site
from tidemark.report.figures import CUTS, figures_of
from tidemark.report.overview import by_day, overview
from tidemark.report.views import FATES
from tidemark.sources.model import Source

HOSTILE = "<script>alert('x')</script>"
TURNED = "turned\u202eedis"
SECRET = "sent-to-nobody"  # noqa: S105 - it stands for a value of a row


@pytest.fixture(scope="module", autouse=True)
def _written(lake: Lake) -> None:
    """Sources in every state: calm, hostile and failed, held, with one cut, and one whose first check failed."""
    calm = Written(lake, "calm")
    for number in range(1, 4):
        null = {"target": "calm.orders", "name": "null keys"}
        calm.cut(number, {"orders": counts(9, day=number, rows=10 * number, superseded=2)}, checks=[null])
    calm.write()
    _contradicted(calm)
    _hostile(Written(lake, "odd"))
    held = Written(lake, "held_one")
    held.cut(1, {"orders": counts(9, day=1, rows=10)})
    limit = {"target": "held_one.orders", "name": "rows deleted beyond the limit", "success": False, "observed": "7"}
    held.cut(2, {"orders": counts(9, day=9, rows=1) | {"verdict": "held"}}, state="held", checks=[limit])
    held.write()
    single = Written(lake, "single")
    single.cut(1, {"orders": counts(1, day=1, rows=1)})
    single.write()
    first = Written(lake, "first_fails")
    null = {"target": "first_fails.orders", "name": "null keys", "success": False, "observed": "3"}
    first.cut(1, {"orders": counts(3, day=2, rows=3) | {"verdict": "failed"}}, state="failed", checks=[null])
    first.write()
    site.write(lake, ["calm", "odd", "held_one", "single", "first_fails"])


def _contradicted(calm: Written) -> None:
    row = ContradictionRow(
        cut=2, object="orders", kind="missing_rows", events=3, position="1", file=f"/{HOSTILE}", place=7
    )
    calm.ledger.replace(ContradictionRow, [row])
    compared = ReconciliationRow(
        run=1,
        object="orders",
        target="calm.orders",
        result="differs",
        cut=2,
        batch=2,
        source_rows=21,
        lake_rows=20,
        lost=1,
        keys=json.dumps([{"why": "lost", "kind": "lost", "key": {"id": SECRET}}]),
    )
    calm.ledger.replace(ReconciliationRow, [compared])


def _hostile(odd: Written) -> None:
    fine = {"target": f"odd.{HOSTILE}", "name": "null keys"}
    odd.cut(1, {HOSTILE: counts(5, day=1, rows=5), "Orders": counts(1, day=1, rows=1)}, checks=[fine], quarantined=2)
    bad = fine | {"name": HOSTILE, "columns": ("<b>", TURNED), "success": False, "observed": "4 of 9 unexpected"}
    warned = fine | {"name": "expect_x", "severity": "warn", "success": False, "observed": "1 of 9 unexpected"}
    tables = {
        HOSTILE: counts(9, day=2, rows=9) | {"verdict": "failed"},
        "orders": counts(2, day=2, rows=2, held=2) | {"state": "unmoved", "verdict": None},
        "Orders": {"state": "stopped", "reason": f"a column {HOSTILE} became narrower", "target": "odd.Orders"},
    }
    odd.cut(2, tables, state="failed", checks=[warned, fine, bad])
    odd.statement(1, HOSTILE, f"ALTER TABLE t ADD c text DEFAULT '{SECRET}' COMMENT \"{SECRET}\"")
    odd.write()
    place = {"batch": 1, "reason": "malformed", "detail": SECRET, "value": SECRET.encode(), "key": SECRET.encode()}
    odd.set_aside([place | {"file": f"/landing/{HOSTILE}", "place": 7}, place | {"file": "/b", "place": 3}])
    odd.ledger.replace(RefusalRow, [RefusalRow(path=f"/landing/{HOSTILE}", problem="it ends early")])
    seen = msgspec.json.encode(Seen(id=HOSTILE, tables={"orders": (2, 2)})).decode()
    odd.ledger.replace(TransactionRow, [TransactionRow(batch=2, id="1", state="open", since=2, events=2, seen=seen)])


def _pages() -> dict[str, Page]:
    return {str(file.relative_to(site.folder())): Page(file) for file in sorted(site.folder().rglob("*.html"))}


def _text(path: str) -> str:
    return " ".join(Page(site.folder() / path).text.split())


def test_a_page_loads_nothing_and_its_links_stay_in_the_site() -> None:
    """No page has a script, a handler, a style beside its one, or a link that is not relative and leads to a page."""
    pages = _pages()
    assert len(pages) >= 1 + 5 + 9 + 7  # all sources, a source, a cut, a table
    for name, page in pages.items():
        assert not page.broken_links(), name
        assert not page.handlers, name
        assert not {"script", "link", "img", "iframe", "object", "form", "base", "video"} & set(page.elements), name
        assert not re.search(r"url\(|@import|//", "".join(page.styles)), name
        assert "://" not in page.path.read_text(encoding="utf-8"), name


def test_a_page_forbids_everything_but_its_own_style() -> None:
    """The policy is strict and names the digest of the page's only style."""
    for name, page in _pages().items():
        (style,) = page.styles
        sha = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        expected = f"default-src 'none'; style-src 'sha256-{sha}'; base-uri 'none'; form-action 'none'"
        assert page.metas["Content-Security-Policy"] == expected, name


def test_names_are_text_and_never_markup_nor_a_path() -> None:
    """A table, a check, a file and a transaction with hostile names are shown as text; page names are unique."""
    pages = _pages()
    assert all(HOSTILE not in page.path.read_text(encoding="utf-8") for page in pages.values())
    assert HOSTILE in pages["odd/index.html"].text
    assert HOSTILE in pages["odd/cut-2.html"].text
    assert "turned\\u202eedis" in pages["odd/cut-2.html"].text
    names = [name for name in pages if name.startswith("odd/table-")]
    assert len({name.lower() for name in names}) == 3  # Orders and orders, too
    assert all(re.fullmatch(r"odd/table-[a-z0-9_.~-]+\.html", name) for name in names)


def test_nothing_of_a_row_is_shown() -> None:
    """Neither bytes nor reasons of quarantined messages, nor texts in statements get on a page or into the figures."""
    assert not [name for name, page in _pages().items() if SECRET in page.path.read_text(encoding="utf-8")]
    assert "/b at 3" in _text("odd/index.html")
    assert "ADD c text DEFAULT '...' COMMENT '...'" in _text("odd/index.html")
    assert SECRET not in json.dumps(figures_of(Lake.open(), "odd"))
    assert SECRET not in json.dumps(figures_of(Lake.open(), "calm"))


def test_figures_are_those_of_status_and_ledger(lake: Lake) -> None:
    """Totals equal ``status``, cuts equal the ledger, and pages show both."""
    figures, status = figures_of(lake, "calm"), status_of(lake, "calm", Ledger(lake, "calm"))
    table = status["tables"]["calm.orders"]
    assert {key: table[key] for key in table if key != "lag_seconds"} == figures["status"]["tables"]["calm.orders"]
    assert (
        figures["status"]["messages"]
        == status["messages"]
        == {"landed": 30, "decoded": 27, "control": 3, "quarantined": 0}
    )
    assert sum(cut["events"]["superseded"] for cut in figures["cuts"]) == table["superseded"] == 6
    assert [cut["operations"] for cut in figures["cuts"]] == [{"INSERT": 6, "UPDATE": 3}] * 3
    assert [cut["newest_commit"] for cut in figures["cuts"]] == [moment(day).isoformat() for day in (1, 2, 3)]
    page = _text("calm/index.html")
    assert "messages landed 30" in page
    assert "events superseded 6" in page
    assert "calm.orders ✓ passed 30" in page
    page = _text("calm/table-calm.orders.html")
    assert f"2 3 updates or deletes of rows that were not there /{HOSTILE} at 7" in page
    assert "different 21 20 0 1 0 0" in page


def test_the_overview_says_what_needs_a_person_and_the_command() -> None:
    """Failed and held cuts, stopped tables and refused files come first; each has its command."""
    text = _text("index.html")
    urgent = (
        text.index("Cut 2 failed 1 check"),
        text.index("is stopped: a column"),
        text.index("is refused: it ends early"),
    )
    assert max(urgent) < text.index("2 messages in quarantine: malformed.")
    for command in (
        "tidemark check odd && tidemark publish odd",
        "tidemark publish held_one --approve 2",
        "tidemark quarantine list odd",
        "tidemark check first_fails && tidemark publish first_fails",
    ):
        assert command in text
    assert re.search(r"1 transaction open since \d{4}-\d\d-\d\d \d\d:\d\d UTC; (1 event|\d+ events) held\.", text)
    page = (site.folder() / "index.html").read_text(encoding="utf-8")
    assert 'href="held_one/cut-2.html" aria-label="held_one, 2026-03-10: held, 1 cuts, 9 events"' in page


def test_the_parts_of_events_that_pages_show_add_up_to_all_events() -> None:
    """No fate is left out of flows, bars and tables: erased events neither."""
    assert {"events", *FATES} == NO_EVENTS.by_name().keys()
    page = (site.folder() / "calm" / "cut-2.html").read_text(encoding="utf-8")
    assert all(f'<th scope="col" class="number">{name}</th>' in page for name in FATES)
    style = (site.folder() / "calm" / "index.html").read_text(encoding="utf-8")
    assert all(f".k-{name}" in style for name in FATES)


def test_a_cut_is_of_no_day_after_it_was_made() -> None:
    """A commit time in the future does not move the days of every source out of sight."""
    cuts = [
        {"newest_commit": commit, "at": "2026-03-02T06:00:00+00:00", "verdict": "passed", "cut": 1, "events": counts}
        for commit, counts in ((None, {"events": 1}), ("2026-03-01T23:00:00+00:00", {"events": 2}))
    ]
    cuts.append({**cuts[0], "newest_commit": "2099-01-01T00:00:00+00:00", "events": {"events": 4}})
    assert {day: found["events"] for day, found in by_day(cuts).items()} == {"2026-03-02": 5, "2026-03-01": 2}


def test_what_was_found_after_publishing_needs_a_person_too(lake: Lake) -> None:
    """Rows that the source database has otherwise are urgent, as is a check on demand; each has its command."""
    source = Written(lake, "later")
    bad = {"target": "later.orders", "stage": "quality", "name": "expect_x", "success": False}
    source.cut(1, {name: counts(9, day=1, rows=10) for name in ("orders", "lines", "tags", "notes")}, checks=[bad])
    source.write()
    compared = {
        "orders": {"result": "differs", "lost": 1000, "different": 2},
        "lines": {"result": "not_compared", "reason": "the user sees no such table"},
        "tags": {"result": "behind", "behind": 3},
        "notes": {"result": "equal"},
    }
    rows = [
        ReconciliationRow(run=1, object=name, target=f"later.{name}", cut=1, batch=1, **fields)
        for name, fields in compared.items()
    ]
    source.ledger.replace(ReconciliationRow, rows)
    assert figures_of(lake, "later")["attention"] == [
        {
            "level": "urgent",
            "text": "Cut 1 failed 1 check on demand: later.orders: expect_x.",
            "command": "tidemark quality later --cut 1",
            "cut": 1,
        },
        {
            "level": "urgent",
            "text": "Table later.orders differs from the source database: 1000 lost, 2 different.",
            "command": "tidemark reconcile later later.orders",
            "cut": None,
        },
        {
            "level": "look",
            "text": "Table later.lines could not be compared with the source database: the user sees no such table",
            "command": "tidemark reconcile later later.lines",
            "cut": None,
        },
    ]


def test_what_is_urgent_is_in_sight_and_the_rest_unfolds() -> None:
    """Few entries stand above the days; no urgent one is folded away, and none is lost."""

    def summary(number: int, level: str) -> dict[str, Any]:
        item = {"level": level, "text": f"{level} {number}", "command": None, "cut": None}
        return {"source": f"s{number}", "days": {}, "attention": [item]}

    for urgent, look, shown in ((0, 6, 6), (0, 9, 6), (2, 9, 6), (8, 3, 8), (0, 0, 0)):
        given = [summary(n, "look") for n in range(look)] + [summary(n, "urgent") for n in range(urgent)]
        found = overview(given)
        assert [item["level"] for item in found["todo"]] == ["urgent"] * urgent + ["look"] * (shown - urgent)
        assert len(found["todo"]) + len(found["more"]) == urgent + look
        assert all(item["level"] == "look" for item in found["more"])


def test_a_failed_cut_shows_its_failed_checks_first() -> None:
    """The page of the cut begins with what failed, blocking and warning; the rest stands below."""
    text = _text("odd/cut-2.html")
    failed, rest = text.index("Checks that failed"), text.index("All checks")
    assert failed < text.index("4 of 9 unexpected") < text.index("What landed with it") < rest
    assert "✕ failed" in text
    assert "! warned" in text


def test_plots_are_named_and_have_their_numbers_beside_them() -> None:
    """A drawing has a name for those who cannot see it, and a table of its numbers, also where there is one cut."""
    for name, page in _pages().items():
        assert not page.unnamed, name
        assert page.elements.count("figure") <= page.elements.count("details"), name
    single = Page(site.folder() / "single" / "index.html")
    assert single.elements.count("figure") == 5
    assert "circle" in single.elements
    assert "nan" not in single.path.read_text(encoding="utf-8").lower().replace("name", "")


def test_a_first_check_that_fails_is_reported_though_nothing_is_published() -> None:
    """The report of a source whose only cut failed shows no published cut, and the check."""
    text = _text("first_fails/index.html")
    assert "published cut none" in text
    assert "null keys" in text


def test_only_pages_that_changed_are_written(lake: Lake) -> None:
    """A second write touches nothing; another cut touches the pages of its source and the overview alone."""
    growing = Written(lake, "growing")
    for number in (1, 2, 3):
        growing.cut(number, {"orders": counts(9, day=number, rows=40), f"t{number}": counts(1, day=number, rows=1)})
    growing.write()
    site.write(lake, ["growing", "odd"])
    before = _times()
    site.write(lake, ["growing", "odd"])
    assert _times() == before
    growing.cut(4, {"orders": counts(9, day=4, rows=40)})
    growing.write()
    site.write(lake, ["growing"])
    changed = {name for name, at in _times().items() if before.get(name) != at}
    mine = ("index.html", "table-growing.orders.html", "cut-3.html", "cut-4.html")
    assert changed == {"index.html", *(f"growing/{name}" for name in mine)}


def _times() -> dict[str, int]:
    return {str(file.relative_to(site.folder())): file.stat().st_mtime_ns for file in site.folder().rglob("*.html")}


def test_old_cuts_leave_the_report_and_it_stays_cheap(lake: Lake) -> None:
    """A source with more cuts than are shown has pages of the newest; a further write takes little processor time."""
    long = Written(lake, "long_one")
    for number in range(1, CUTS + 6):
        long.cut(number, {f"t{place}": counts(9, day=number % 25, rows=number) for place in range(5)})
    long.write()
    site.write(lake, ["long_one"])
    pages = sorted((site.folder() / "long_one").glob("cut-*.html"))
    assert len(pages) == CUTS
    assert not (site.folder() / "long_one" / "cut-5.html").exists()
    long.cut(CUTS + 6, {"t1": counts(9, day=26, rows=9)})
    long.write()
    began = time.process_time()
    site.write(lake, ["long_one"])
    assert time.process_time() - began < 1.0  # about 0.3; the machine may be busy
    assert not (site.folder() / "long_one" / "cut-6.html").exists()
    assert (site.folder() / "long_one" / f"cut-{CUTS + 6}.html").exists()


def test_a_lake_without_sources_has_an_overview(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty lake has one page, which says how to begin; a source without a cut has a page too."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    site.write(lake, [])
    assert "No source has a cut yet" in Page(site.index_page()).text
    site.write(lake, ["never_ran"])
    page = Page(tmp_path / "quality" / "site" / "never_ran" / "index.html")
    assert "Nothing landed." in page.text
    assert not page.broken_links()


def test_the_command_writes_the_report_and_prints_where_it_is_or_its_figures(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without names it drops the pages of sources that are gone; ``--json`` is one object a source."""
    for name in ("calm", "single"):
        (tmp_path / f"{name}.yaml").write_text(f"source: {name}\nformat: canal_json\nlanding: /nowhere/*\n")
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    done = CliRunner().invoke(app, ["report", "calm", "--json"])
    assert json.loads(done.stdout) == figures_of(lake, "calm")
    assert (site.folder() / "odd").exists()
    done = CliRunner().invoke(app, ["report"])
    assert done.stdout.strip() == str(site.index_page())
    assert {file.parent.name for file in site.folder().glob("*/index.html")} == {"calm", "single"}
    site.write(lake, ["odd", "held_one", "first_fails"])
    assert CliRunner().invoke(app, ["report", "clam"]).exit_code == 2


def test_publish_writes_the_report_and_goes_on_where_it_cannot(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage writes the pages of its source; a site that cannot be written fails nothing, and ``off`` writes none."""
    source = Source.model_validate({"source": "single", "format": "canal_json", "landing": "/nowhere/*"})
    page = site.folder() / "single" / "index.html"
    page.unlink()
    monkeypatch.setenv(REPORT_VARIABLE, "off")
    run_stage("publish", source)
    assert not page.exists()
    monkeypatch.delenv(REPORT_VARIABLE)
    run_stage("publish", source)
    assert page.exists()
    monkeypatch.setattr(site, "folder", lambda: Path("/dev/null/site"))
    assert run_stage("publish", source).summary["cut"] == 1


def test_colours_can_be_told_apart_from_their_ground() -> None:
    """Texts have a contrast of 4.5 at least, and what is drawn of 3, in light and in dark."""
    style = Page(site.index_page()).styles[0]
    schemes = [
        dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(schemes) == 2
    texts = [("text", "back"), ("text", "card"), ("soft", "back"), ("soft", "card"), ("soft", "none"), ("link", "card")]
    texts += [(word, f"{word}-back") for word in ("passed", "warned", "failed", "held")]
    for colours in schemes:
        assert [pair for pair in texts if _contrast(colours, *pair) < 4.5] == []
        drawn = [(name, "card") for name in ("c1", "c2", "c3", "c4", "c5", "whole")]
        assert [pair for pair in drawn if _contrast(colours, *pair) < 3] == []


def _contrast(colours: Mapping[str, str], one: str, other: str) -> float:
    low, high = sorted(_luminance(colours[name]) for name in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))
