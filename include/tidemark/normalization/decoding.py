"""Decoding without Spark: of dump files, and of single messages so that no hostile message can stop a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import pyarrow as pa
from pydantic import BaseModel, ValidationError

from tidemark.dumps import beyond_limit, containers
from tidemark.errors import ConfigurationError, DecodeError, MalformedMessageError
from tidemark.events import TIMES, Event, Message, Quarantined, SchemaChange
from tidemark.formats import Format, Informed, Known, gather, informed, resolve
from tidemark.normalization.canonical_json import event_to_json, to_line
from tidemark.normalization.masked_events import Decoded, Masking
from tidemark.text import harmless, without_values

DECODER_FAILED: Final = "decoder_failed"
"""Reason of a message on which a format failed by itself: the format needs a fix, and the message may be sound."""

_DETAIL_LIMIT: Final = 300


def decode_files(
    format_name: str, paths: Sequence[str], options: Mapping[str, object], masking: Masking | None = None
) -> Iterator[bytes]:
    """Yield the events of dump files in the order of the dump, each as one line of JSON with its line end.

    If the format needs metadata messages, all files are read twice: first for these, then for the events.

    A message that cannot be decoded, or that has a value that cannot be read, is one line with the reason
    (``canonical_json``). With ``masking``, values are masked, and statements are without the values in them.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: the format does not have an option, or an option has a wrong value.
        LandingError: a file cannot be read to its end. The events before the fault may have been yielded.
    """
    mask = None if masking is None else masking.masker()
    for message, decoded in decoded_files(format_name, paths, options):
        yield from _lines(message, decoded if mask is None else _without_values(mask(decoded)))


def decoded_files(
    format_name: str, paths: Sequence[str], options: Mapping[str, object]
) -> Iterator[tuple[Message, list[Event] | Quarantined]]:
    """Yield the messages of dump files in the order of the dump, each with its events.

    Raises the errors of ``decode_files``.
    """
    module = resolve(format_name)
    checked = check_options(format_name, options)
    informed_module = informed(module)
    known = None if informed_module is None else gather(metadata_of(informed_module, _all(paths), checked))
    for message in _all(paths):
        yield message, decode_message(module, message, checked, known)


def metadata_of(module: Informed, messages: Iterable[Message], options: BaseModel) -> Iterator[tuple[str, bytes]]:
    """Yield the id and content of each metadata message among ``messages``.

    A metadata message that cannot be read is skipped. Decoding sets it aside later.
    """
    for message in messages:
        if message.value is None or module.METADATA_MARK not in message.value:
            continue
        try:
            found = module.metadata(message, options)
        except Exception:  # noqa: BLE001, S112  a hostile message may raise anything; decoding it raises again, and says so
            continue
        if found is not None:
            yield found


def decode_message(
    module: Format, message: Message, options: BaseModel, known: Known | None = None
) -> list[Event] | Quarantined:
    """Return the events of one message, or the reason why it cannot be decoded. This function never raises.

    A time of capture that no reader of the lake knows is left out where the time of the commit is known: then nothing
    is read from it.

    Args:
        module: the format.
        message: the message.
        options: options of the format.
        known: the metadata of the run, for a format that needs metadata messages.
    """
    try:
        events = (
            module.decode(message, options) if known is None else cast(Informed, module).decode(message, options, known)
        )
        for event in events:
            if event.captured_at is not None and event.captured_at not in TIMES:
                return [_without_wrong_capture(each) for each in events]
    except Exception as error:  # noqa: BLE001  a hostile message may make a decoder raise anything
        # No format reads the mark of a message that was too long, so the check costs nothing where all is well.
        header = beyond_limit.header_of(message.value)
        return _set_aside(error) if header is None else Quarantined(beyond_limit.REASON, beyond_limit.detail(header))
    else:
        return events


def _without_wrong_capture(event: Event) -> Event:
    """Return an event without a time of capture outside of ``TIMES``, if its time of commit is known.

    Else the time of capture stands for it, and a wrong one may decide to which log of its source the event belongs.
    """
    if event.committed_at is None or event.captured_at is None or event.captured_at in TIMES:
        return event
    return msgspec.structs.replace(event, captured_at=None)


def _without_values(decoded: Decoded) -> list[Event] | Quarantined:
    """Return masked events, with statements that contain no values."""
    if isinstance(decoded, Quarantined):
        return decoded
    return [
        msgspec.structs.replace(event, statement=without_values(event.statement))
        if isinstance(event, SchemaChange)
        else cast(Event, event)
        for event in decoded
    ]


def _all(paths: Sequence[str]) -> Iterator[Message]:
    """Yield the messages of all files, in the order of the dump."""
    for path in paths:
        for batch in containers.read(path):
            yield from messages_of(batch, path)


def _lines(message: Message, decoded: list[Event] | Quarantined) -> list[bytes]:
    events = [decoded] if isinstance(decoded, Quarantined) else decoded
    try:
        return [to_line(event_to_json(event, message)) + b"\n" for event in events]
    except Exception as error:  # noqa: BLE001  as above: the message is set aside whole
        return [to_line(event_to_json(_set_aside(error), message)) + b"\n"]


def _set_aside(error: Exception) -> Quarantined:
    if isinstance(error, DecodeError):
        return Quarantined(error.reason, _bounded(str(error)))
    detail = _bounded(f"{type(error).__name__}: {error}")
    if isinstance(error, (msgspec.MsgspecError, ValueError, RecursionError)):
        return Quarantined(MalformedMessageError.reason, detail)
    return Quarantined(DECODER_FAILED, detail)


def _bounded(text: str) -> str:
    """Return text of a message, made safe to log and show: short, and without characters that steer a terminal."""
    shown = harmless(text[: _DETAIL_LIMIT + 1])
    return shown if len(shown) <= _DETAIL_LIMIT else f"{shown[: _DETAIL_LIMIT - 1]}…"


def messages_of(batch: pa.RecordBatch, path: str) -> Iterator[Message]:
    """Yield the messages of a batch of ``containers.MESSAGES``."""
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield Message(file=path, **dict(zip(containers.MESSAGES.names, row, strict=True)))


def check_options(format_name: str, options: Mapping[str, object]) -> BaseModel:
    """Return options of a format, validated.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: the format does not have an option, or an option has a wrong value.
    """
    model = resolve(format_name).Options
    try:
        return model.model_validate(options)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors())
        allowed = ", ".join(model.model_fields) or "none"
        raise ConfigurationError(f"Options of format {format_name}: {problems}. It has: {allowed}.") from error
