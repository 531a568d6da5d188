"""The first word of SQL text, which tells changes of rows and changes of a schema from other statements.

A message with the SQL text of a change, and without its rows, cannot be applied: only the database knows which rows the
statement changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidemark.errors import IncompleteMessageError

_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "UPSERT"})

_OF_A_SCHEMA = frozenset({"ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE"})

_BLANK = r"(?:\s|/\*.*?\*/|--(?=\s|$)[^\n]*|#[^\n]*)"

_BEFORE = re.compile(rf"(?:[(;]|/\*M?!\d*|/\*T!(?:\[[^\]]*\])?|{_BLANK})+", re.DOTALL)
"""Blanks, comments and brackets. What stands in an executable comment (``/*!50001 ... */``) is a statement."""

_SETTINGS = re.compile(rf"(?:;|{_BLANK})*+SET{_BLANK}++STATEMENT\b", re.DOTALL | re.IGNORECASE)

_PIECES = re.compile(
    r"""'(?:[^'\\]|\\.?)*+'?|"(?:[^"\\]|\\.?)*+"?|`[^`]*+`?|/\*(?:.*?\*/|.*+)|--(?=\s|$)[^\n]*+|\#[^\n]*+|
    [();]|[\w$@.]++""",
    re.DOTALL | re.VERBOSE,
)
"""Texts, names, comments, brackets, ends of statements and words. What is not closed goes to the end."""

_WORDS = re.compile(rf"([A-Za-z]+)(?:{_BLANK}++([A-Za-z]+))?", re.DOTALL)

_CALLS = re.compile(
    rf"(?:SELECT|DO){_BLANK}++(?:`[^`]+`|[\w$]+)(?:{_BLANK}*+\.{_BLANK}*+(?:`[^`]+`|[\w$]+))?{_BLANK}*+\(",
    re.DOTALL | re.IGNORECASE,
)
"""MySQL logs a function that changed rows so: ``SELECT `shop`.`f`(5)``. It logs no other SELECT."""

_FILLS = "CREATE ... SELECT"

_NEW_TABLE = re.compile(rf"CREATE(?:{_BLANK}++OR{_BLANK}++REPLACE)?{_BLANK}++TABLE\b", re.DOTALL | re.IGNORECASE)
"""A temporary table is another thing: nothing captures it."""

_AHEAD = frozenset({"USE", "SET", "BEGIN", "START"})
"""What a client or an examiner may send ahead of a change, in one text with it. No body of a procedure begins so."""

_BLOCK = re.compile(rf"BEGIN{_BLANK}++NOT{_BLANK}++ATOMIC\b", re.DOTALL | re.IGNORECASE)
"""MariaDB: statements that a client sends as one."""

_ANALYZED = re.compile(
    rf"ANALYZE{_BLANK}++(?:FORMAT{_BLANK}*+={_BLANK}*+\w+{_BLANK}++)?(INSERT|UPDATE|DELETE|REPLACE)\b",
    re.DOTALL | re.IGNORECASE,
)
"""MariaDB runs the statement, and shows how it did."""


def executed(statement: str) -> str:
    """Return what stands behind the settings of MariaDB's ``SET STATEMENT name = value, ... FOR``.

    Any other statement is returned as it is, also one with such settings and no FOR.
    """
    at = 0
    while settings := _SETTINGS.match(statement, at):
        depth, ends = 0, None
        for piece in _PIECES.finditer(statement, settings.end()):
            depth += (piece[0] == "(") - (piece[0] == ")")
            if depth == 0 and piece[0].upper() == "FOR":
                ends = piece.end()
                break
        if ends is None:
            break
        at = ends
    return statement[at:]


def row_change(statement: str | None, dialect: str = "mysql") -> str | None:
    """Return the verb of a statement that changes rows (``UPDATE``), in capitals; None for any other statement.

    MySQL logs two more such statements, if the log is not in ROW format: a new table that is filled from others, and a
    function or procedure that changes rows.
    """
    statement = executed(statement or "")
    words = _first_words(statement)
    if words is None:
        return None
    verb, second = words[1].upper(), (words[2] or "").upper()
    if verb == "WITH":
        return _after_common_tables(statement, words.start())
    if verb == "ANALYZE":
        found = _ANALYZED.match(statement, words.start())
        return found[1].upper() if found else None
    if verb == "LOAD":
        return "LOAD" if second in {"DATA", "XML"} else None
    if verb in _CHANGES:
        return verb
    return _logged_by_mysql(statement, words.start(), verb) if dialect == "mysql" else None


def row_change_of_query(text: str | None, dialect: str = "mysql") -> str | None:
    """Return the same as ``row_change``, also of a text that begins with other statements: ``USE shop; UPDATE ...``.

    MySQL logs each statement by itself. What examines its log, or stands in front of it, may write several as one text.
    """
    for statement in _one_by_one(text or ""):
        verb, words = row_change(statement, dialect), _first_words(statement)
        if verb or (words and words[1].upper() not in _AHEAD):
            return verb
        if words and (block := _BLOCK.match(statement, words.start())):
            return row_change(statement[block.end() :], dialect)
    return None


def _one_by_one(text: str) -> Iterator[str]:
    """Yield the statements of a text, which end with a semicolon outside of brackets."""
    begin = depth = 0
    for piece in _PIECES.finditer(text):
        depth += (piece[0] == "(") - (piece[0] == ")")
        if piece[0] == ";" and depth == 0:
            yield text[begin : piece.start()]
            begin = piece.end()
    yield text[begin:]


def _after_common_tables(statement: str, at: int) -> str | None:
    """Return the verb of ``WITH name AS (SELECT ...) UPDATE ...``, in capitals; None if it changes no rows."""
    is_behind_bracket, end = False, at
    for piece in _PIECES.finditer(statement, at):
        is_behind_bracket = is_behind_bracket and not statement[end : piece.start()].strip()
        word, end = piece[0].upper(), piece.end()
        if word.startswith(("/*", "--", "#")):
            continue
        if is_behind_bracket and word in _CHANGES:
            return word
        is_behind_bracket = word == ")"
    return None


def _logged_by_mysql(statement: str, at: int, verb: str) -> str | None:
    """Return the verb of a statement that MySQL logs only where it changes rows; None for any other statement."""
    if verb == "CREATE":
        created = _NEW_TABLE.match(statement, at)
        return _FILLS if created and _is_filled(statement, created.end()) else None
    if verb == "CALL" or (verb in {"SELECT", "DO"} and _CALLS.match(statement, at)):
        return verb
    return None


def _is_filled(statement: str, at: int) -> bool:
    """Return whether a new table gets the rows of a query: ``AS SELECT``, ``AS TABLE t``, ``AS VALUES ROW(1)``.

    PostgreSQL's ``PARTITION OF t FOR VALUES`` is none, nor is what stands in a statement behind.
    """
    depth, word = 0, ""
    for piece in _PIECES.finditer(statement, at):
        before, word = word, piece[0].upper()
        if word == ";":
            return False
        depth += (word == "(") - (word == ")")
        if word == "SELECT" or (depth == 0 and (word == "TABLE" or (word == "VALUES" and before != "FOR"))):
            return True
    return False


def schema_change(statement: str) -> bool:
    """Return whether a statement changes what tables there are or what they are like, a TRUNCATE included."""
    words = _first_words(executed(statement))
    return words is not None and words[1].upper() in _OF_A_SCHEMA


def _first_words(statement: str) -> re.Match[str] | None:
    """Return the first word, and the second one if there is one, behind blanks, comments and brackets."""
    before = _BEFORE.match(statement)
    return _WORDS.match(statement, before.end() if before else 0)


def statement_only(verb: str, statement: str, remedy: str = "") -> IncompleteMessageError:
    """Return the error of a message with the SQL text of a change and no row.

    Args:
        verb: of the statement.
        statement: the SQL text.
        remedy: what else may help, besides a log in ROW format.
    """
    shown = " ".join(statement[:80].split())
    return IncompleteMessageError(
        f"SQL text of a change without its rows ({verb}: {shown!r}): the log is not in ROW format; set binlog_format "
        f"to ROW and capture the table again{remedy}"
    )
