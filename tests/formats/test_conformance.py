"""Laws that every format keeps, whatever its wire looks like; new formats are tested here without a line of code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.cases import Case, case_name, cases
from support.rounds import how_many
from tidemark import formats
from tidemark.errors import DecodeError
from tidemark.events import ChangeEvent, Event, Message, Operation
from tidemark.positions import encode_position

ALL = cases()
MESSAGES = [(case, message) for case in ALL for message in case.messages]


def decoded(case: Case, messages: list[Message]) -> list[list[Event] | str]:
    """Decode each message to its events, or the reason of its quarantine."""
    results: list[list[Event] | str] = []
    for message in messages:
        try:
            results.append(case.decode(message))
        except DecodeError as error:
            results.append(error.reason)
    return results


def changes(case: Case) -> Iterator[ChangeEvent]:
    """Return the row changes of a case."""
    for result in decoded(case, case.messages):
        yield from (event for event in result if isinstance(event, ChangeEvent))


def names_in(image: bytes | None) -> set[str]:
    """Return the columns of an image."""
    return set(msgspec.json.decode(image, type=dict[str, msgspec.Raw])) if image is not None else set()


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_decoding_remembers_nothing(case: Case) -> None:
    """A message gives the same events, whatever was decoded before it and however often."""
    forward = decoded(case, case.messages)
    backward = decoded(case, case.messages[::-1])[::-1]
    alone = [result for message in case.messages for result in decoded(case, [message])]
    assert forward == backward == alone


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_operations_have_their_images(case: Case) -> None:
    """INSERT and SNAPSHOT have an after, DELETE a before, UPDATE an image at least, TRUNCATE none, and no others."""
    for event in changes(case):
        has_before, has_after = event.before is not None, event.after is not None
        match event.operation:
            case Operation.INSERT | Operation.SNAPSHOT:
                assert (has_before, has_after) == (False, True)
            case Operation.DELETE:
                assert (has_before, has_after) == (True, False)
            case Operation.UPDATE:
                assert has_before or has_after
            case Operation.TRUNCATE:
                assert (has_before, has_after) == (False, False)


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_the_shape_has_every_column_of_the_images(case: Case) -> None:
    """Images are JSON objects; no column is lost by reading the columns of the shape only, but what the wire adds."""
    prefixes = ("__", getattr(case.options, "add_fields_prefix", "__"))
    for event in changes(case):
        columns = {column.name for column in event.shape.columns} if event.shape else set()
        found = {name for name in names_in(event.before) | names_in(event.after) if not name.startswith(prefixes)}
        assert found <= columns
        assert set(event.absent) <= columns
        assert event.partial or not event.absent


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_equal_shapes_are_one_object(case: Case) -> None:
    """Shapes are cached: the same message twice gives the same object, so that identity shows equality cheaply."""
    for first, second in zip(changes(case), changes(case), strict=True):
        assert first.shape is second.shape


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_positions_rise_within_a_message(case: Case) -> None:
    """The events of a message stand in their order, and the text of a position sorts as the position does."""
    for result in decoded(case, case.messages):
        if isinstance(result, str):
            continue
        for first, second in itertools.pairwise(event.position for event in result):
            assert first < second
            assert encode_position(first) < encode_position(second)


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_row_changes_follow_the_order_of_the_dump(case: Case) -> None:
    """Where Kafka numbered the records, a later record of one partition never ranks below its equal before it."""
    for message in case.messages:
        earlier = msgspec.structs.replace(message, partition=3, offset=9)
        later = msgspec.structs.replace(message, partition=3, offset=10)
        for first, second in zip(decoded(case, [earlier]), decoded(case, [later]), strict=True):
            if not isinstance(first, str) and not isinstance(second, str):
                assert [event.position for event in first] <= [event.position for event in second]


@pytest.mark.parametrize("case", ALL, ids=case_name)
def test_a_truncated_message_is_set_aside(case: Case) -> None:
    """A message that was cut off anywhere raises a DecodeError and nothing else; cut off JSON is never a message."""
    for message in case.messages:
        value = message.value or b""
        for end in range(0, len(value), max(1, len(value) // 40)):
            (result,) = decoded(case, [msgspec.structs.replace(message, value=value[:end])])
            assert isinstance(result, str) or not message.file.endswith(".jsonl"), message.place


@pytest.mark.more
@settings(max_examples=how_many(usually=150, proving=400), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_damaged_bytes_raise_decode_errors_only(data: st.DataObject) -> None:
    """Whatever bytes a message holds, decoding gives events or a DecodeError, and never half the rows."""
    case, message = data.draw(st.sampled_from(MESSAGES))
    value = bytearray(message.value or b"")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(value)))
        value[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                [b"", b"\x00", b"\xff", b"\\", b'"', b"{", b"}", b"null", b"-1", b"1e999", b"\\ud800", b"[["]
            )
        )
    key = data.draw(st.sampled_from([message.key, None, b"", b"{", b'{"id":1}', b"\xff", b"[]"]))
    decoded(case, [msgspec.structs.replace(message, value=bytes(value), key=key)])


@settings(max_examples=100, deadline=None)
@given(value=st.binary(max_size=60).filter(lambda value: value != b"null"), name=st.sampled_from(formats.names()))
def test_any_bytes_raise_decode_errors_only(value: bytes, name: str) -> None:
    """Bytes that are no message at all raise a DecodeError."""
    with pytest.raises(DecodeError):
        formats.resolve(name).decode(Message(value=value, file="f", place=1), cases(name)[0].options)


@pytest.mark.parametrize("name", formats.names())
def test_options_are_strict(name: str) -> None:
    """An unknown option is refused, and options cannot be changed once made."""
    with pytest.raises(ValueError, match=r"extra_forbidden|Extra inputs"):
        formats.resolve(name).Options(no_such_option=1)
    assert formats.resolve(name).Options.model_config["frozen"] is True
