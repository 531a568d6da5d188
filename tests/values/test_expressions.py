"""Expressions over a row: what is allowed, what is refused with its place, and what Spark makes of hostile values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.values import computed_columns, expression_types, expressions
from tidemark.values.computed_columns import computed
from tidemark.values.expression_literals import literal
from tidemark.values.expression_types import typed
from tidemark.values.expressions import LONGEST, ExpressionError, parsed

TYPES = {
    "a": "int", "b": "long", "d": "decimal(10, 2)", "x": "double", "s": "string", "t": "string", "f": "boolean",
    "day": "date", "at": "timestamp", "tz": "timestamptz", "raw": "binary", "First Name": "string",
    "w": "decimal(38, 0)",
}  # fmt: skip

NOT_ALLOWED = {
    "current_timestamp": "CURRENT_TIMESTAMP() is not allowed",
    "rand() < 0.5": "at character 1: RAND() is not allowed",
    "a = (select max(a) from secrets)": "is not allowed",
    "a in (select 1)": "at character 1: a IN (SELECT 1) is not allowed in this form",
    "exists(select 1)": "is not allowed",
    "java_method('java.lang.System', 'exit', 1)": "at character 1: JAVA_METHOD(",
    "input_file_name()": "INPUT_FILE_NAME() is not allowed",
    "sum(a) over ()": "at character 1: SUM(a) OVER () is not allowed",
    "a; drop table erp.orders": "at character 4: it cannot be read near 'drop'",
    "a, b": "at character 2: it cannot be read near ','",
    "upper(s": "at character 7: it cannot be read near 's'",
    "other.a = 1": "other.a is no column of the row",
    "*": "* is not allowed",
    "@a": "@a is not allowed",
    "${HOME}": "is not allowed",
    "cast(a as array<int>)": "is not allowed",
    "cast('now' as date)": "at character 6: 'now' is no date",
    "date '2026-02-30'": "at character 6: '2026-02-30' is no date",
    "timestamp '2026-01-01T00:00:00Z'": "is no timestamp without a zone",
    "cast('2147483648' as int)": "'2147483648' is no int",
    "cast('1.5' as bigint)": "'1.5' is no long",
    "cast('123.4' as decimal(3, 1))": "'123.4' is no decimal(3, 1)",
    "cast('-100' as decimal(2, 0))": "'-100' is no decimal(2, 0)",
    "cast('1.25' as decimal(3, 1))": "'1.25' is no decimal(3, 1)",
    "cast('-1e20' as decimal(38, 18))": "'-1e20' is no decimal(38, 18)",
    "cast('0.12345678901234567890123456789012345678' as decimal(38, 37))": "is no decimal(38, 37)",
    "cast('-2147483648.5' as int)": "'-2147483648.5' is no int",
    "cast('NaN' as decimal(3, 1))": "'NaN' is no decimal(3, 1)",
    "cast('1e400000000' as decimal(38, 0))": "is no decimal(38, 0)",
    "trim(leading 'x' from s)": "is not allowed",
    "not " * 200 + "f": "it is nested too deeply",
    "(" * 1900 + "a" + ")" * 1900: "it is nested too deeply",
    "a" * (LONGEST + 1): f"it is longer than {LONGEST} characters",
    "a = 123456789012345678901234567890123456789": "has more than 38 digits",
    "": "it cannot be read",
}

WRONG_TYPES = {
    "s = 1": "= needs values of one type, not string and long",
    "day > '2026-01-01'": "A date stands as date '2026-01-31'",
    "x > d": "An exact number beside a double needs a cast",
    "a || s": "at character 1: || needs text, not int. Write cast(... as text)",
    "a = null": "= null is true for no row: write `is null`",
    "a not in (1, null)": "a null in a list equals nothing",
    "upper(d)": "upper needs text, not decimal(10, 2)",
    "f and a": "and needs a condition, not int",
    "s + 1": "+ needs numbers, not string",
    "w * d": "may need 49 digits",
    "d % 2": "% needs whole numbers",
    "year(s)": "year needs a date or timestamp, not string",
    "cast(s as timestamp)": "a string cannot be cast to timestamp",
    "cast(raw as text)": "a binary cannot be cast to string. Allowed: nothing",
    "substr(s, a)": "substr needs whole numbers from 1 on",
    "substr(s, 0)": "substr needs whole numbers from 1 on",
    "s like t": "like needs its pattern as a text",
    r"s like '\d'": "a backslash in a pattern",
    "case when a then 1 end": "case needs a condition",
    "case when f then 1 else 'x' end": "case needs values of one type, not long and string",
    "round(a)": "round needs a decimal or a double",
}

ROW = {
    "a": 7, "b": (1 << 63) - 1, "d": Decimal("-12.35"), "x": 0.5, "s": " ab%c ", "t": None, "f": None,
    "day": date(2026, 1, 31), "at": datetime(2026, 1, 31, 23, 5), "tz": datetime(2026, 1, 31, 23, 5, tzinfo=UTC),  # noqa: DTZ001
    "raw": b"x", "First Name": "Ann", "w": Decimal(10**38 - 1),
}  # fmt: skip

VALUES: dict[str, tuple[str, Any]] = {
    "a + 1": ("long", 8),
    "b + 1": ("long", None),
    "b * 2": ("long", None),
    "-b - 2": ("long", None),
    "d + 1": ("decimal(11, 2)", Decimal("-11.35")),
    "d * d": ("decimal(21, 4)", Decimal("152.5225")),
    "d > -12.4 and d < -12.3": ("boolean", True),
    "w = 99999999999999999999999999999999999999": ("boolean", True),
    "a / 2": ("double", 3.5),
    "a / 0": ("double", None),
    "a % 0": ("long", None),
    "a % 4": ("long", 3),
    "x > 0": ("boolean", True),
    "x + 1": ("double", 1.5),
    "round(d, 1)": ("decimal(10, 1)", Decimal("-12.4")),
    "s || 'z'": ("string", " ab%c z"),
    "s || t": ("string", None),
    "coalesce(t, s)": ("string", " ab%c "),
    "trim(s) || '/' || upper(s)": ("string", "ab%c/ AB%C "),
    "length(s)": ("int", 6),
    "substr(s, 2, 2) || left(s, 2) || right(s, 2)": ("string", "ab ac "),
    "replace(s, 'b', '')": ("string", " a%c "),
    r"s like '% ab\%%'": ("boolean", True),
    r"s not like '%d%' and s ilike ' AB%'": ("boolean", True),
    "t is null and s is not null": ("boolean", True),
    "t = 'x'": ("boolean", None),
    "t is not distinct from null": ("boolean", True),
    "f": ("boolean", None),
    "f is true": ("boolean", False),
    "not f or a = 7": ("boolean", True),
    "a in (1, 7) and a not in (2)": ("boolean", True),
    "a between 7 and 7": ("boolean", True),
    "case when a > 5 then 'big' when f then 'flag' end": ("string", "big"),
    "case a when 1 then 'one' else 'more' end": ("string", "more"),
    "nullif(a, 7)": ("long", None),
    "greatest(a, 9)": ("long", 9),
    "cast(s as int)": ("int", None),
    "cast('12' as int)": ("int", 12),
    "cast('-2147483648' as int)": ("int", -(1 << 31)),
    "cast('1.50' as decimal(3, 1))": ("decimal(3, 1)", Decimal("1.5")),
    "cast('1e2' as double)": ("double", 100.0),
    "cast(b as int)": ("int", None),
    "cast(d as text)": ("string", "-12.35"),
    "cast('no' || 'w' as date)": ("date", None),
    "cast('2026-01' || '-31' as date)": ("date", date(2026, 1, 31)),
    "cast(coalesce(t, 'today') as date)": ("date", None),
    "date(tz)": ("date", date(2026, 1, 31)),
    "year(day) * 100 + month(day)": ("long", 202601),
    "hour(at) + day(tz)": ("long", 54),
    "day = date '2026-01-31'": ("boolean", True),
    "at < timestamp '2026-02-01 00:00:00'": ("boolean", True),
    "tz = timestamptz '2026-02-01T00:05:00+01:00'": ("boolean", True),
    "'eu'": ("string", "eu"),
    "'it''s \\ `x` ${y}'": ("string", "it's \\ `x` ${y}"),
    "\"First Name\" = 'Ann'": ("boolean", True),
    "1": ("long", 1),
    "-1.50": ("decimal(3, 2)", Decimal("-1.50")),
    "cast(null as text)": ("string", None),
    " or ".join(["a = 1"] * 300 + ["a = 7"]): ("boolean", True),
}


@pytest.mark.parametrize("text", NOT_ALLOWED, ids=lambda text: text[:40])
def test_what_is_not_in_the_closed_set_is_refused(text: str) -> None:
    """Nothing but the row can be seen, and no text brings the parser down."""
    with pytest.raises(ExpressionError) as error:
        parsed(text)
    assert NOT_ALLOWED[text] in str(error.value)


@pytest.mark.parametrize("text", WRONG_TYPES)
def test_types_that_do_not_fit_are_refused(text: str) -> None:
    """Nothing is converted unless the expression says so."""
    with pytest.raises(ExpressionError) as error:
        typed(parsed(text), TYPES)
    assert WRONG_TYPES[text] in str(error.value)


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("12345678901234567890123456789012345678", "decimal(38, 0)", "12345678901234567890123456789012345678"),
        ("-99999999999999999999.999999999999999999", "decimal(38, 18)", "-99999999999999999999.999999999999999999"),
        ("-2147483648.0", "int", "-2147483648"),
        ("1e2", "long", "100"),
    ],
)
def test_a_text_that_is_cast_keeps_all_its_digits(text: str, kind: str, wanted: str) -> None:
    """A number of more digits than Python counts with by default is taken, too."""
    assert literal(text, kind) == wanted


def test_each_function_has_a_type_and_a_meaning() -> None:
    """The three tables of functions are about the same functions."""
    functions = {function for function, _ in expressions.FUNCTIONS.values()} | {"case", "cast"}
    assert functions == set(expression_types._RULES)
    made = set(computed_columns._FUNCTIONS) | set(computed_columns._WITH_NUMBERS)
    assert functions == made | {"cast"}


@pytest.mark.spark
def test_spark_makes_the_value_and_never_fails(spark: SparkSession) -> None:
    """Overflows, divisions by zero and casts without a result are null, words such as `now` no dates."""
    columns = [F.lit(ROW[name]).cast(_spark(kind)).alias(name) for name, kind in TYPES.items()]
    row = spark.range(1).select(*columns).cache()  # no constant: an optimizer would take words such as `now` for one
    cells = {name: F.col(f"`{name}`") for name in TYPES}
    terms = {text: typed(parsed(text), TYPES) for text in VALUES}
    found = row.select(*(computed(term, cells).alias(f"v{n}") for n, term in enumerate(terms.values())))
    kinds = dict(found.dtypes)
    values = found.collect()[0]
    for number, (text, (kind, value)) in enumerate(VALUES.items()):
        assert terms[text].type == kind, text
        assert kinds[f"v{number}"] == _spark(kind), text
        assert values[f"v{number}"] == value, text
    row.unpersist()


def _spark(kind: str) -> str:
    from tidemark.values.types import spark_type

    return spark_type(kind)
