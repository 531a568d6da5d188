"""What a database writes into old rows of a column of numbers that is added with a constant."""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from tidemark.ddl.changes import Fill
from tidemark.ddl.constants import BitString, Constant
from tidemark.ddl.declaration import Declaration


def number_of(value: Constant) -> Decimal:
    """Return a constant as a number: true is 1, bits and bytes are unsigned and big-endian."""
    if isinstance(value, bytes):
        return Decimal(int.from_bytes(value, "big"))
    if isinstance(value, BitString):
        return Decimal(int(value, 2))
    if isinstance(value, str):
        if not _NUMERAL.fullmatch(value.strip(" ")):
            raise ValueError("a text that is no number")
        return Decimal(value.strip(" "))
    return Decimal(int(value) if isinstance(value, bool) else value or 0)


_NUMERAL = re.compile(r"[+-]?(?:\d{1,80}\.?\d{0,80}|\.\d{1,80})(?:[eE][+-]?\d{1,3})?")


def exact(value: Constant, declared: Declaration) -> Fill:
    """Round to the declared scale, half away from zero; SQL Server cuts a number that becomes an integer."""
    number = number_of(value)
    scale = declared.scale if declared.word in OF_ANY_SCALE else 0
    if scale is None:
        return Fill(_plain(number) if declared.dialect == "oracle" else f"{number:f}")
    if abs(scale) > _MOST_SCALE:
        raise ValueError("a scale that no database has")
    cuts = declared.dialect == "tsql" and declared.word not in OF_ANY_SCALE
    rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_DOWN if cuts else ROUND_HALF_UP, _WIDE)
    return Fill(f"{rounded or abs(rounded):f}")


OF_ANY_SCALE = frozenset({"decimal", "numeric", "dec", "fixed", "number"})

_MOST_SCALE = 1000

_WIDE = Context(prec=2000)


def _plain(number: Decimal) -> str:
    """Return a number without zeros at the end of its digits behind the point, as Oracle keeps it."""
    return f"{number.normalize(_WIDE) or abs(number):f}"


def of_binary_digits(value: Constant, declared: Declaration) -> Fill:
    """Return a FLOAT of Oracle, which is a NUMBER that is rounded to binary digits."""
    number = number_of(value)
    most = declared.size if declared.word == "float" and declared.size else BINARY_DIGITS[declared.word]
    if len(number.normalize(_WIDE).as_tuple().digits) > most * _DECIMAL_DIGITS_OF_A_BINARY:
        raise ValueError("it has more digits than its binary digits hold for certain")
    return Fill(_plain(number))


BINARY_DIGITS = {"double": 126, "float": 126, "real": 63}
"""Oracle's types of binary digits, and how many they have without a size."""

_DECIMAL_DIGITS_OF_A_BINARY = 0.3


def integer(value: Constant, declared: Declaration) -> Fill:
    """Return a whole number."""
    return _year(value) if declared.word == "year" else exact(value, declared)


def _year(value: Constant) -> Fill:
    """Return a year of MySQL, which reads 1 to 69 and texts of one to three zeros as 20.., and 70 to 99 as 19..."""
    number = number_of(value)
    if number != number.to_integral_value():
        raise ValueError("a year that is no whole number")
    year = int(number)
    if 0 < year < 70 or (isinstance(value, str) and not year and len(value.strip()) != len("0000")):
        year += 2000
    elif 70 <= year < 100:
        year += 1900
    return Fill(str(year))


def floating(value: Constant, declared: Declaration) -> Fill:
    """Return a number of binary digits; MySQL rounds it where the type has a scale."""
    if isinstance(value, str) and value.strip().lower().lstrip("+-") in {"nan", "infinity", "inf"}:
        return Fill(value.strip())
    number = number_of(value)
    if declared.dialect == "mysql" and len(declared.sizes) > 1:
        return Fill(_rounded(float(number), declared.sizes[1] or 0))
    return Fill(f"{number:f}" if -20 < number.adjusted() < 20 else str(number))


def _rounded(number: float, digits: int) -> str:
    """Return a number as MySQL rounds it: the part behind the point, half to even."""
    if not math.isfinite(number) or not 0 <= digits <= _MOST_DIGITS_OF_MYSQL:
        raise ValueError("a number that its type does not hold")
    whole = math.floor(number)
    rounded = whole + round((number - whole) * 10**digits) / 10**digits
    return f"{rounded or abs(rounded):.{digits}f}"


_MOST_DIGITS_OF_MYSQL = 30
