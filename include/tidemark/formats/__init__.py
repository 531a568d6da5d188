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
     A row of a complete initial load tells where in the source's log that began (``ChangeEvent.load``), where all rows
     of a load say the same; never by a guess, as rows that a later load lacks are gone.

2. Use ``_json.read`` for the envelope and ``_json.Layout`` for the columns of an image. Never walk over the values of a
   row: one decode is paid for every message landed.
3. Add folders ``tests/fixtures/formats/<name>/<case>/`` with ``messages.jsonl`` and ``events.jsonl``. The golden and
   conformance tests find the module and the folders by themselves, and fail when there is none.
4. Describe in ``docs/formats/<name>.md`` what the format cannot tell and what was decided.

There is no list to keep in step: a module here without a leading underscore is a format.

A format whose rows cannot be read without other messages asks for these with two more names, and has a third argument:

- ``METADATA_MARK``: bytes that every metadata message holds, so that few others need a look;
- ``metadata(message, options) -> tuple[str, bytes] | None``: the id and the content of a metadata message, None for any
  other. The content is itself a metadata message that gives the same pair, and it is the ``statement`` of the
  ``SchemaChange`` that the message decodes to: so that later runs find it in the change log;
- ``decode(message, options, known=NOTHING)``: ``known`` holds what was collected from all messages of the run and of
  earlier ones before the first is decoded. A row whose metadata is nowhere is a ``MissingMetadataError``.

A format whose updates may come as two messages, the old row and the new one (``events.ChangeEvent``), says
``PAIRS_UPDATES = True``: an image of it that comes alone is whole, and a column that it lacks is null.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, cast

from pydantic import BaseModel

from tidemark.errors import UnknownNameError
from tidemark.events import Event, Message

__all__ = ["NOTHING", "Format", "Informed", "Known", "gather", "informed", "names", "pairs_updates", "resolve"]

Known = Mapping[str, tuple[bytes, ...]]
"""What metadata messages told: id to the distinct contents under it, sorted, so that no order of delivery shows. Made
once for a run and never changed."""

NOTHING: Known = MappingProxyType({})


class Format(Protocol):
    """What a format module has to offer."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - a class of the module
        """Options of the format: frozen, unknown keys refused."""

    @property
    def decode(self) -> Decode:
        """Turn one message into its events."""


class Informed(Format, Protocol):
    """What a format has to offer beside it when it needs metadata messages; its ``decode`` takes a ``Known`` third."""

    METADATA_MARK: bytes
    """Every metadata message holds these bytes."""

    @property
    def decode(self) -> InformedDecode:
        """Turn one message into its events."""

    def metadata(self, message: Message, options: Any, /) -> tuple[str, bytes] | None:  # noqa: ANN401 - as below
        """Return id and content of a metadata message, None for any other.

        Raises:
            DecodeError: a metadata message that cannot be read.
        """


class Decode(Protocol):
    """The one function of a format."""

    def __call__(self, message: Message, options: Any, /) -> list[Event]:  # noqa: ANN401 - the module's own Options
        """Return the events of ``message`` in their order.

        Raises:
            DecodeError: the message is set aside whole.
        """


class InformedDecode(Decode, Protocol):
    """``Decode`` of a format that needs metadata messages."""

    def __call__(self, message: Message, options: Any, known: Known = NOTHING, /) -> list[Event]:  # noqa: ANN401 - as above
        """Return the events of ``message`` in their order, read by what ``known`` tells.

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


def informed(module: Format) -> Informed | None:
    """Return a format as one that needs metadata messages, None where it does not."""
    return cast(Informed, module) if hasattr(module, "metadata") else None


def pairs_updates(module: Format) -> bool:
    """Tell whether an update may come as two messages, the old row and the new one: such a format says so."""
    return bool(getattr(module, "PAIRS_UPDATES", False))


def gather(told: Iterable[tuple[str, bytes]]) -> Known:
    """Return what pairs of ``metadata`` amount to, whatever their order and however often each comes."""
    contents: dict[str, set[bytes]] = {}
    for id_, content in told:
        contents.setdefault(id_, set()).add(content)
    return {id_: tuple(sorted(found)) for id_, found in sorted(contents.items())}
