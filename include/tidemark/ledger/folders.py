"""The folders of the tables of all sources: the maintenance of one table removes what is in its folder and not its own.

Whose table it is does not matter: two sources of one lake may name one folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tidemark.lake import names
from tidemark.lake.filters import not_null
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, Namespace
from tidemark.ledger import storage
from tidemark.ledger.rows import TableRow

log = structlog.get_logger(__name__)


def folders(lake: Lake) -> Iterator[tuple[str, str]]:
    """Yield the name and the folder of each table that runs of any source made, and that is there."""
    for identifier in sorted({*_known(lake), *_published(lake)}):
        try:
            table = lake.find(identifier)
        except FileNotFoundError as error:  # the files are gone: no reason to let other tables wait
            log.warning("table_without_metadata", table=str(identifier), error=str(error))
            continue
        if table is not None:
            yield str(identifier), table.location()


def _known(lake: Lake) -> Iterator[Identifier]:
    """Yield the tables of Tidemark's own namespaces, but for leases, which come and go."""
    for space in Namespace:
        for name in lake.tables(space):
            if not names.is_lease(identifier := Identifier(space, name)):
                yield identifier


def _published(lake: Lake) -> Iterator[Identifier]:
    """Yield the published tables of all sources, histories and feeds among them, as far as the catalog lists them."""
    table = storage.find(lake, TableRow.TABLE)
    if table is None:
        return
    rows: pa.Table = table.scan(row_filter=not_null("target"), selected_fields=("target",)).to_arrow()
    targets = [Identifier.parse(target) for target in pc.unique(rows["target"]).to_pylist()]
    there = {(space, name) for space in {each.namespace for each in targets} for name in lake.tables(space)}
    yield from (each for target in targets for each in (target, *names.beside(target)) if each in there)
