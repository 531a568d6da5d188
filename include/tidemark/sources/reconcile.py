"""The part of a source file that names the source database, for ``tidemark reconcile``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from tidemark.sources import fields, schedules


class Reconcile(BaseModel):
    """The source database that ``tidemark reconcile`` compares published tables with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connection: Annotated[str, AfterValidator(fields.connection)]
    """Name of an environment variable with a URL in it, or of an Airflow connection; never the URL itself."""
    schedule: Annotated[str, AfterValidator(schedules.schedule)] | None = None
    """When Airflow compares them. None: when somebody asks."""
    tables: Annotated[tuple[str, ...], AfterValidator(fields.unique_names)] = ()
    """Tables as the source names them, or patterns. Empty: every published table."""
