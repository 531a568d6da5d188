"""The model of a source file, which says how dumps of the source arrive and what is promised about its tables.

The model is strict: an unknown key, format, option, type or expectation is an error that names file, line and what is
allowed. The module is cheap to import, because Airflow reads every source file each time it parses the DAGs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    StrictBool,
    StrictInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from tidemark import formats
from tidemark.dumps import beyond_limit
from tidemark.dumps.wrapping import Wrapping
from tidemark.events import Encoding
from tidemark.sources import check, column_options, declared_encodings, fields, limits, routes, schedules, table_routes
from tidemark.sources.check import Check
from tidemark.sources.choices import Deletes, Files, MaskAt, Transactions
from tidemark.sources.fields import error_at, wrong
from tidemark.sources.freshness import Freshness
from tidemark.sources.history import DeclaredHistory
from tidemark.sources.invariants import Invariants
from tidemark.sources.layout import Layout
from tidemark.sources.limits import Share
from tidemark.sources.maintenance import Maintenance
from tidemark.sources.notifier import Notifier
from tidemark.sources.reconcile import Reconcile
from tidemark.sources.retention import Retention
from tidemark.sources.schema_policy import DeclaredPolicy, SchemaPolicies, SchemaPolicy, resolved
from tidemark.text import suggestion
from tidemark.values.declared_types import DeclaredEncodings, entry_for
from tidemark.values.iso8601 import EPOCH
from tidemark.values.masking import Mask

DAG_PREFIX = "cdc_"
"""Prefix of the ids of the sources' DAGs."""

Moment = Annotated[datetime, BeforeValidator(fields.start_date)]


class Table(column_options.ColumnOptions):
    """What is promised about one table, or about every table that a pattern matches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Annotated[str, AfterValidator(fields.target_of_table)] | None = None
    """Where it is published: ``orders``, or ``lake.orders``, with fields as in ``target`` of the source and ``$1`` for
    a group of the pattern. Tables that a pattern gives one target are folded into one."""
    add: dict[str, str] = Field(default_factory=dict)
    """Column -> its value in all rows of the table: a text with fields of the table's name, as in ``target``."""
    key: Annotated[tuple[str, ...], AfterValidator(fields.unique_names)] | None = None
    """Key columns. None: the messages name the key. Empty: the table has no key, it is a bag of rows."""
    history: DeclaredHistory = False
    """Also keep ``<table>__history`` (SCD2); a mapping says which columns make versions."""
    feed: StrictBool = False
    """Also add what each cut changes to ``<table>__feed``, for readers who follow the table."""
    schema_policy: DeclaredPolicy | None = Field(default=None, alias="schema")
    """As ``schema`` of the source, for this table."""
    deletes: Deletes = Deletes.HARD
    """Whether a deleted row is removed, or stays and is marked by ``_cdc_deleted``."""
    max_deletes: Share | None = None
    """As ``max_deletes`` of the source, for this table."""
    max_quarantined: Share | None = None
    """As ``max_quarantined`` of the source, for the events of this table."""
    freshness: Freshness | None = None
    """How old the newest commit of this table may be."""
    columns: dict[str, Annotated[str, AfterValidator(fields.column_type)]] = Field(default_factory=dict)
    """Column -> Iceberg type string, which takes precedence over the type in the messages."""
    encodings: dict[str, Encoding] = Field(default_factory=dict)
    """Column -> how its values are written, where the messages do not say. The column's type stands in ``columns``."""
    layout: Layout | None = None
    """How its files are laid out. None: as the table is, which its owner may change by hand."""
    checks: tuple[Check, ...] = ()
    """Expectations of Great Expectations, by their own names and with their own arguments."""
    reloads: tuple[Moment, ...] = ()
    """When the table was loaded anew by a tool that does not mark its loads: rows loaded from then on replace it."""

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        errors = list(column_options.problems(self, self.key or (), self.columns, soft=self.deletes is Deletes.SOFT))
        errors += check.problems(self.checks, self.key, self.deletes, self.derive)
        errors += declared_encodings.problems(self.encodings, self.columns)
        if errors:
            raise ValidationError.from_exception_data("Table", errors)
        return self

    def written(self) -> DeclaredEncodings:
        """Return ``encodings``, with the types of the columns."""
        return {name: (self.columns[name], encoding.value) for name, encoding in self.encodings.items()}


class Source(BaseModel):
    """One source, as its file declares it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Annotated[str, AfterValidator(fields.source_name)]
    """Name of the source, and of the namespace of its tables; also part of the names of its DAG and its raw table."""
    format: str
    """The wire format of the dumps: the name of a module in ``formats``."""
    options: SerializeAsAny[BaseModel] = Field(default_factory=dict, validate_default=True)
    """An instance of the format's own ``Options``."""
    landing: Annotated[str, AfterValidator(fields.landing)]
    """Path or pattern of the dumps, with ``strftime`` fields. ``${NAME}`` in the file is an environment variable."""
    container: Wrapping | None = None
    """What the messages in text files are wrapped in. None: the content of each file decides."""
    files: Files = Files.WHOLE
    """How dump files are written. In both cases, a landed file that grew lands what is new."""
    timezone: Annotated[str, AfterValidator(fields.timezone)] = "UTC"
    """The zone of the times in the landing path, of the schedule, and of a start date without a zone."""
    schedule: Annotated[str, AfterValidator(schedules.schedule)] | None = None
    """``@daily`` and the like, or five cron fields. None: only a person starts a run."""
    start_date: datetime = EPOCH
    """When the schedule begins: a date or a time."""
    target: Annotated[str, AfterValidator(fields.target)] = "{source}.{table}"
    """Where tables are published: fields are ``{source}``, ``{database}``, ``{schema}`` and ``{table}``, also in small
    or large letters: ``{table:lower}``, ``{table:upper}``."""
    schema_policy: DeclaredPolicy = Field(default=SchemaPolicy.EVOLVE, alias="schema")
    """The effect of a schema change at the source, or of each kind of change. The key in the file is ``schema``."""
    transactions: Transactions = Transactions.WHOLE
    """``whole``: whole source transactions only are published, where the format marks them. ``ignore``: every event."""
    undelivered: Annotated[tuple[str, ...], AfterValidator(fields.unique_names)] = ()
    """Collections, or patterns, as the ends of transactions name them, whose events never land: none waits for them."""
    max_open_hours: Annotated[StrictInt, Field(ge=0, le=876_000)] = 24
    """Hours of event time for which a transaction may be open. A run with an older one ends with status 1."""
    max_deletes: Share | None = None
    """Share of a table's published rows that one cut may delete without approval; 1 means no limit."""
    max_quarantined: Share | None = None
    """Share of a cut's messages, and of the events of a table, that may be set aside without approval; 1: no limit."""
    freshness: Freshness | None = None
    """How old the newest commit or heartbeat of all tables together may be."""
    invariants: Invariants = Invariants()
    """What follows from built-in checks of change data: ``block``, ``warn``, ``off``."""
    max_message_mib: Annotated[StrictInt, Field(ge=1, le=beyond_limit.MOST)] = beyond_limit.LIMIT >> 20
    """Most MiB of one message. A longer message is set aside alone."""
    log_restarts: tuple[Moment, ...] = ()
    """When the source's log began anew, by commit time: events from then on rank above all events before."""
    mask_secret: Annotated[str, BeforeValidator(fields.secret_variable)] | None = None
    """Name of the environment variable that holds the secret of masks, or of an Airflow connection whose password it
    is; in the file ``${NAME}``."""
    mask_at: MaskAt = MaskAt.TABLE
    """Where masks are applied: ``table``, or ``landing``, so that no log holds a plain value of a masked column."""
    raw_key: Annotated[str, BeforeValidator(fields.secret_variable)] | None = None
    """Name of the environment variable that holds the keys of ``mask_at: landing``, or of an Airflow connection whose
    password they are; in the file ``${NAME}``. Base64 of 32 bytes each, with commas between: the first encrypts, all
    decrypt."""
    migration_tables: StrictBool = False
    """Whether tables are published that schema-change tools made beside a table (``_orders_gho``, ``_orders_new``)."""
    tables: dict[str, Table] = Field(default_factory=dict)
    """Table as the source names it (``shop.orders``), a pattern with ``*`` and ``?``, or a regular expression with
    groups (``shop_(\\d+).orders``) -> what is promised."""
    report_keys: StrictBool = False
    """Whether the pages of the report may show keys of rows: of events that contradict the rows."""
    maintenance: Maintenance = Maintenance()
    """What ``tidemark maintain`` keeps, and for how long."""
    reconcile: Reconcile | None = None
    """The source database that published tables are compared with."""
    on_failure: tuple[Notifier, ...] = ()
    """Airflow's notifiers that are called when a task of the source has failed for good."""
    retention: Retention = Retention()
    """For how long messages are kept. What is not given is kept for ever."""

    @property
    def dag_id(self) -> str:
        """Id of the source's DAG."""
        return f"{DAG_PREFIX}{self.source}"

    @property
    def traits(self) -> formats.Traits:
        """What its format says of its messages."""
        return formats.traits_of(self.format)

    @property
    def zone(self) -> ZoneInfo:
        """The zone that ``timezone`` names."""
        return ZoneInfo(self.timezone)

    @property
    def message_limit(self) -> int:
        """Most bytes of one message."""
        return self.max_message_mib << 20

    @property
    def longest_open(self) -> timedelta:
        """For how long a transaction may be open, in the time of the source."""
        return timedelta(hours=self.max_open_hours)

    @property
    def sealing_variable(self) -> str | None:
        """The variable with the keys that messages are encrypted with; None if they are kept plain."""
        return self.raw_key if self.mask_at is MaskAt.LANDING else None

    def table_for(self, name: str) -> Table:
        """Return a table's entry: by its exact name, or else by the first pattern that matches, or the defaults.

        Tables that are folded into one have the entry that folds them.
        """
        return self.tables.get(routes.entry_of(name)) or entry_for(self.tables, name) or Table()

    def policies_for(self, name: str) -> SchemaPolicies:
        """Return what each kind of schema change does to a table."""
        return resolved(self.schema_policy, self.table_for(name).schema_policy)

    def written(self) -> dict[str, DeclaredEncodings]:
        """Return the ``encodings`` of each entry of ``tables``, for workers; empty if no entry has any."""
        declared = {name: table.written() for name, table in self.tables.items()}
        return declared if any(declared.values()) else {}

    def deletable(self, name: str, rows: int, *, rebuilt: bool = False) -> int:
        """Return how many of a table's ``rows`` published rows one cut may delete without approval.

        Args:
            name: the table as the source names it.
            rows: its published rows.
            rebuilt: whether the cut builds it again from its change log: no day's work explains what goes then.
        """
        promised = self.table_for(name).max_deletes
        return limits.deletable(self.max_deletes if promised is None else promised, rows, rebuilt=rebuilt)

    def quarantinable(self, count: int, name: str | None = None) -> int:
        """Return how many of so many messages, or events of a table, may be set aside without approval.

        Args:
            count: all messages of a cut, or all of its events of a table.
            name: the table as the source names it; None for messages.
        """
        promised = None if name is None else self.table_for(name).max_quarantined
        return limits.quarantinable(self.max_quarantined if promised is None else promised, count)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        keyed = [(t, c) for t, table in self.tables.items() for c, mask in table.mask.items() if mask is Mask.HMAC]
        text = "hmac needs a secret: `mask_secret: ${NAME}` of the source names the environment variable that holds it."
        missing = keyed if self.mask_secret is None else []
        errors = [error_at(("tables", name, "mask", column), text) for name, column in missing]
        if self.mask_at is MaskAt.LANDING and self.raw_key is None:
            text = "landing needs a key: `raw_key: ${NAME}` names the environment variable that holds it."
            errors.append(error_at(("mask_at",), text))
        if self.schedule and not schedules.comes_after(self.schedule, self.start_date, self.zone):
            text = f"'{self.schedule}' does not come twice between it and the year 9999: choose another date."
            errors.append(error_at(("start_date",), text))
        if problem := self.retention.problem(self.maintenance.tombstone_days):
            errors.append(error_at(("retention", problem[0]), problem[1]))
        if errors:
            raise ValidationError.from_exception_data("Source", errors)
        return self

    @model_validator(mode="after")
    def _routes_fit(self) -> Self:
        places = {name: table_routes.problems(name, table) for name, table in self.tables.items()}
        errors = [
            InitErrorDetails(type=each["type"], loc=("tables", name, *each["loc"]), input=None)
            for name, found in places.items()
            for each in found
        ]
        errors += table_routes.place_problems(self.tables)
        if errors:
            raise ValidationError.from_exception_data("Source", errors)
        return self

    @field_validator("start_date", mode="before")
    @classmethod
    def _start_in_zone(cls, given: object, info: ValidationInfo) -> datetime:
        return fields.start_date(given, ZoneInfo(info.data.get("timezone", "UTC")))

    @field_validator("format")
    @classmethod
    def _known_format(cls, name: str) -> str:
        if name not in formats.names():
            raise wrong(f"unknown format '{name}'.{suggestion(name, formats.names())}")
        return name

    @field_validator("options", mode="before")
    @classmethod
    def _options_of_format(cls, given: object, info: ValidationInfo) -> object:
        if "format" not in info.data:
            raise PydanticCustomError("unknown_format", "not read: the format is unknown.")
        return formats.resolve(info.data["format"]).Options.model_validate(given)
