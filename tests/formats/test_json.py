"""The JSON that decoders share is strict, as another reader takes the images on."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import MalformedMessageError, MissingTableError
from tidemark.events import Column, TableId
from tidemark.formats import _json

ENVELOPE = msgspec.json.Decoder(dict[str, msgspec.Raw])
NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=4, unique=True)


def test_a_byte_order_mark_is_skipped() -> None:
    """Some dump tools write one before the first message."""
    assert "a" in _json.read(ENVELOPE, b'\xef\xbb\xbf{"a":1}')


@pytest.mark.parametrize(
    "value",
    [b'{"a":{"x":"\xff"}}', b'{"a":{"x":"\\ud800"}}', b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":01}', b'{"a":1,}', b"",
     b'{"a":"\n"}', b'{"a":"\\q"}', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":1} x', b"\xff\xfe{"],
    ids=lambda value: value[:20].decode("latin-1"),
)  # fmt: skip
def test_broken_json_is_malformed_wherever_it_breaks(value: bytes) -> None:
    """Also inside an image, whose bytes are not decoded here."""
    with pytest.raises(MalformedMessageError):
        _json.read(ENVELOPE, value)


@pytest.mark.parametrize(
    "image",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"b":":","a":2}',
        b'{ "a" : 1 , "a" : 1 }',
        b'{"a":1,"\\u0061":2}',
        b'{"a":{"x":1},"b":2,"a":3}',
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "b": ", x", "a": 1}',
    ],
)
def test_a_column_named_twice_is_malformed(image: bytes) -> None:
    """Readers disagree about which value counts."""
    layout = _json.untyped(("a", "b"))
    assert not layout.fits(image)
    with pytest.raises(MalformedMessageError, match="twice: a"):
        _json.members(image)


@given(names=NAMES, data=st.data())
def test_a_layout_fits_exactly_its_columns(names: list[str], data: st.DataObject) -> None:
    """An image fits with all columns of the shape in their order, and not with one less, one more, or another order."""
    layout = _json.untyped(tuple(names))
    values = data.draw(st.lists(st.sampled_from(["", ":", '":', None, 1, [1], {"a": ":"}]), min_size=len(names)))
    row = dict(zip(names, values, strict=False))

    def image(row: dict[str, object]) -> bytes:
        return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()

    # a name with an escape has other forms than the shortest: such an image is looked at more closely
    assert layout.fits(image(row)) or any(not name.isprintable() for name in names)
    assert tuple(_json.members(image(row))) == tuple(names)
    assert not layout.fits(image(row | {"".join(names) + "x": 1}))
    assert not layout.fits(image({name: value for name, value in row.items() if name != names[0]}))


def test_a_wider_layout_is_the_same_object_each_time() -> None:
    """Unknown columns of an image widen the shape, once."""
    narrow = _json.RowLayout([Column(name="a", type="int")])
    wide = narrow.widened(["a", "b"])
    assert wide is narrow.widened(["b", "a"])
    assert narrow is narrow.widened(["a"])
    assert wide.shape.columns == (Column(name="a", type="int"), Column(name="b"))


def test_the_table_option_names_one_to_three_parts() -> None:
    """As the source file writes tables."""
    assert _json.table_of_option("t") == TableId(database=None, schema=None, name="t")
    assert _json.table_of_option("d.t") == TableId(database="d", schema=None, name="t")
    assert _json.table_of_option("d.s.t") == TableId(database="d", schema="s", name="t")
    with pytest.raises(MissingTableError):
        _json.table_of_option(None)


@pytest.mark.parametrize(
    ("value", "payload", "schema"),
    [
        (b'{"schema":{"type":"int32"},"payload":7}', b"7", b'{"type":"int32"}'),
        (b'{"payload":"a","schema":null}', b'"a"', b"null"),
        (b'{"payload":{"a":1}}', b'{"a":1}', None),
        (b'{"schema":"public","payload":7}', None, None),
        (b'{"schema":1,"payload":{"a":1}}', None, None),
        (b'{"payload":7}', None, None),
        (b'{"schema":null,"other":7}', None, None),
    ],
)
def test_a_schema_that_is_neither_object_nor_null_is_a_column(
    value: bytes, payload: bytes | None, schema: bytes | None
) -> None:
    """A row may have columns that are called as the wrapper's members are."""
    assert _json.unwrap(value) == (payload or value, schema)
