"""Golden folders: ``tests/fixtures/formats/<format>/<case>/`` holds messages and the events they must give.

``messages.jsonl`` has one message a line, verbatim (``messages.b64``: Base64, for binary formats); ``keys.jsonl`` the
record keys, line by line, ``null`` for none; ``options.json`` the options of the format; ``events.jsonl`` what
``tidemark decode`` prints.
"""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from tidemark import formats
from tidemark.errors import DecodeError
from tidemark.events import Event, Message, Quarantined
from tidemark.normalization.canonical_json import event_to_json
from tidemark.normalization.decoding import metadata_of

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"


class Case(NamedTuple):
    """One golden folder."""

    format: str
    folder: Path

    @property
    def options(self) -> BaseModel:
        """The options that the messages are decoded with."""
        path = self.folder / "options.json"
        return formats.resolve(self.format).Options(**(json.loads(path.read_text()) if path.exists() else {}))

    @property
    def messages(self) -> list[Message]:
        """The messages in the order of the file."""
        binary, keys = self.folder / "messages.b64", self.folder / "keys.jsonl"
        if binary.exists():
            values = [base64.b64decode(line) for line in binary.read_bytes().splitlines()]
            name = binary.name
        else:
            values, name = (self.folder / "messages.jsonl").read_bytes().split(b"\n")[:-1], "messages.jsonl"
        key_lines = keys.read_bytes().splitlines() if keys.exists() else [b"null"] * len(values)
        return [
            Message(value=value, file=name, place=place, key=None if key == b"null" else key)
            for place, (value, key) in enumerate(zip(values, key_lines, strict=True), start=1)
        ]

    @property
    def expected(self) -> list[object]:
        """The events as printed."""
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]

    def decode(self, message: Message) -> list[Event]:
        """Decode one message with the options of the case, and with what is known from its metadata messages."""
        module = formats.informed(formats.resolve(self.format))
        if module is None:
            return formats.resolve(self.format).decode(message, self.options)
        return module.decode(message, self.options, known_of(self))

    def printed(self, message: Message) -> list[dict[str, object]]:
        """Return the events of ``message`` as ``tidemark decode`` prints them."""
        try:
            events: list[Event | Quarantined] = [*self.decode(message)]
        except DecodeError as error:
            events = [Quarantined(error.reason, str(error))]
        return [self._print(event, message) for event in events]

    @staticmethod
    def _print(event: Event | Quarantined, message: Message) -> dict[str, object]:
        try:
            return event_to_json(event, message)
        except DecodeError as error:
            return event_to_json(Quarantined(error.reason, str(error)), message)


@functools.cache
def known_of(case: Case) -> formats.Known:
    """Return what is known from the metadata messages of a case."""
    module = formats.informed(formats.resolve(case.format))
    return formats.gather(metadata_of(module, case.messages, case.options)) if module else formats.NOTHING


def cases(format_: str | None = None) -> list[Case]:
    """Return the golden folders of one format, or of all."""
    names = [format_] if format_ else formats.names()
    return [Case(name, folder) for name in names for folder in sorted((FIXTURES / name).glob("*/"))]


def case_name(case: Case) -> str:
    """Return a readable test id."""
    return f"{case.format}-{case.folder.name}"
