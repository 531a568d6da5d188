"""The page of Tidemark's own tables, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from docs.reference.markdown import sentence, table
from docs.reference.texts import texts_of

from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW
from tidemark.ledger.schemas import SCHEMAS


def tables() -> Iterator[str]:
    """Yield the parts of the page of Tidemark's own tables."""
    logs, ledger = texts_of("lake/log_schemas.py"), texts_of("ledger/schemas.py")
    for name in ("check", "erasure", "offset", "reconciliation"):
        ledger |= texts_of(f"ledger/{name}_schema.py")
    yield "# Tables"
    yield (
        "The tables between the stages and those of the ledger, from their schemas. `tidemark sql` reads them all. "
        "Published tables have the columns of the source, then those of [Published tables](#published-tables)."
    )
    yield "## Logs of a source"
    for name, columns, constant in (
        ("raw.<source>", RAW, "RAW"),
        ("changelog.<source>", CHANGE_LOG, "CHANGE_LOG"),
        ("quarantine.<source>", QUARANTINE, "QUARANTINE"),
    ):
        yield f"### {name}"
        yield from _columns(columns, logs.get(constant, ""))
    yield "## Published tables"
    yield table(["column", "type", "meaning", "only with"], _own_columns())
    yield "## The ledger"
    yield "Each table has a row's `source`, and `at`: when it was written."
    named = {id(value): name for name, value in _constants().items()}
    for name, columns in SCHEMAS.items():
        yield f"### ledger.{name}"
        yield from _columns(columns, ledger.get(named.get(id(columns), ""), ""))


def _constants() -> dict[str, pa.Schema]:
    import tidemark.ledger.check_schema as checks  # noqa: PLC0415
    import tidemark.ledger.erasure_schema as erasures  # noqa: PLC0415
    import tidemark.ledger.offset_schema as offsets  # noqa: PLC0415
    import tidemark.ledger.reconciliation_schema as reconciliation  # noqa: PLC0415
    import tidemark.ledger.schemas as ledger  # noqa: PLC0415

    found = {**vars(checks), **vars(erasures), **vars(offsets), **vars(reconciliation), **vars(ledger)}
    return {name: value for name, value in found.items() if isinstance(value, pa.Schema)}


def _columns(columns: pa.Schema, text: str) -> Iterator[str]:
    if text:
        yield sentence(text)
    rows = ([f"`{field.name}`", f"`{field.type}`".replace("timestamp[us, tz=UTC]", "timestamptz")] for field in columns)
    yield table(["column", "type"], rows)


def _own_columns() -> Iterator[list[str]]:
    from tidemark.tables import feeds, schemas  # noqa: PLC0415  Iceberg's types

    yield from ([f"`{name}`", f"`{kind}`", text, ""] for name, kind, text in schemas.WRITTEN)
    yield [f"`{schemas.DELETED}`", "`boolean`", schemas.DELETED_DOC, "`deletes: soft`"]
    yield from ([f"`{name}`", f"`{kind}`", text, "`<table>__history`"] for name, kind, text in schemas.INTERVAL)
    yield from ([f"`{name}`", f"`{kind}`", text, "`<table>__feed`"] for name, kind, text in feeds.OWN)
