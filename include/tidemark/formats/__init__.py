"""One module for each wire format; this page is how to add one.

1. Write ``formats/<tool>_<encoding>.py``. Its docstring links the document that describes the format and shows one
   real message. It holds

   - the wire envelope as a ``msgspec.Struct``: its field list is the documentation, and a row image is a
     ``msgspec.Raw``, so that the bytes of the image travel on untouched;
   - the operation names as the document spells them, mapped to ``events.Operation``;
   - ``Options``: a frozen Pydantic model with ``extra="forbid"``, one field for each thing that the messages cannot
   tell;
   - ``decode(message, options) -> list[Event]``: a plain function without memory of earlier messages. It returns all
     events of the message, or raises a ``DecodeError`` and the message goes to quarantine whole.

2. Use ``_json.read`` for the envelope and ``_json.Layout`` for the columns of an image. Never walk over the values of a
   row: one decode is paid for every message landed.
3. Add folders ``tests/fixtures/formats/<name>/<case>/`` with ``messages.jsonl`` and ``events.jsonl``. The golden and
   conformance tests find the module and the folders by themselves, and fail when there is none.
4. Describe in ``docs/formats/<name>.md`` what the format cannot tell and what was decided.

There is no list to keep in step: a module here without a leading underscore is a format.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from typing import Any, Protocol, cast

from pydantic import BaseModel

from tidemark.errors import UnknownNameError
from tidemark.events import Event, Message

__all__ = ["Format", "names", "resolve"]


class Format(Protocol):
    """What a format module has to offer."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - a class of the module
        """Options of the format: frozen, unknown keys refused."""

    @property
    def decode(self) -> Decode:
        """Turn one message into its events."""


class Decode(Protocol):
    """The one function of a format."""

    def __call__(self, message: Message, options: Any, /) -> list[Event]:  # noqa: ANN401 - the module's own Options
        """Return the events of ``message`` in their order.

        Raises:
            DecodeError: the message is set aside whole.
        """


@functools.cache
def names() -> list[str]:
    """Return the names of all formats, sorted, without importing any."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def resolve(name: str) -> Format:
    """Import the format called ``name``.

    Raises:
        UnknownNameError: there is no such format.
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UnknownNameError(f"Unknown format '{name}'.{hint} Known formats: {', '.join(names())}.")
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
