"""The folder in which Great Expectations keeps its files: the file context, its stores and the Data Docs.

Runs of several sources may share the folder. The files that they share (context, index) are used under a lock only.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import great_expectations as gx
from great_expectations.core import RunIdentifier
from great_expectations.core.expectation_validation_result import (
    ExpectationSuiteValidationResult,
    ExpectationValidationResult,
)
from great_expectations.data_context.data_context.file_data_context import FileDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.expectations.expectation import Expectation

from tidemark.lake.locks import only_writer
from tidemark.quality import old_results, page_assets
from tidemark.quality.docs_pages import WARNED, IndexPageView, InertPageView

CANDIDATE: Final = "candidate"
"""Name of the data source, asset and batch definition for a table's rows, which are a Spark frame."""

METRICS: Final = "metrics"
"""Name of the data source, asset and batch definition for the invariants, which are a pandas frame of one row."""

_NAME_LENGTH: Final = 120

_WARNED_KEPT: Final = 200

_LISTED: Final = 100
"""Results that the index lists, and that are kept of each table."""

# By the names that folders of earlier versions have in their configuration.
_VIEW: Final = {"module_name": __name__, "class_name": InertPageView.__name__}
_INDEX_VIEW: Final = {"module_name": __name__, "class_name": IndexPageView.__name__}

_SITE: Final[Any] = {
    "class_name": "SiteBuilder",
    "show_how_to_buttons": False,
    "store_backend": {
        "class_name": "TupleFilesystemStoreBackend",
        "base_directory": "uncommitted/data_docs/local_site/",
    },
    # The index reads every result that it lists: without a limit, each run would be slower than the one before.
    "site_index_builder": {
        "class_name": "DefaultSiteIndexBuilder",
        "validation_results_limit": _LISTED,
        "view": _INDEX_VIEW,
    },
    "site_section_builders": {
        "expectations": {"view": _VIEW},
        # The index's limit would also drop pages of a run with more tables, and the default filter hides every run
        # that has "profiling" in its name.
        "validations": {"view": _VIEW, "validation_results_limit": None, "run_name_filter": {"matches_regex": "^"}},
        "profiling": "None",
    },
}


def index_page(folder: Path) -> Path:
    """Return the index of the Data Docs in ``folder``."""
    return folder / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"


def open_context(folder: Path) -> FileDataContext:
    """Return the file context in ``folder``; the first use creates it, as a whole or not at all."""
    with only_writer(folder):
        if not (folder / "gx").exists():
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                _make_context(Path(fresh))
                (Path(fresh) / "gx").rename(folder / "gx")
        return gx.get_context(mode="file", project_root_dir=folder)


def _make_context(folder: Path) -> None:
    context = gx.get_context(mode="file", project_root_dir=folder)
    context.variables.analytics_enabled = False
    context.variables.config_variables_file_path = ""  # else it is read again for each substitution, and has nothing
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    context.update_data_docs_site("local_site", _SITE)
    rows = context.data_sources.add_spark(CANDIDATE, persist=False).add_dataframe_asset(CANDIDATE)
    rows.add_batch_definition_whole_dataframe(CANDIDATE)
    metrics = context.data_sources.add_pandas(METRICS).add_dataframe_asset(METRICS)
    metrics.add_batch_definition_whole_dataframe(METRICS)


class Recorder:
    """A store for the results of one run, which then writes the pages of that run and the index, and no others."""

    def __init__(self, context: FileDataContext, *, folder: Path, cut: str) -> None:
        self._context = context
        self._folder = folder
        self._run = RunIdentifier(run_name=_file_name(cut), run_time=datetime.now(UTC))
        # Great Expectations takes both kinds of key in one list; its annotation does not.
        self._pages: list[Any] = []
        self._tables: list[str] = []
        self._warned: list[str] = []

    def record(
        self,
        *,
        table: str,
        snapshot: int,
        success: bool,
        expectations: Sequence[Expectation],
        results: Sequence[ExpectationValidationResult],
    ) -> None:
        """Store suite and results of one table under the table's name."""
        suite = _suite(_file_name(table), expectations)
        suite_key = ExpectationSuiteIdentifier(name=suite.name)
        # Not `suites.add_or_update`: it reads the suite before and after, and compares each expectation with each
        # to find its identifier again. That took a tenth of the time that a check of small tables takes.
        self._context.expectations_store.set(suite_key, suite)
        good = sum(bool(result.success) for result in results)
        validation = ExpectationSuiteValidationResult(
            success=success,
            results=list(results),
            suite_name=suite.name,
            statistics={
                "evaluated_expectations": len(results),
                "successful_expectations": good,
                "unsuccessful_expectations": len(results) - good,
                "success_percent": 100 * good / len(results) if results else None,
            },
            meta={
                "great_expectations_version": gx.__version__,
                "run_id": self._run,
                "validation_time": self._run.run_time,
                "batch_spec": {"data_asset_name": suite.name, "snapshot": snapshot},
            },
        )
        key = ValidationResultIdentifier(suite_key, self._run, batch_identifier=str(snapshot))
        self._context.validation_results_store.set(key, validation)
        self._pages += [suite_key, key]
        self._tables.append(suite.name)
        if success and good < len(results):
            parts: tuple[object, ...] = key.to_tuple()
            self._warned.append("/".join(["validations", *map(str, parts)]) + ".html")

    def write_pages(self) -> None:
        """Write a page for each suite and each result that was recorded, and the index; remove what is old of them."""
        if self._pages:  # without keys, Great Expectations would write all pages of the folder again
            with only_writer(self._folder):
                site = index_page(self._folder).parent
                page_assets.lay_out(site)
                results = self._folder / "gx" / "uncommitted" / "validations"
                old_results.remove(results, site / "validations", self._tables, keep=_LISTED)
                mark = WARNED.set(self._all_warned())
                try:
                    self._context.build_data_docs(resource_identifiers=self._pages)
                finally:
                    WARNED.reset(mark)

    def _all_warned(self) -> frozenset[str]:
        """Return the pages of results with warnings that the index may show, of this run and of earlier ones."""
        known = self._folder / "warned.txt"
        before = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
        now = [*before, *self._warned][-_WARNED_KEPT:]
        known.write_text("\n".join(now), encoding="utf-8")
        return frozenset(now)


def _suite(name: str, expectations: Sequence[Expectation]) -> gx.ExpectationSuite:
    """Return a suite whose identifiers, and those of its expectations, are the same in each run."""
    identifier = str(uuid5(NAMESPACE_OID, f"tidemark/{name}"))
    suite = gx.ExpectationSuite(name=name, id=identifier, expectations=list(expectations))
    for place, expectation in enumerate(suite.expectations):
        expectation.id = str(uuid5(NAMESPACE_OID, f"tidemark/{name}/{place}"))
    return suite


def _file_name(name: str) -> str:
    """Return a name that is safe in a path, a link and a page's script.

    Every other character becomes ``~`` and hexadecimal bytes. Dots make folders in the stores, so no dot is left at the
    beginning, at the end or behind another dot.
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]|^\.|\.$|(?<=\.)\.", lambda match: _escaped(match[0]), name)
    if len(plain) > _NAME_LENGTH:
        plain = f"{plain[: _NAME_LENGTH - 9].rstrip('.')}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return plain


def _escaped(character: str) -> str:
    return "".join(f"~{byte:02X}" for byte in character.encode(errors="surrogatepass"))
