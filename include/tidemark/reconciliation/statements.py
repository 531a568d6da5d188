"""The queries of a table, as trees: buckets, the keys of some buckets, the columns of some keys.

The same trees go to the source database and to DuckDB, each in its dialect. Names of tables and columns are quoted by
the dialect, so they are names whatever is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.generators.mysql import MySQLGenerator

from tidemark.reconciliation import canonical
from tidemark.reconciliation.kinds import ValueKind

_FEW = 100_000
_MANY = 10_000_000


class _MySQL(MySQLGenerator):
    """Writes ``CONVERT(x USING utf8mb4)`` as it stands.

    sqlglot makes a CAST of it, and that is null where its text would be longer than ``max_allowed_packet``.
    """

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        to = expression.to
        if to.this is exp.DataType.Type.CHARACTER_SET:
            return f"CONVERT({self.sql(expression, 'this')} USING {self.sql(to, 'kind')})"
        return super().cast_sql(expression, safe_prefix)


def sql(query: exp.Select, dialect: str) -> str:
    """Return a query as a database reads it."""
    return _MySQL(dialect=dialect).generate(query) if dialect == "mysql" else query.sql(dialect=dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two tables."""

    dialect: str
    table: exp.Table
    key: Sequence[tuple[str, ValueKind]]
    """Name and kind of each key column; empty for a table without a key."""
    columns: Sequence[tuple[str, ValueKind]]
    """Name and kind of each column that is compared, the key first."""
    where: exp.Expression | None = None
    """The rows that count; None for all."""
    shortened: bool = False
    """Whether digests stand for long values in the text of a row: on both sides, or on none."""

    def cells(self, columns: Sequence[tuple[str, ValueKind]]) -> list[exp.Expression]:
        """Return the expressions of the texts of columns, in the text of a row."""
        text = canonical.short_cell if self.shortened else canonical.cell
        return [text(self.dialect, kind, column(name)) for name, kind in columns]

    @property
    def key_text(self) -> exp.Expression:
        """The text of the key; of a table without one, the digest of the row."""
        if not self.key:
            return self.digest
        return canonical.joined([canonical.cell(self.dialect, kind, column(name)) for name, kind in self.key])

    @property
    def digest(self) -> exp.Expression:
        """The digest of the row."""
        text = canonical.joined(self.cells(self.columns), with_null=self.dialect == "mysql")
        return canonical.digest(self.dialect, text)

    @property
    def key_digest(self) -> exp.Expression:
        """The digest whose first digits are the bucket."""
        return canonical.digest(self.dialect, self.key_text) if self.key else self.digest

    def rows(self, **columns: exp.Expression) -> exp.Select:
        """Return the query of some expressions over the rows that count."""
        query = exp.select(*(exp.alias_(value, name) for name, value in columns.items())).from_(self.table)
        return query.where(self.where) if self.where is not None else query


def table(name: str, namespace: str | None = None) -> exp.Table:
    """Return a table by its name, quoted."""
    space = exp.to_identifier(namespace, quoted=True) if namespace is not None else None
    return exp.Table(this=exp.to_identifier(name, quoted=True), db=space)


def column(name: str) -> exp.Column:
    """Return a column by its name, quoted."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def not_true(condition: exp.Expression) -> exp.Expression:
    """Return the condition that another one is false or null."""
    return exp.Not(this=exp.Coalesce(this=condition, expressions=[exp.false()]))


def digits_for(rows: int) -> int:
    """Return how many hexadecimal digits name a bucket: 256, 4096 or 65536 buckets."""
    return 2 if rows <= _FEW else 3 if rows <= _MANY else 4


def counted(side: Side) -> exp.Select:
    """Return the query of the number of rows."""
    return side.rows(n=exp.Count(this=exp.Star()))


def buckets(side: Side, digits: int) -> exp.Select:
    """Return the query of the buckets: name, number of rows, checksum, number of rows that have a text."""
    name = exp.Left(this=exp.column("k"), expression=exp.Literal.number(digits))
    checksum = exp.Sum(this=canonical.number(side.dialect, exp.column("d")))
    inner = side.rows(k=side.key_digest, d=side.digest)
    counts = {"n": exp.Count(this=exp.Star()), "s": checksum, "d": exp.Count(this=exp.column("d"))}
    found = [exp.alias_(name, "b"), *(exp.alias_(value, alias) for alias, value in counts.items())]
    return exp.select(*found).from_(inner.subquery("r")).group_by(name.copy())


def keys(side: Side, digits: int, names: Sequence[str] | None) -> exp.Select:
    """Return the query of the text of the key and the digest of each row in some buckets (None: in all)."""
    query = side.rows(k=side.key_text, d=side.digest)
    if names is None:
        return query
    bucket = exp.Left(this=side.key_digest, expression=exp.Literal.number(digits))
    return query.where(bucket.isin(*(exp.Literal.string(name) for name in names)))


def columns(side: Side, digests: Sequence[str]) -> exp.Select:
    """Return the query of the digests of each column, for some digests of keys."""
    each = {f"c{place}": canonical.digest(side.dialect, cell) for place, cell in enumerate(side.cells(side.columns))}
    query = side.rows(k=side.key_text, **each)
    return query.where(side.key_digest.isin(*(exp.Literal.string(each) for each in digests)))
