"""Dump files to canonical events, without Spark; and the guard that keeps one hostile message from stopping a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import pyarrow as pa
from pydantic import BaseModel, ValidationError

from tidemark.dumps import containers
from tidemark.errors import ConfigurationError, DecodeError, MalformedMessageError
from tidemark.events import Event, Message, Quarantined
from tidemark.formats import Format, Informed, Known, gather, informed, resolve
from tidemark.normalization.canonical_json import event_to_json, to_line
from tidemark.text import harmless

DECODER_FAILED: Final = "decoder_failed"
"""Reason of a message on which a format stumbled: the format needs a fix, the message may be sound."""

_DETAIL_LIMIT: Final = 300


def decode_files(format_name: str, paths: Sequence[str], options: Mapping[str, object]) -> Iterator[bytes]:
    """Yield the events of dump files in the order of the dump, each as one line of JSON with its line end.

    A format that needs metadata messages has all files read for these first.

    A message that cannot be decoded, or has a value that cannot be read, is one line that says so; see ``wire``.

    Raises:
        UnknownNameError: no such format.
        ConfigurationError: an option that the format does not have, or a wrong value of one.
        LandingError: a file that cannot be read whole; the events before the fault may have been given.
    """
    for message, decoded in decoded_files(format_name, paths, options):
        yield from _lines(message, decoded)


def decoded_files(
    format_name: str, paths: Sequence[str], options: Mapping[str, object]
) -> Iterator[tuple[Message, list[Event] | Quarantined]]:
    """Yield the messages of dump files in the order of the dump, each with its events; raises as ``decode_files``."""
    module = resolve(format_name)
    checked = check_options(format_name, options)
    asking = informed(module)
    known = None if asking is None else gather(metadata_of(asking, _all(paths), checked))
    for message in _all(paths):
        yield message, decode_message(module, message, checked, known)


def metadata_of(module: Informed, messages: Iterable[Message], options: BaseModel) -> Iterator[tuple[str, bytes]]:
    """Yield what the metadata messages of ``messages`` tell; one that cannot be read is for decoding to set aside."""
    for message in messages:
        if message.value is None or module.METADATA_MARK not in message.value:
            continue
        try:
            told = module.metadata(message, options)
        except Exception:  # noqa: BLE001, S112  whatever a hostile message raises: decoding it raises again, and says so
            continue
        if told is not None:
            yield told


def decode_message(
    module: Format, message: Message, options: BaseModel, known: Known | None = None
) -> list[Event] | Quarantined:
    """Decode one message and never raise: a message that cannot be decoded comes back as the reason why.

    ``options`` are the module's own; ``known`` is what metadata messages told, for a format that asks.
    """
    try:
        return (
            module.decode(message, options) if known is None else cast(Informed, module).decode(message, options, known)
        )
    except Exception as error:  # noqa: BLE001  whatever a hostile message makes a decoder raise
        return _set_aside(error)


def _all(paths: Sequence[str]) -> Iterator[Message]:
    for path in paths:
        for batch in containers.read(path):
            yield from _messages(batch, path)


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
    """Make text of a message safe to log and show: short, and nothing in it that steers a terminal."""
    shown = harmless(text[: _DETAIL_LIMIT + 1])
    return shown if len(shown) <= _DETAIL_LIMIT else f"{shown[: _DETAIL_LIMIT - 1]}…"


def _messages(batch: pa.RecordBatch, path: str) -> Iterator[Message]:
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield Message(file=path, **dict(zip(containers.MESSAGES.names, row, strict=True)))


def check_options(format_name: str, options: Mapping[str, object]) -> BaseModel:
    """Read options of a format.

    Raises:
        UnknownNameError: no such format.
        ConfigurationError: an option that the format does not have, or a wrong value of one.
    """
    model = resolve(format_name).Options
    try:
        return model.model_validate(options)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors())
        allowed = ", ".join(model.model_fields) or "none"
        raise ConfigurationError(f"Options of format {format_name}: {problems}. It has: {allowed}.") from error
