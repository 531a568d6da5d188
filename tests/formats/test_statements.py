"""Which statements change rows."""

from __future__ import annotations

import time

import pytest

from tidemark.formats._statements import row_change, row_change_of_query, schema_change


@pytest.mark.parametrize(
    ("statement", "verb"),
    [
        ("UPDATE t SET a = 1", "UPDATE"), ("\n\t insert/**/into t values (1)", "INSERT"), ("delete\nfrom t", "DELETE"),
        ("/* a */ -- b\n# c\n; (REPLACE INTO t VALUES (1))", "REPLACE"),
        ("/*!40101 INSERT INTO t VALUES (1) */", "INSERT"),
        ("/*M!100100 DELETE FROM t */", "DELETE"), ("--\nUPDATE t SET a = 1", "UPDATE"),
        ("MERGE INTO t USING s", "MERGE"),
        ("LOAD DATA INFILE 'x' INTO TABLE t", "LOAD"), ("load xml local infile 'x' into table t", "LOAD"),
        ("WITH c AS (SELECT 1) UPDATE t JOIN c SET a = 1", "UPDATE"),
        ("with recursive c as (select 1), d as (select 2)\ndelete from t", "DELETE"),
        ("SET STATEMENT max_statement_time=60 FOR DELETE FROM t WHERE id = 1", "DELETE"),
        ("set/**/statement a='FOR b', c=(SELECT 1 FOR UPDATE), d=`for`, e=@for /* FOR */ -- FOR\nFOR\tupdate t",
         "UPDATE"),
        ("; SET STATEMENT a=1 FOR WITH c AS (SELECT 1) DELETE FROM t", "DELETE"),
        ("/*T![x] DELETE FROM t */", "DELETE"),
        ("ANALYZE FORMAT=JSON UPDATE t SET a = 1", "UPDATE"), ("analyze delete from t", "DELETE"),
        ("SELECT `shop`.`f`(5)", "SELECT"), ("select f ( 5 )", "SELECT"), ("DO /* a */ shop . `f(`()", "DO"),
        ("CALL p()", "CALL"), ("call shop.p", "CALL"),
        ("CREATE TABLE t AS SELECT * FROM u", "CREATE ... SELECT"),
        ("create/**/or replace table if not exists `select` (id int) ignore select 1 id", "CREATE ... SELECT"),
        ("CREATE TABLE t (SELECT 1)", "CREATE ... SELECT"),
        ("CREATE TABLE t WITH c AS (SELECT 1) SELECT * FROM c", "CREATE ... SELECT"),
        ("CREATE TABLE t AS TABLE u", "CREATE ... SELECT"), ("CREATE TABLE t VALUES ROW(1)", "CREATE ... SELECT"),
        ("CREATE TABLE `for` VALUES ROW(1)", "CREATE ... SELECT"),
        ("CREATE TABLE t (id int) COMMENT ';' AS TABLE u", "CREATE ... SELECT"),
        ("LOAD /* app 7 */ DATA INFILE 'x' INTO TABLE t", "LOAD"),
        ("load/**/-- a\nxml infile 'x' into table t", "LOAD"),
        ("LOAD # a\nDATA INFILE 'x' INTO TABLE t", "LOAD"), ("ANALYZE/* a */DELETE FROM t", "DELETE"),
        ("ANALYZE /* a */ FORMAT /* b */ = JSON # c\n UPDATE t SET a = 1", "UPDATE"),
        ("WITH c AS (SELECT 1) /* a */ UPDATE t SET a = 1", "UPDATE"),
        ("with c as (select 1)-- a\ndelete from t", "DELETE"),
    ],
)  # fmt: skip
def test_statements_that_change_rows(statement: str, verb: str) -> None:
    """Blanks, comments and settings for the statement may stand before the verb."""
    assert row_change(statement) == verb


@pytest.mark.parametrize(
    "statement",
    [
        None, "", " ", "BEGIN", "COMMIT", "ROLLBACK TO a", "SAVEPOINT `UPDATE`", "SET @a = 'UPDATE t'", "FLUSH TABLES",
        "XA END X'31'", "USE shop", "ANALYZE TABLE t", "ANALYZE SELECT 1", "ANALYZE FORMAT=JSON SELECT 1",
        "GRANT UPDATE ON t TO u", "/* UPDATE t */ COMMIT", "UPDATES",
        "CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW DELETE FROM u", "ALTER TABLE t ADD c int", "-- UPDATE t",
        "TRUNCATE t", "# INSERT INTO t", "LOAD INDEX INTO CACHE t", "WITH c AS (SELECT 1) SELECT * FROM c", "/* DELETE",
        "SET STATEMENT a=1 FOR SELECT 1", "SET STATEMENT a='FOR DELETE FROM t'", "SET STATEMENT a=(1 FOR DELETE FROM t",
        "SET PASSWORD FOR DELETE = 'x'", "SET STATEMENT", "SET STATEMENT a='", "SET STATEMENT a=/*",
        "LOAD /* DATA */ INDEX INTO CACHE t", "LOAD /* DATA", "WITH c AS (SELECT ') DELETE FROM t') SELECT 1",
        "WITH c AS (SELECT 1) /* ) UPDATE t */ SELECT 1", "WITH c AS (SELECT 1), `replace` AS (SELECT 2) SELECT 1",
        "WITH c AS (SELECT 1), replace AS (SELECT 2) SELECT 1", "ANALYZE /* a */ TABLE t",
        "SELECT 1", "SELECT a FROM t", "SELECTED (1)", "DO 1", "CALLED (1)", "CREATE VIEW v AS SELECT 1",
        "CREATE TEMPORARY TABLE t AS SELECT 1", "CREATE TABLE t (`select` int) COMMENT 'AS SELECT 1' -- SELECT",
        "CREATE TABLE t (a int) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))", "CREATE TABLE t LIKE u",
        "CREATE TABLE p PARTITION OF t FOR VALUES FROM (1) TO (2)", "CREATE TABLE p PARTITION OF t FOR VALUES IN (1)",
        "CREATE TABLE a (id int); CREATE TABLE b (id int)", "CREATE TABLE a (id int);SELECT 1",
        "CREATE TABLE t (a int, CHECK (a in (1))) START TRANSACTION", "CREATE INDEX i ON t ((f(a)))",
    ],
)  # fmt: skip
def test_other_statements(statement: str | None) -> None:
    """A verb inside a comment, a name, a text or another statement does not count."""
    assert row_change(statement) is None


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("USE shop; UPDATE t SET a = 1", "UPDATE"), ("set @a = ';', @b = (select 1);; delete from t", "DELETE"),
        ("BEGIN; REPLACE INTO t VALUES (1); COMMIT", "REPLACE"), ("START TRANSACTION; /* a; */ CALL p()", "CALL"),
        ("/* a */ USE `;` -- b;\n; SET @a = 1; # c\nCREATE TABLE t SELECT 1", "CREATE ... SELECT"),
        ("SET STATEMENT a = 1 FOR SELECT 1; DELETE FROM t", "DELETE"), ("UPDATE t SET a = 1; COMMIT", "UPDATE"),
        ("begin/**/not atomic\ninsert into t values (1); END", "INSERT"),
        ("BEGIN", None), ("BEGIN; COMMIT", None), ("SET @a = 1;", None), (None, None), ("", None), (";", None),
        ("SET @a = 'b; UPDATE t'", None), ("USE shop; /* UPDATE t */", None), ("SET @a = (1; DELETE FROM t", None),
        ("COMMIT; UPDATE t SET a = 1", None), ("BEGIN; SELECT 1; UPDATE t SET a = 1", None),
        ("SET @a = 1; CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW BEGIN DELETE FROM u; END", None),
        ("CREATE PROCEDURE p() BEGIN SET @a = 1; DELETE FROM t; END", None),
    ],
)  # fmt: skip
def test_a_query_may_begin_with_other_statements(text: str | None, verb: str | None) -> None:
    """Settings and the begin of a transaction change no rows, and hide no change behind them. A body is not run."""
    assert row_change_of_query(text) == verb


@pytest.mark.parametrize("dialect", ["oracle", "tsql", "postgres", ""])
def test_what_mysql_alone_logs(dialect: str) -> None:
    """Elsewhere, the rows of a new table and of a function do not come as text, and a client may send any SELECT."""
    for statement in ("CREATE TABLE t AS SELECT * FROM u", "SELECT shop.f(5)", "DO f()", "CALL p()"):
        assert row_change(statement, dialect) is None
    assert row_change("UPDATE t SET a = 1", dialect) == "UPDATE"


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("alter table t add c int", True), ("-- a\n/* b */ DROP TABLE t", True), ("TRUNCATE t", True),
        ("SET STATEMENT a=1 FOR RENAME TABLE t TO u", True), ("/*!50001 CREATE TABLE t (a int) */", True),
        ("UPDATE t SET a = 1", False), ("/* DROP TABLE t */ COMMIT", False), ("DROPPED", False), ("", False),
    ],
)  # fmt: skip
def test_statements_that_change_a_schema(statement: str, changes: bool) -> None:  # noqa: FBT001
    """A verb inside a comment does not count."""
    assert schema_change(statement) is changes


@pytest.mark.parametrize("piece", ["SET STATEMENT a=1 FOR ", "SET STATEMENT ", "a='", "/*", "(", "a=`", "-- ", '"\\'])
def test_hostile_settings_cost_little(piece: str) -> None:
    """The text is read once, whatever it repeats."""
    started = time.process_time()
    row_change("SET STATEMENT " + piece * (65_536 // len(piece)))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "piece", ["BEGIN;", "SET @a=';';", ";", "SET STATEMENT a=1 FOR SET @b=1;", "USE a /* b */;(", "'"]
)
def test_hostile_texts_of_many_statements_cost_little(piece: str) -> None:
    """The text is read once, whatever it repeats."""
    started = time.process_time()
    row_change_of_query("SET @a=1;" + piece * (65_536 // len(piece)))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "start",
    [
        "CREATE TABLE t ",
        "CREATE ",
        "CREATE OR ",
        "SELECT ",
        "SELECT a",
        "DO `a`",
        "SELECT a.",
        "LOAD",
        "WITH c AS (SELECT 1)",
        "ANALYZE",
        "ANALYZE FORMAT",
    ],
)
@pytest.mark.parametrize("piece", [" ", "/**/", "/*", "(", "a=`", "-- ", '"\\', "#\n", "`", "\n--\n"])
def test_hostile_queries_cost_little(start: str, piece: str) -> None:
    """The text is read once, whatever it repeats."""
    started = time.process_time()
    row_change(start + piece * (65_536 // len(piece)))
    assert time.process_time() - started < 1
