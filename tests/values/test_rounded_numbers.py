"""Which numbers a column of doubles would round, and how they are found in images."""

from __future__ import annotations

import json
import random
import struct

import pyarrow as pa
import pytest

from tidemark.values.rounded_numbers import columns_of, is_rounded

ROUNDED = [
    "12345678901234567890.12", "-12345678901234567890.12", "0.123456789012345678", "1.23456789012345678e10",
    "1234567890.12345678901e-300", "9007199254740993", "-9007199254740993", "12345678901234567", "1234567890123456789",
    "123456789012345678900000", "1" * 400,
]  # fmt: skip

EXACT = [
    "0", "-0", "0.0", "1", "1e400", "1.5e300", "5e-324", "0.1", "0.10000000000000001", "1.7976931348623157e308",
    "9007199254740992", "1700000000000000", "1152921504606847000", "100000000000000000000000",
    "1.100000000000000000000", "0.00000000000000000000000000012345678901234567", "2.2250738585072014E-308",
    "62716929780319688",
]  # fmt: skip


@pytest.mark.parametrize("written", ROUNDED)
def test_a_number_that_is_no_double_is_found(written: str) -> None:
    """It has more than 17 digits, or it is a whole number between two doubles."""
    assert is_rounded(written)
    assert _found(f'{{"id":1,"x":{written},"y":2}}') == ["x"]
    assert _found(f'{{"id":1, "x" : "{written}"}}') == ["x"]
    assert _found('{"x":1}', f'{{"y":7,"x":{written}}}', "null", f'{{"y":{written}}}') == ["x", "y"]


@pytest.mark.parametrize("written", EXACT)
def test_a_number_that_a_double_is_written_as_is_none(written: str) -> None:
    """Zeros in front and at the end do not count."""
    assert not is_rounded(written)
    assert _found(f'{{"id":1,"x":{written},"y":{written}}}') == []


@pytest.mark.parametrize("text", ["", "abc", "12345678901234567890x", "null", "+", "."])
def test_what_is_no_number_is_none(text: str) -> None:
    """Texts of digits in other columns, and nested values, do not count either."""
    assert not is_rounded(text)
    image = {"id": 1, "x": text, "z": 12345678901234567890, "n": {"x": 12345678901234567890}, "t": '"x":' + "1" * 20}
    assert _found(json.dumps(image), "{broken", '{"x":12345678901234567890', None) == []


def test_no_double_is_rounded() -> None:
    """However it is written: with its shortest digits, with 17, or as a whole number with all of them."""
    chance = random.Random(3)  # noqa: S311 - the same each time
    doubles = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(3000)]
    doubles += [chance.uniform(-1, 1) * 10.0 ** chance.randint(-8, 18) for _ in range(3000)]
    written = [text for each in doubles if each - each == 0 for text in (repr(each), f"{each:.17g}", f"{each:.16e}")]
    assert len(written) > 15_000
    assert [text for text in written if is_rounded(text)] == []
    whole = [int(each) for each in doubles if abs(each) < 1e17]
    assert [number for number in whole if is_rounded(str(number)) and float(number) == number] == []


@pytest.mark.parametrize("name", ["x.y", "größe", 'a"b', "a/b", "a\\b", "(", "$n"])
def test_columns_of_any_name_are_looked_at(name: str) -> None:
    """Producers escape some characters in names, or leave them as they are."""
    for image in (json.dumps({name: 12345678901234567890}), json.dumps({name: 1.5, "z": 12345678901234567890})):
        (batch,) = columns_of([pa.record_batch({"image": [image]})], columns=[name, "q"])
        assert batch.column("name").to_pylist() == ([name] if "1.5" not in image else [])


def _found(*images: str | None) -> list[str]:
    """Return the columns ``x`` and ``y`` that are found in a batch of images."""
    (batch,) = columns_of([pa.record_batch({"image": pa.array(images, pa.string())})], columns=["x", "y"])
    found: list[str] = batch.column("name").to_pylist()
    return found
