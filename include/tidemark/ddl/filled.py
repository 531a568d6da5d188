"""What a database writes into the rows that are there when a column is added with a constant, by the column's type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from tidemark.ddl.changes import Fill
from tidemark.ddl.constants import Constant, UnknownValueError
from tidemark.ddl.declaration import Declaration
from tidemark.ddl.filled_numbers import (
    BINARY_DIGITS,
    OF_ANY_SCALE,
    exact,
    floating,
    integer,
    number_of,
    of_binary_digits,
)
from tidemark.ddl.filled_times import moment, time_of_day
from tidemark.values.types import decimal_parts

NULL = Fill(None)


def filled(value: Constant, declared: Declaration) -> Fill:
    """Return what rows get in a column of the declared type that is added with a constant.

    Raises:
        UnknownValueError: the database turns the constant into a value that is not known here.
    """
    if value is None or (value == "" and declared.dialect == "oracle"):  # Oracle: the empty text is NULL
        return NULL
    fill = _writer(declared)
    try:
        return fill(value, declared)
    except (ValueError, ArithmeticError) as error:
        raise UnknownValueError(
            f"{_kind_of(value)} is not followed into {declared.word or 'its type'}: {error}"
        ) from error


def implicit(declared: Declaration) -> Fill:
    """Return what MySQL writes into rows for a column that must not be null and has no DEFAULT.

    Raises:
        UnknownValueError: the value is none that a published column holds, or it is not known here.
    """
    if declared.word == "enum" and declared.labels:
        return Fill(declared.labels[0])
    if declared.word == "json":
        raise UnknownValueError("MySQL fills JSON with its null, and MariaDB with the empty text")
    if declared.word == "bit" or declared.is_number:
        return filled(Decimal(0), declared)
    if declared.kind in {"date", "timestamp"}:
        raise UnknownValueError(f"MySQL fills a {declared.word.upper()} with a zero date, which no date or time holds")
    if declared.word == "time":
        return filled("00:00:00", declared)
    if declared.kind in {"string", "binary"}:
        return filled("", declared)
    raise UnknownValueError(f"what MySQL fills a {declared.word.upper() or 'column'} with is not known here")


def _kind_of(value: Constant) -> str:
    """Return what a constant is. The constant itself is a value of rows, which no report shows."""
    match value:
        case str():
            return "a text"
        case bytes():
            return "a literal of bytes"
        case bool():
            return "true or false"
        case _:
            return "a number"


_Writer = Callable[[Constant, Declaration], Fill]


def _writer(declared: Declaration) -> _Writer:
    if (declared.dialect, declared.kind) == ("oracle", "string") and declared.word in BINARY_DIGITS:
        return of_binary_digits
    if declared.word in _BY_WORD and (declared.word != "bit" or declared.dialect != "tsql"):
        return _BY_WORD[declared.word]
    if declared.kind is not None and decimal_parts(declared.kind):
        return exact
    return _BY_KIND.get(declared.kind or "", _unknown_type)


def _boolean(value: Constant, declared: Declaration) -> Fill:
    if isinstance(value, str) and declared.dialect == "postgres":
        word = value.strip().lower()
        yes = word == "on" or (word != "" and ("true".startswith(word) or "yes".startswith(word) or word == "1"))
        no = word in {"of", "off", "0"} or (word != "" and ("false".startswith(word) or "no".startswith(word)))
        if yes == no:
            raise ValueError("no boolean")
        return Fill("true" if yes else "false")
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return Fill(value.strip().lower())
    return Fill("true" if number_of(value) else "false")


def _bits(value: Constant, declared: Declaration) -> Fill:
    """Return the default of a BIT: a number for formats that write one, and bytes for the others."""
    if declared.dialect != "mysql":
        return _bit_string(value, declared)
    number = int.from_bytes(value.encode(), "big") if isinstance(value, str) else int(number_of(value))
    if number < 0:
        raise ValueError("bits below zero")
    if number.bit_length() > (declared.size or 1):
        raise ValueError("more bits than its type has")
    width = (_length(declared) + 7) // 8
    return Fill(str(number), number.to_bytes(width, "big"))


def _length(declared: Declaration) -> int:
    """Return the length to which values are filled up."""
    if (declared.size or 1) > _LONGEST_FILLED_UP:
        raise ValueError("it is filled up to a great length")
    return declared.size or 1


_LONGEST_FILLED_UP = 65_536


def _bit_string(value: Constant, declared: Declaration) -> Fill:
    if not isinstance(value, str) or not re.fullmatch(r"[01]{1,4096}", value):
        raise ValueError("no bit string")
    width = declared.size if declared.size is not None else 1 if declared.word == "bit" else len(value)
    if declared.word == "bit" and width != len(value):
        raise ValueError("a bit string of another length")
    return Fill(value, int(value, 2).to_bytes((len(value) + 7) // 8, "big"))


def _text_of(value: Constant, declared: Declaration) -> str:
    """Return a constant as text, as the database turns it into one."""
    match value:
        case str():
            return value
        case bytes() if declared.dialect == "mysql":
            return value.decode()
        case bool() if declared.dialect in {"mysql", "postgres"}:
            return str(int(value)) if declared.dialect == "mysql" else str(value).lower()
        case Decimal() if value == value.to_integral_value() or declared.dialect in {"mysql", "postgres"}:
            exponent = value.as_tuple().exponent
            if isinstance(exponent, int) and -30 <= exponent <= 0:
                return f"{value:f}"
    raise ValueError("a value that becomes text")


def _string(value: Constant, declared: Declaration) -> Fill:
    text = _text_of(value, declared)
    if declared.size is not None and len(text) > declared.size:
        raise ValueError("a text longer than its type")
    return Fill(text)


def _char(value: Constant, declared: Declaration) -> Fill:
    """Return a text of a fixed length: MySQL shows it without blanks at its end, others fill it with them."""
    text = _text_of(value, declared)
    if declared.dialect == "mysql":
        return Fill(text.rstrip(" "))
    if declared.word == "bpchar" and declared.size is None:
        return Fill(text)
    if not declared.in_characters and not text.isascii():
        raise ValueError("its length counts bytes")
    return Fill(text.rstrip(" ").ljust(_length(declared)))


def _binary(value: Constant, declared: Declaration) -> Fill:
    match value:
        case bytes():
            octets = value
        case str() if declared.dialect == "postgres" and re.fullmatch(r"\\x(?:[0-9a-fA-F]{2})*", value):
            octets = bytes.fromhex(value[2:])
        case str() if declared.dialect == "oracle":
            octets = bytes.fromhex(value)
        case str() if value.isascii() and not (declared.dialect == "postgres" and "\\" in value):
            octets = value.encode()
        case _:
            raise ValueError("a value that becomes bytes")
    if declared.word == "binary":
        octets = octets.ljust(_length(declared), b"\0")
    return Fill(None, octets)


def _enum(value: Constant, declared: Declaration) -> Fill:
    text = _text_of(value, declared).rstrip(" ")
    found = [label for label in declared.labels if label.casefold() == text.casefold()]
    if len(found) != 1:
        raise ValueError("no label")
    return Fill(found[0])


def _set(value: Constant, declared: Declaration) -> Fill:
    named = {part.casefold() for part in _text_of(value, declared).split(",") if part}
    found = [label for label in declared.labels if label.casefold() in named]
    if len(found) != len(named):
        raise ValueError("no label")
    return Fill(",".join(found))


def _json(value: Constant, declared: Declaration) -> Fill:
    """Return a JSON text. MySQL and PostgreSQL's ``jsonb`` rewrite it, so only the plainest texts are known."""
    if isinstance(value, bool):
        raise ValueError("a boolean that becomes JSON")  # noqa: TRY004  one kind of error for all that is not followed
    text = _text_of(value, declared)
    if declared.word == "jsonb" or declared.dialect == "mysql":
        text = text.strip(" \t\r\n")
        if not re.fullmatch(r'\{\}|\[\]|null|true|false|-?(?:0|[1-9]\d{0,17})|"[^"\\\x00-\x1f]*"', text):
            raise ValueError("the database writes JSON anew")
    return Fill(text)


def _uuid(value: Constant, declared: Declaration) -> Fill:
    text = _text_of(value, declared)
    if not re.fullmatch(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise ValueError("no UUID")
    return Fill(text.upper() if declared.word == "uniqueidentifier" else text.lower())


def _unknown_type(value: Constant, declared: Declaration) -> Fill:
    """Return a text for a type that users define, such as an enumeration of PostgreSQL; its labels are as written."""
    if isinstance(value, str) and declared.dialect == "postgres" and declared.word not in _WRITTEN_ANEW:
        return Fill(value)
    raise ValueError("values of this type are written anew")


def _not_followed(_value: Constant, _declared: Declaration) -> Fill:
    raise ValueError("values of this type are written anew")


_WRITTEN_ANEW = frozenset([
    "box", "cidr", "circle", "datemultirange", "daterange", "geography", "geometry", "halfvec", "hstore",
    "int4multirange", "int4range", "int8multirange", "int8range", "interval", "jsonpath", "line", "lseg", "ltree",
    "macaddr", "macaddr8", "money", "nummultirange", "numrange", "path", "pg_lsn", "point", "polygon", "timetz",
    "tsmultirange", "tsquery", "tsrange", "tstzmultirange", "tstzrange", "tsvector", "vector",
])  # fmt: skip
"""Types of PostgreSQL whose values the server writes in a form of its own."""

_BY_WORD: Mapping[str, _Writer] = {
    "bit": _bits,
    "varbit": _bit_string,
    **dict.fromkeys(("char", "character", "nchar", "bpchar"), _char),
    "enum": _enum,
    "set": _set,
    **dict.fromkeys(("json", "jsonb"), _json),
    **dict.fromkeys(("uuid", "uniqueidentifier"), _uuid),
    **dict.fromkeys(("array", "inet", "xml", "xmltype", "rowid", "urowid"), _not_followed),
    "time": time_of_day,
    **dict.fromkeys(OF_ANY_SCALE, exact),
}
"""Types whose values have a form of their own, by the first word."""

_BY_KIND: Mapping[str, _Writer] = {
    **dict.fromkeys(("int", "long"), integer),
    **dict.fromkeys(("float", "double"), floating),
    "boolean": _boolean,
    "string": _string,
    "binary": _binary,
    **dict.fromkeys(("date", "timestamp", "timestamptz"), moment),
}
