"""The plain reader is exact: what it reads is what was written, and what does not fit is refused."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.values.iso8601 import date, instant
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks


def read(value: object, type_: str | None, encoding: Encoding = Encoding.PLAIN) -> Value:
    """Read a value as JSON writes it."""
    return read_value(json.dumps(value).encode(), Column(name="c", type=type_, encoding=encoding))


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("type_", ["string", "binary", "long", "decimal(9, 2)", "date", "timestamptz", None])
def test_null_is_null_under_every_encoding(encoding: Encoding, type_: str | None) -> None:
    """JSON null is SQL NULL, always."""
    assert read(None, type_, encoding) is None


@given(number=st.integers(-(10**38) + 1, 10**38 - 1), scale=st.integers(0, 38))
def test_decimals_survive_as_text_and_as_unscaled_bytes(number: int, scale: int) -> None:
    """Every decimal that Iceberg holds is read exactly in each of its encodings."""
    type_, exact = f"decimal(38, {scale})", f"{Decimal(number).scaleb(-scale, Context(prec=50)):f}"
    size = (number.bit_length() + 8) // 8
    unscaled = base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
    assert Decimal(str(read(unscaled, type_, Encoding.UNSCALED_BASE64))) == Decimal(exact)
    assert Decimal(str(read({"scale": scale, "value": unscaled}, type_, Encoding.SCALED_STRUCT))) == Decimal(exact)
    assert read(exact, type_, Encoding.TEXT) == exact
    assert read_value(exact.encode(), Column(name="c", type=type_)) == exact


@given(value=st.binary(max_size=50))
def test_bytes_survive_in_every_encoding(value: bytes) -> None:
    """Base64 with both alphabets and without padding, hexadecimal, Latin-1, little-endian bits."""
    printed = base64.b64encode(value).decode()
    assert read(printed, "binary", Encoding.BASE64) == printed
    assert read(base64.urlsafe_b64encode(value).decode().rstrip("="), "binary", Encoding.BASE64) == printed
    assert read(value.hex(), "binary", Encoding.HEX) == printed
    assert read(value.decode("latin-1"), "binary", Encoding.LATIN1) == printed
    assert read(base64.b64encode(value[::-1]).decode(), "binary", Encoding.BITS_LE_BASE64) == printed


WRITTEN_BYTES = [
    Encoding.PLAIN, Encoding.BASE64, Encoding.HEX, Encoding.LATIN1, Encoding.BITS_LE_BASE64, Encoding.TEXT_OR_MILLIS,
]  # fmt: skip


@pytest.mark.parametrize("encoding", WRITTEN_BYTES)
@pytest.mark.parametrize(
    "value", [12, 5678, 1234.5, True, False, {"type": "Buffer", "data": [7, 8]}, {}, [7, 8], [], ["AQI="]]
)
def test_bytes_are_read_of_a_string_alone(value: object, encoding: Encoding) -> None:
    """A number, a word or an object is another way to write bytes, and its digits or letters are not the bytes."""
    with pytest.raises(UnreadableValueError, match="bytes are written as a string"):
        read(value, "binary", encoding)


@pytest.mark.parametrize("value", [5678, True])
def test_the_bytes_of_an_unscaled_number_are_a_string(value: object) -> None:
    """The digits of the member ``value`` would be other bytes."""
    with pytest.raises(UnreadableValueError, match="bytes are written as a string"):
        read({"scale": 1, "value": value}, "decimal(9, 1)", Encoding.SCALED_STRUCT)


@given(moment=st.datetimes())
def test_times_survive_in_every_encoding(moment: dt.datetime) -> None:
    """As a count of each unit and as text, to the microsecond, from year 1 to 9999."""
    micros = (moment - EPOCH) // dt.timedelta(microseconds=1)
    printed = moment.isoformat(timespec="microseconds")
    assert read(micros, "timestamp", Encoding.EPOCH_MICROS) == printed
    if abs(micros) < 2**63 // 1000:
        assert read(micros * 1000, "timestamp", Encoding.EPOCH_NANOS) == printed
    assert read(str(micros), "timestamptz", Encoding.EPOCH_MICROS) == f"{printed}Z"
    assert read(printed.replace("T", " "), "timestamp") == printed
    assert read(f"{printed}+00:00", "timestamptz") == f"{printed}Z"
    assert read((moment - EPOCH).days, "date", Encoding.EPOCH_DAYS) == moment.date().isoformat()
    whole = moment.replace(microsecond=0)
    assert read((whole - EPOCH) // dt.timedelta(seconds=1), "timestamp", Encoding.EPOCH_SECONDS) == instant(
        (whole - EPOCH) // dt.timedelta(microseconds=1)
    )


@given(days=st.integers(-(2**31), 2**31 - 1))
def test_dates_of_readable_years_are_read_back(days: int) -> None:
    """Text has a calendar without end; a date has the years 1 to 9999."""
    text = date(days)
    if -719_162 <= days <= 2_932_896:
        assert read(text, "date") == text
    else:
        with pytest.raises(UnreadableValueError, match=r"years 1 to 9999|not a date"):
            read(text, "date")


@given(micros=st.integers(-(10**15), 10**15))
def test_times_of_day_may_be_negative_and_long(micros: int) -> None:
    """MySQL's TIME goes from -838:59:59 to 838:59:59."""
    text = str(read(micros, "string", Encoding.MICROS_OF_DAY))
    hours, minutes, seconds = text.lstrip("-").split(":")
    total = (int(hours) * 60 + int(minutes)) * 60 + Decimal(seconds)
    assert (-total if text.startswith("-") else total) * 1_000_000 == micros


@pytest.mark.parametrize(
    ("value", "type_", "encoding", "printed"),
    [
        ("00012", "int", "text", "12"),
        ("+7", "long", "plain", "7"),
        ("1E+2", "decimal(5, 1)", "text", "100"),
        ("0.10", "decimal(5, 2)", "text", "0.10"),
        ("0e99999", "decimal(5, 2)", "text", "0"),
        ("nan", "float", "text", "NaN"),
        ("-Infinity", "double", "plain", "-Infinity"),
        ("POSITIVE_INFINITY", "double", "plain", "Infinity"),
        ("negative_infinity", "float", "text", "-Infinity"),
        ("t", "boolean", "text", True),
        (0, "boolean", "plain", False),
        ("2024-02-29Z", "date", "plain", "2024-02-29"),
        ("2023-01-01 00:00:00", "date", "text", "2023-01-01"),
        ("2023-01-01 10:00", "timestamp", "text", "2023-01-01T10:00:00.000000"),
        ("2023-01-01T10:00:00.1234560+05:30", "timestamptz", "plain", "2023-01-01T04:30:00.123456Z"),
        ("2023-01-01T10:00:00+00:00", "timestamp", "plain", "2023-01-01T10:00:00.000000"),
        (86400000, "string", "ms_of_day", "24:00:00"),
        ({"a": 1}, "string", "plain", '{"a": 1}'),
        (True, None, "plain", True),
        (7, None, "plain", "7"),
        ("YQ==", "binary", "plain", "YQ=="),
        ("AP+A", "binary", "text_or_us", "AP+A"),
        ("", "binary", "text_or_us", ""),
        ("", "long", "text_or_us", None),
        ("", "string", "text_or_us", ""),
        ("", None, "text_or_us", ""),
        (1731661114000, "timestamptz", "text_or_ms", "2024-11-15T08:58:34.000000Z"),
        ("1731661114000", "timestamp", "text_or_ms", "2024-11-15T08:58:34.000000"),
        ("1731661114000001", "timestamp", "text_or_us", "2024-11-15T08:58:34.000001"),
        ("-86400000000", "date", "text_or_us", "1969-12-31"),
        ("2024-11-15 08:58:34", "timestamp", "text_or_us", "2024-11-15T08:58:34.000000"),
        ("1731661114000", "string", "text_or_ms", "1731661114000"),
    ],
)
def test_values_as_producers_write_them(value: object, type_: str | None, encoding: str, printed: Value) -> None:
    """Each form that a format of ours is known to deliver."""
    assert read(value, type_, Encoding(encoding)) == printed


@pytest.mark.parametrize(
    ("value", "type_", "encoding"),
    [
        ("1.0", "int", "text"),
        ("", "int", "text"),
        ("\u0661", "int", "text"),
        (2**63, "long", "plain"),
        ("1_0", "double", "text"),
        ("1e400", "double", "text"),
        ("3.5e38", "float", "text"),
        ("0.001", "decimal(5, 2)", "text"),
        ("1e9999999", "decimal(5, 2)", "text"),
        ("NaN", "decimal(5, 2)", "plain"),
        ("yes", "boolean", "text"),
        ("0000-00-00", "date", "text"),
        ("2023-01-01T10:00:00-0800", "timestamp", "plain"),
        ("2023-01-01T00:00:00+05:30", "date", "plain"),
        ("2023-01-01T00:00:00+24:00", "timestamptz", "plain"),
        ("2023-01-01T00:00:00-05:60", "timestamptz", "plain"),
        ("2023-02-29", "date", "text"),
        ("2023-01-01 00:00:01", "date", "text"),
        ("2023-01-01 24:00:00", "timestamp", "text"),
        ("2023-01-01 00:00:60", "timestamp", "text"),
        ("2023-01-01 00:00:00 CET", "timestamptz", "text"),
        ("20230101", "date", "text"),
        (1, "timestamp", "epoch_ns"),
        (1.5, "timestamp", "epoch_ms"),
        ("AQ=", "string", "unscaled_base64"),
        ("a*", "binary", "base64"),
        ("€", "binary", "latin1"),
        ("abc", "binary", "hex"),
        ({"scale": 1}, "decimal(5, 2)", "scaled_struct"),
        (1731661114000, "date", "text_or_ms"),
        ("tomorrow", "timestamp", "text_or_us"),
        ("*", "binary", "text_or_us"),
        ("x", "uuid", "plain"),
        (1, "time", "plain"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value: object, type_: str, encoding: str) -> None:
    """Never rounded, never defaulted; the error names the column and the value."""
    with pytest.raises(UnreadableValueError, match="column 'c'"):
        read(value, type_, Encoding(encoding))
