"""Great Expectations' pages work where no other host can be reached, and show warnings as warnings."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from support.browser import PROGRAM, browser
from tidemark import jars
from tidemark.quality import data_docs, old_results, page_assets
from tidemark.quality.verdicts import Invariant, Subject
from tidemark.sources.choices import Severity

pytestmark = pytest.mark.spark  # Great Expectations opens a session when it makes a folder

_NO_FRAME: Any = None
"""Invariants are judged without the table's rows."""


def _judged(home: Path, *, cut: int = 1, tables: Collection[str] = ("erp.fine", "erp.warned", "erp.failed")) -> Path:
    """Judge three tables: one passes, one warns, one fails and warns; return the folder of the site."""
    from tidemark.quality.expectations import evaluate_all

    warned = {"late files": Invariant(value=3, severity=Severity.WARN)}
    failed = {"duplicate keys": Invariant(value=1)}
    fine = {"null keys": Invariant(value=0), "partitions": Invariant(value=2, minimum=1, maximum=4)}
    found = {"erp.fine": fine, "erp.warned": fine | warned, "erp.failed": fine | warned | failed}
    subjects = [Subject(table=name, frame=_NO_FRAME, snapshot=7, checks=[], invariants=found[name]) for name in tables]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_REPORT", "on")
        verdicts = evaluate_all(subjects, cut=f"erp-cut-{cut}", home=home)
    return verdicts[0].docs.parent


@pytest.fixture(scope="module")
def docs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    return _judged(tmp_path_factory.mktemp("docs"))


def test_only_the_newest_results_of_a_table_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old results go with their pages, else each check would list more; those of other tables stay."""
    monkeypatch.setattr(data_docs, "_LISTED", 2)
    site = _judged(tmp_path)
    before = {path: path.read_bytes() for path in site.glob("validations/erp/warned/**/*.html")}
    for cut in (2, 3, 4):
        _judged(tmp_path, cut=cut, tables=("erp.fine",))
    for folder in (site, site.parents[1]):
        runs = sorted(path.name for path in (folder / "validations" / "erp" / "fine").iterdir())
        assert runs == ["erp-cut-3", "erp-cut-4"]
    assert {path: path.read_bytes() for path in before} == before
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "erp-cut-4" in index
    assert "erp-cut-2" not in index


def test_results_of_a_table_with_a_longer_name_are_not_those_of_the_table(tmp_path: Path) -> None:
    """Dots in names make folders, so the results of one table lie between those of another."""
    kept = [tmp_path / "erp" / "fine" / "more" / "run" / "20260101T000000.000000Z" / "7.json"]
    kept += [tmp_path / "erp" / "fine" / f"run-{n}" / f"2026010{n}T000000.000000Z" / "7.json" for n in (3, 2, 1)]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.touch()
    old_results.remove(tmp_path, tmp_path / "pages", ["erp.fine", "erp"], keep=2)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept[:3])
    assert not kept[3].parents[1].exists()


def _page(docs: Path, table: str) -> str:
    (file,) = docs.glob(f"validations/erp/{table}/**/*.html")
    return file.read_text(encoding="utf-8")


def test_pages_ask_no_other_host_for_anything(docs: Path) -> None:
    """Every script, style and picture of a page lies in the site; no other host learns who looks at it."""
    pages = sorted(docs.rglob("*.html"))
    assert len(pages) == 1 + 3 + 3
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:link|script|img)\b[^>]*?(?:href|src)=\"([^\"]*)\"", text)
        assert len(loaded) > 8
        assert [each for each in loaded if not (page.parent / unquote(each)).is_file()] == [], page
        assert set(re.findall(r"https?://[^\"' )<]*", text)) <= {"https://greatexpectations.io"}, page  # a link
        assert "dataContextId" not in text
        assert "default-src 'none'" in text


def test_what_pages_need_is_pinned() -> None:
    """Each file comes from a WebJar that the lock pins."""
    paths = [jars.folder() / jar.filename for jar in jars.locked(jars.PAGES_LOCK)]
    inside = {name for path in paths for name in zipfile.ZipFile(path).namelist()}
    assert {page_assets._WEBJARS + place for place in page_assets._FILES.values()} <= inside
    assert not set(paths) & set(map(Path, jars.jar_paths()))  # Spark does not load them


def test_a_warning_is_shown_as_a_warning(docs: Path) -> None:
    """A table that only warns has a mark of its own in the index and on its page; a failed one stays failed."""
    index = (docs / "index.html").read_text(encoding="utf-8")
    assert sorted(re.findall(r"'_validation_success_text': '(\w+)'", index)) == ["Failed", "Success", "Warned"]
    assert "fa-exclamation-triangle text-warning" in index
    warned, failed, fine = (_page(docs, name) for name in ("warned", "failed", "fine"))
    assert re.search(r"fa-exclamation-triangle text-warning\" aria-hidden=\"true\"></i> Warned", warned)
    assert "fa-times" not in warned
    assert "</i> Failed" in failed
    assert "fa-times" in failed
    assert "</i> Succeeded" in fine


def test_invariants_are_worded_for_people(docs: Path) -> None:
    """An invariant is a sentence, and not the bounds of a maximum."""
    text = _page(docs, "failed")
    for sentence in ("There are no null keys.", "There are no duplicate keys.", "Number of partitions: 1 to 4."):
        assert sentence in text
    assert "maximum value must be" not in text


def test_pages_are_written_without_the_webjars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody fetched them, a check is judged all the same; once they are there, they are laid out."""
    with monkeypatch.context() as patched:
        patched.setenv("TIDEMARK_JARS", str(tmp_path / "none"))
        docs = _judged(tmp_path)
        assert (docs / "index.html").exists()
        assert not (docs / page_assets.FOLDER).exists()
    page_assets.lay_out(docs)
    assert (docs / page_assets.FOLDER / "css" / "all.min.css").exists()


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: apt-get install chromium")
def test_the_index_lists_results_without_a_network(docs: Path, tmp_path: Path) -> None:
    """In a browser the index has a row for each result, and the browser asks for files of the site alone."""
    with browser(tmp_path / "profile") as tab:
        tab.open((docs / "index.html").as_uri())
        assert tab.value("document.querySelectorAll('.tab-pane.active tr[data-index]').length") == 3
        assert tab.value("document.fonts.check('900 12px \"Font Awesome 6 Free\"')")
        assert [each for each in tab.requests() if not each.startswith((docs.as_uri(), "data:"))] == []
        assert tab.complaints() == []
