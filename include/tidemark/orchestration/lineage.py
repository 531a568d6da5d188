"""What a task read and wrote, for OpenLineage: the events of Airflow's own provider have it, where that is installed.

The provider asks an operator for datasets when its task is over. It gets the datasets of the source's newest batch
and cut, as the ledger has them: files, the tables of raw and the change log, and the tables of the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from tidemark.sources.choices import Severity

if TYPE_CHECKING:
    from tidemark.lake.lake import Lake
    from tidemark.lake.names import Identifier
    from tidemark.ledger.check_rows import CheckRow
    from tidemark.ledger.rows import TableRow

MOST_FILES = 200
"""Files of a batch that an event names."""


class TellsLineage:
    """An operator that reports to OpenLineage's provider what its stage read and wrote."""

    stage: str
    source: str | None

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ANN401 - the provider's types
        """Return the datasets of a task that is over, whether it failed or not; None where no source is known."""
        source = self.source or task_instance.get_template_context()["params"].get("source")
        return _lineage(self.stage, source) if source else None


def _lineage(stage: str, source: str) -> Any:  # noqa: ANN401 - the provider may be missing
    """Return what a stage of a source read and wrote last."""
    from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - nobody else needs it

    from tidemark.lake import names  # noqa: PLC0415 - a DAG is parsed without an engine
    from tidemark.lake.lake import Lake  # noqa: PLC0415
    from tidemark.ledger import cuts  # noqa: PLC0415
    from tidemark.ledger.ledger import Ledger  # noqa: PLC0415

    lake = Lake.open()
    ledger, raw, log = Ledger(lake, source), names.raw(source), names.change_log(source)
    cut = ledger.last_cut()
    rows = [] if cut is None else [row for row in cuts.tables_of(ledger, cut.cut) if cuts.is_built(row)]
    if stage == "land":
        files = ledger.files()
        newest = max((row.batch for row in files), default=0)
        paths = [row.path for row in files if row.batch == newest][:MOST_FILES]
        return OperatorLineage(inputs=[_file(path) for path in paths], outputs=[*_tables(lake, [raw])])
    if stage == "normalize":
        return OperatorLineage(inputs=[*_tables(lake, [raw])], outputs=[*_tables(lake, [log])])
    if stage == "compact":
        return OperatorLineage(inputs=[*_tables(lake, [log])], outputs=[*_published(lake, rows)])
    if stage == "check" and cut is not None:
        found = [row for row in ledger.checks() if row.cut == cut.cut and row.stage == stage]
        return OperatorLineage(inputs=[*_checked(lake, rows, found)])
    return OperatorLineage(outputs=[*_published(lake, rows)] if stage == "publish" else [])


def _file(path: str) -> Any:  # noqa: ANN401
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415

    return InputDataset(*_place(path))


def _tables(lake: Lake, identifiers: Iterable[Identifier]) -> Iterator[Any]:
    """Yield the tables that there are, as what a stage read or wrote."""
    from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

    for identifier in identifiers:
        table = lake.find(identifier)
        if table is not None:
            yield Dataset(*_place(table.location()), facets=_facets(identifier, table))


def _published(lake: Lake, rows: Iterable[TableRow]) -> Iterator[Any]:
    """Yield the tables of a cut with the number of their rows."""
    from openlineage.client.event_v2 import OutputDataset  # noqa: PLC0415
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics  # noqa: PLC0415

    for row in rows:
        table = lake.find(row.identifier)
        if table is not None:
            counted: dict[str, Any] = {
                "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(rowCount=row.rows_after)
            }
            facets = _facets(row.identifier, table)
            yield OutputDataset(*_place(table.location()), facets=facets, outputFacets=counted)


def _checked(lake: Lake, rows: Iterable[TableRow], found: Iterable[CheckRow]) -> Iterator[Any]:
    """Yield the tables of a cut with what each check found: counts, and no value of a row."""
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality  # noqa: PLC0415

    found = list(found)
    for row in rows:
        table = lake.find(row.identifier)
        if table is None:
            continue
        assertions = [
            quality.Assertion(
                assertion=check.name,
                success=check.success,
                column=", ".join(check.columns) or None,
                severity="warn" if check.severity == Severity.WARN else "error",
                expected=check.expected,
                actual=check.observed,
            )
            for check in found
            if check.target == row.target
        ]
        input_facets: dict[str, Any] = {
            "dataQualityAssertions": quality.DataQualityAssertionsDatasetFacet(assertions=assertions)
        }
        yield InputDataset(*_place(table.location()), facets=_facets(row.identifier, table), inputFacets=input_facets)


def _facets(identifier: Identifier, table: Any) -> dict[str, Any]:  # noqa: ANN401 - a table of PyIceberg
    """Return the columns of a table, and the name that the catalog has for it."""
    from openlineage.client.facet_v2 import schema_dataset as schema  # noqa: PLC0415
    from openlineage.client.facet_v2 import symlinks_dataset as links  # noqa: PLC0415

    fields = [
        schema.SchemaDatasetFacetFields(name=field.name, type=str(field.field_type)) for field in table.schema().fields
    ]
    catalog = str(table.catalog.properties.get("warehouse", ""))
    known_as = links.Identifier(namespace=catalog, name=str(identifier), type="TABLE")
    return {
        "schema": schema.SchemaDatasetFacet(fields=fields),
        "symlinks": links.SymlinksDatasetFacet(identifiers=[known_as]),
    }


def _place(path: str) -> tuple[str, str]:
    """Return the namespace and the name of a path, by OpenLineage's rules for files and object stores.

    >>> _place("s3://lake/erp/orders"), _place("/srv/lake/erp/orders")
    (('s3://lake', 'erp/orders'), ('file', '/srv/lake/erp/orders'))
    """
    found = urlparse(path)
    if found.scheme in {"", "file"}:
        return "file", found.path
    return f"{found.scheme}://{found.netloc}", found.path.lstrip("/")
