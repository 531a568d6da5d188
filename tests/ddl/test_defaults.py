"""Rows that are there when a column is added hold what the database writes into them, or null with a note."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidemark.ddl.changes import AddColumn, ChangeKey, Fill
from tidemark.ddl.statements import parse

DOCS = Path(__file__).parents[2] / "docs" / "schema-changes.md"


def _added(dialect: str, definition: str) -> AddColumn:
    """Return the one column that a statement adds."""
    change, *key = parse(f"ALTER TABLE t ADD c {definition}", dialect)
    assert all(isinstance(each, ChangeKey) for each in key)
    assert isinstance(change, AddColumn)
    return change


def _documented() -> list[list[str]]:
    """Return the rows of the documented table: database, definition, what old rows hold."""
    lines = DOCS.read_text().splitlines()
    start = lines.index("| database | the column is added as | rows from before hold |") + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return rows
        cells = re.split(r"(?<!\\)\|", line.strip("|"))
        rows.append([cell.strip().replace("\\|", "|") for cell in cells])
    return rows


def _told(cell: str) -> tuple[Fill, bool]:
    """Return the value that a cell of the documented table names, and whether there is a note."""
    if cell.startswith("null"):
        return Fill(None), cell == "null, with a note"
    if cell == "the empty text":
        return Fill(""), False
    octets = re.search(r"bytes `([0-9A-F]+)`", cell)
    text = re.match(r"`([^`]+)`", cell)
    blanks = "  " if cell.endswith("and two blanks") else ""
    return Fill(text and text[1] + blanks, octets and bytes.fromhex(octets[1])), False


@pytest.mark.parametrize(("dialect", "definition", "cell"), _documented())
def test_the_documented_table_is_true(dialect: str, definition: str, cell: str) -> None:
    """Every line of the table in the docs is what the code does."""
    added = _added(dialect, definition.split("`")[1])
    assert (Fill(added.default, added.octets), added.unknown is not None) == _told(cell)


def test_the_documented_table_names_every_database() -> None:
    """The table has lines of all four dialects, values and notes."""
    rows = _documented()
    assert {dialect for dialect, _, _ in rows} == {"mysql", "postgres", "oracle", "tsql"}
    assert len(rows) > 80


@pytest.mark.parametrize(
    ("definition", "fill"),
    [
        ("INT NOT NULL DEFAULT -0x10", Fill("-16")),
        ("INT DEFAULT 0xA", Fill("10")),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", Fill("18446744073709551615")),
        ("DECIMAL(65,30) NOT NULL DEFAULT 1.5", Fill("1.500000000000000000000000000000")),
        ("DECIMAL(3,1) DEFAULT -.05", Fill("-0.1")),
        ("DECIMAL(3,1) DEFAULT -0.01", Fill("0.0")),
        ("DECIMAL(38,2) DEFAULT -123456789012345678901234567890.12", Fill("-123456789012345678901234567890.12")),
        ("DECIMAL(38,2) DEFAULT -(-123456789012345678901234567890.12)", Fill("123456789012345678901234567890.12")),
        ("DOUBLE DEFAULT 1e300", Fill("1E+300")),
        ("BIT DEFAULT 1", Fill("1", b"\x01")),
        ("BIT(64) DEFAULT 0xFFFFFFFFFFFFFFFF", Fill("18446744073709551615", b"\xff" * 8)),
        ("BIT(8) DEFAULT TRUE", Fill("1", b"\x01")),
        ("VARBINARY(9) DEFAULT _binary'ab'", Fill(None, b"ab")),
        ("BLOB NOT NULL", Fill(None, b"")),
        ("CHAR(5) DEFAULT 'a  '", Fill("a")),
        ("VARCHAR(9) CHARACTER SET latin1 DEFAULT _latin1 x'E9'", Fill("é")),
        (r"VARCHAR(9) DEFAULT 'a\'b\\c\n'", Fill("a'b\\c\n")),
        ('VARCHAR(9) DEFAULT "a""b"', Fill('a"b')),
        ("VARCHAR(9) DEFAULT 'x' NOT NULL AFTER `default`", Fill("x")),
        ("VARCHAR(9) DEFAULT 1.50", Fill("1.50")),
        ("VARCHAR(9) DEFAULT CAST(5 AS CHAR)", Fill("5")),
        ("ENUM('a''b','c') NOT NULL DEFAULT 'A''B'", Fill("a'b")),
        ("ENUM('a,b','c') NOT NULL", Fill("a,b")),
        ("SET('a','b') DEFAULT ''", Fill("")),
        ("INT PRIMARY KEY", Fill("0")),
        ("JSON DEFAULT ('{}')", Fill("{}")),
    ],
)
def test_a_constant_of_mysql_is_what_mysql_stores(definition: str, fill: Fill) -> None:
    """Signs, brackets, character sets, escapes and implicit defaults."""
    added = _added("mysql", definition)
    assert (Fill(added.default, added.octets), added.unknown) == (fill, None)


@pytest.mark.parametrize(
    ("dialect", "definition", "fill"),
    [
        ("mysql", "INT CHECK (c IS NOT NULL OR b IS NOT NULL)", None),
        ("mysql", "VARCHAR(9) NULL CONSTRAINT k CHECK (c IS NOT NULL OR b = 1)", None),
        ("mysql", "INT CHECK (c IS NOT NULL) NOT NULL", "0"),
        ("mysql", "INT CHECK (c > DEFAULT(b)) DEFAULT 4", "4"),
        ("mysql", "INT DEFAULT 4 CHECK (c IN (1, 4))", "4"),
        ("tsql", "int NULL DEFAULT 5 CHECK (c IS NOT NULL OR b = 1)", None),
        ("tsql", "int NULL CHECK (c IS NOT NULL) DEFAULT 5 WITH VALUES", "5"),
        ("tsql", "int NOT NULL DEFAULT ((5))", "5"),
        ("postgres", "int CHECK (c IS NOT NULL)", None),
    ],
)
def test_what_a_constraint_says_is_no_word_of_the_column(dialect: str, definition: str, fill: str | None) -> None:
    """A CHECK with NOT NULL in its brackets leaves the column without a value, where the database leaves it so."""
    added = _added(dialect, definition)
    assert (added.default, added.unknown) == (fill, None)


@pytest.mark.parametrize(
    "definition",
    [
        "BIT(4) DEFAULT 999", "BIT(4) DEFAULT 16", "BIT DEFAULT 'abc'", "BIT DEFAULT '0'", "BIT(8) DEFAULT 0xffff",
        "BIT(8) DEFAULT b'111111111'", "BIT(64) DEFAULT 18446744073709551616", "BIT(8) DEFAULT 1e300", "BIT DEFAULT -1",
        "BIT(9) DEFAULT '999'",
    ],
)  # fmt: skip
def test_bits_that_do_not_fit_are_not_known(definition: str) -> None:
    """No column holds them: the column is followed, its old rows keep null, and a note says so."""
    added = _added("mysql", definition)
    assert (added.default, added.octets) == (None, None)
    assert added.unknown is not None
    assert " is not followed into bit: " in added.unknown


@pytest.mark.parametrize(
    ("dialect", "definition", "text"),
    [
        ("oracle", "NUMBER(*,2) DEFAULT 1.50 NOT NULL", "1.50"),
        ("oracle", "NUMBER(*, 2) DEFAULT 0.255", "0.26"),
        ("oracle", "NUMBER(*,0) DEFAULT 2.5", "3"),
        ("oracle", "NUMBER(5,-2) DEFAULT 12345", "12300"),
        ("oracle", "NUMBER(5, - 2) DEFAULT -49", "0"),
        ("oracle", "NUMBER(2,4) DEFAULT 0.00126", "0.0013"),
        ("oracle", "NUMBER(*) DEFAULT 1.50", "1.5"),
        ("oracle", "NUMBER DEFAULT -12345678901234567890123456789.5", "-12345678901234567890123456789.5"),
        ("postgres", "numeric DEFAULT -0", "0"),
        ("oracle", "NUMBER DEFAULT 100.00", "100"),
        ("oracle", "DECIMAL DEFAULT 2.5", "3"),
        ("oracle", "NUMERIC(*) DEFAULT 2.5", "3"),
        ("oracle", "FLOAT DEFAULT 1.50", "1.5"),
        ("oracle", "DOUBLE PRECISION DEFAULT -0.1", "-0.1"),
        ("postgres", "numeric(5,-2) DEFAULT 12345", "12300"),
        ("postgres", "numeric(5) DEFAULT 1.5", "2"),
        ("postgres", "numeric CHECK (c > 5) DEFAULT 6.5", "6.5"),
        ("mysql", "DECIMAL DEFAULT (2.5)", "3"),
        ("postgres", "text DEFAULT '12345'::numeric(5,-2)", "12300"),
        ("mysql", "FLOAT(7,2) DEFAULT 1.239", "1.24"),
        ("mysql", "DOUBLE(8,2) DEFAULT -1.239", "-1.24"),
        ("mysql", "DOUBLE PRECISION(8,2) DEFAULT 0.125", "0.12"),
        ("mysql", "REAL(8,1) NOT NULL", "0.0"),
        ("mysql", "FLOAT(30) DEFAULT 1.239", "1.239"),
        ("mysql", "YEAR DEFAULT '0'", "2000"),
        ("mysql", "YEAR DEFAULT '00'", "2000"),
        ("mysql", "YEAR DEFAULT '0000'", "0"),
        ("mysql", "YEAR DEFAULT 0", "0"),
        ("mysql", "YEAR NOT NULL", "0"),
        ("mysql", "YEAR(4) DEFAULT 26", "2026"),
        ("mysql", "YEAR DEFAULT '69'", "2069"),
        ("mysql", "YEAR DEFAULT '70'", "1970"),
    ],
)
def test_a_number_is_rounded_as_its_type_says(dialect: str, definition: str, text: str) -> None:
    """By the digits behind the point that the type has: declared, none, or any number of them."""
    added = _added(dialect, definition)
    assert (Fill(added.default, added.octets), added.unknown) == (Fill(text), None)


@pytest.mark.parametrize(
    ("dialect", "definition", "part"),
    [
        ("mysql", "VARCHAR(9) DEFAULT _utf16'ab'", "_utf16 '...'\" is not known"),
        ("mysql", "VARCHAR(9) DEFAULT _latin1'é'", "is not known"),
        ("mysql", "INT DEFAULT 'abc'", "no number"),
        ("mysql", "INT DEFAULT 1e999999999", "is not known"),
        ("mysql", "VARCHAR(2) DEFAULT 'abc'", "longer than its type"),
        ("mysql", "YEAR DEFAULT '26.5'", "a year"),
        ("oracle", "NUMBER(5,-999999999) DEFAULT 1", "no database"),
        ("postgres", "char(999999999) DEFAULT 'a'", "great length"),
        ("mysql", "BINARY(999999999) DEFAULT 'a'", "great length"),
        ("mysql", "BIT(999999999) DEFAULT 1", "great length"),
        ("mysql", "DOUBLE(8,999999999) DEFAULT 1.5", "does not hold"),
        ("mysql", "DOUBLE(8,2) DEFAULT 1e399", "does not hold"),
        ("oracle", "REAL DEFAULT 1.2345678901234567891", "binary digits"),
        ("mysql", "ENUM('a','b') DEFAULT 'c'", "no label"),
        ("mysql", "SET('a','b') DEFAULT 'a,c'", "no label"),
        ("mysql", "DATETIME DEFAULT '2026-01-31 00:00:00.5'", "more digits of a second"),
        ("mysql", "GEOMETRY NOT NULL", "GEOMETRY"),
        ("mysql", "DATE NOT NULL", "zero date"),
        ("mysql", "INT DEFAULT " + "(" * 2000, "is not known"),
        ("mysql", "INT DEFAULT 5 + 1", "is not known"),
        ("mysql", "INT DEFAULT", "is not known"),
        ("postgres", "interval DEFAULT '1 day'", "written anew"),
        ("postgres", "timestamp DEFAULT '2026-01-31 00:00:00+01'", "a time zone"),
        ("postgres", "date DEFAULT 'today'", "not read"),
        ("postgres", "text DEFAULT current_user", "is not known"),
        ("oracle", "CHAR(3) DEFAULT 'é'", "counts bytes"),
        ("oracle", "RAW(3) DEFAULT HEXTORAW('41')", "is not known"),
        ("tsql", "datetime NOT NULL DEFAULT '2026-01-02'", "language of the session"),
    ],
)
def test_what_is_not_known_is_named(dialect: str, definition: str, part: str) -> None:
    """No value, and the reason names what stood in the way."""
    added = _added(dialect, definition)
    assert (added.default, added.octets) == (None, None)
    assert part in (added.unknown or "")


@pytest.mark.parametrize(
    ("dialect", "definition"),
    [
        ("mysql", "VARCHAR(40) DEFAULT (CONCAT('4929-1234', UUID()))"),
        ("mysql", "INT DEFAULT (49291234 + 1)"),
        ("mysql", 'JSON DEFAULT (\'{"ssn": "4929-1234"}\')'),
        ("mysql", "VARCHAR(4) DEFAULT '4929-1234'"),
        ("mysql", "INT DEFAULT '4929-1234'"),
        ("mysql", "DATE DEFAULT '4929-1234'"),
        ("mysql", "TIME DEFAULT 4929.1234"),
        ("mysql", "ENUM('a') DEFAULT '4929-1234'"),
        ("mysql", "BIT(4) DEFAULT x'49291234'"),
        ("postgres", "uuid DEFAULT '4929-1234'"),
        ("postgres", "boolean DEFAULT '4929-1234'"),
        ("postgres", "inet DEFAULT '49.29.12.34'"),
        ("postgres", "bit(3) DEFAULT B'01001001'"),
        ("oracle", "RAW(2) DEFAULT '4929-1234'"),
    ],
)
def test_why_a_value_is_not_known_is_told_without_the_value(dialect: str, definition: str) -> None:
    """The reason goes to logs and reports, and the value is one of rows, perhaps of a masked column."""
    reason = _added(dialect, definition).unknown
    assert reason
    assert not re.search("49.?29|01001001", reason)
