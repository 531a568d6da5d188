"""One module for each wire format. This page explains how to add one.

1. Write ``formats/<tool>_<encoding>.py``. Its docstring links the document that describes the format, and shows one
   real message. The module holds

   - the wire envelope as a ``msgspec.Struct``. Its field list is the documentation. A row image is a ``msgspec.Raw``,
     so that its bytes are passed on unchanged;
   - the operation names, spelt as in the document, mapped to ``events.Operation``;
   - ``TOOLS`` and ``UNTOLD``: the names of the tools that write the format, and what its messages do not contain, for
     ``tidemark formats``;
   - ``TRAITS``: a ``Traits``, which says what stages have to know of the messages beside the events: whether copies
     rank as new, whether an update may come in two messages, and more. Read each of its fields;
   - ``Options``: a frozen Pydantic model with ``extra="forbid"``. It has one field for each fact that the messages do
     not contain, with a docstring (``use_attribute_docstrings``);
   - ``decode(message, options) -> list[Event]``: a plain function without memory of earlier messages. It returns all
     events of the message. If it raises a ``DecodeError``, the whole message goes to quarantine.
     For a row of a complete initial load, set ``ChangeEvent.load`` to the place in the source's log where the load
     began, if all rows of the load have the same one. Never guess it: a load deletes the rows that it does not have.

2. Use ``_json.read`` for the envelope and ``_json.RowLayout`` for the columns of an image. Never loop over the values
   of a row, because every landed message is decoded.
3. Add folders ``tests/fixtures/formats/<name>/<case>/`` with ``messages.jsonl`` and ``events.jsonl``. The golden and
   conformance tests find the module and its folders, and fail if there is no folder.
4. Describe in ``docs/formats/<name>.md`` which facts the format does not contain, and what was decided.

There is no list of formats to update, but that of the import contract (pyproject.toml): every module here without a
leading underscore is a format. A package of its own brings one by an entry point of the group ``tidemark.formats``
(docs/format-plugins.md).

Rows of some formats cannot be read without other messages, called metadata messages. Such a format has two more names,
and ``decode`` takes a third argument:

- ``METADATA_MARK``: bytes that every metadata message contains, so that few other messages are examined.
- ``metadata(message, options) -> tuple[str, bytes] | None``: the id and the content of a metadata message; None for any
  other message. The content is itself a metadata message, which gives the same pair. It is also the ``statement`` of
  the ``SchemaChange`` that the message decodes to, so later runs find it in the change log.
- ``decode(message, options, known=NOTHING)``: ``known`` holds the metadata of all messages of this run and of earlier
  runs. It is complete before the first message is decoded. A row whose metadata is missing raises a
  ``MissingMetadataError``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pydantic import BaseModel

from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.events import Event, Message
from tidemark.formats._statements import executed
from tidemark.formats._traits import Placing, Traits, stale_names
from tidemark.text import first_line, nearest

if TYPE_CHECKING:
    from tidemark.formats._members import KnownMembers

__all__ = [
    "GROUP",
    "NOTHING",
    "Format",
    "Informed",
    "Known",
    "Placing",
    "Traits",
    "executed",
    "gather",
    "informed",
    "members_of",
    "names",
    "resolve",
    "traits_of",
]

Known = Mapping[str, tuple[bytes, ...]]
"""The metadata of a run: for each id, its distinct contents. They are sorted, so the order of delivery has no effect.
It is made once for a run and never changed."""

GROUP: Final = "tidemark.formats"
"""Group of entry points by which other packages bring formats: the name of the format, and its module."""

_NEEDED: Final = ("TOOLS", "UNTOLD", "Options", "decode")

_NO_TRAITS: Final = Traits()
"""Of a format of another package that says nothing."""

NOTHING: Known = MappingProxyType({})


class Format(Protocol):
    """The names that every format module has."""

    TOOLS: tuple[str, ...]
    """Names of the tools that write the format."""
    UNTOLD: tuple[str, ...]
    """What messages of the format do not contain, in a few words each."""
    TRAITS: Traits
    """What stages have to know of the messages. A format of another package may leave it out."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - a class of the module
        """The options of the format: frozen, without unknown keys."""

    @property
    def decode(self) -> Decode:
        """The function that turns one message into its events."""


class Informed(Format, Protocol):
    """A format that needs metadata messages. Its ``decode`` takes a ``Known`` as third argument."""

    METADATA_MARK: bytes
    """Every metadata message contains these bytes."""

    @property
    def decode(self) -> InformedDecode:
        """The function that turns one message into its events."""

    def metadata(self, message: Message, options: Any, /) -> tuple[str, bytes] | None:  # noqa: ANN401 - as below
        """Return the id and the content of a metadata message; None for any other message.

        Raises:
            DecodeError: the message is a metadata message and cannot be read.
        """


class Decode(Protocol):
    """The decoding function of a format."""

    def __call__(self, message: Message, options: Any, /) -> list[Event]:  # noqa: ANN401 - the module's own Options
        """Return the events of ``message`` in their order.

        Raises:
            DecodeError: the whole message is set aside.
        """


class InformedDecode(Decode, Protocol):
    """The decoding function of a format that needs metadata messages."""

    def __call__(self, message: Message, options: Any, known: Known = NOTHING, /) -> list[Event]:  # noqa: ANN401 - as above
        """Return the events of ``message`` in their order, read with the metadata in ``known``.

        Raises:
            DecodeError: the whole message is set aside.
        """


@functools.cache
def names() -> list[str]:
    """Return the names of all formats, sorted, without importing any.

    Raises:
        ConfigurationError: an installed package brings a format under a name that is taken.
    """
    return sorted({*own(), *_plugged_in()})


def resolve(name: str) -> Format:
    """Return the format called ``name``, imported.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: an installed package brings it, and it cannot be used.
    """
    if name not in names():
        raise UnknownNameError(f"Unknown format '{name}'.{nearest(name, names())} Known formats: {', '.join(names())}.")
    if name in own():
        return cast(Format, importlib.import_module(f"{__name__}.{name}"))
    return _plugin(_plugged_in()[name])


def traits_of(name: str) -> Traits:
    """Return what the format called ``name`` says of its messages.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: an installed package brings it, and it cannot be used.
    """
    return cast(Traits, getattr(resolve(name), "TRAITS", _NO_TRAITS))


def members_of(name: str) -> KnownMembers | None:
    """Return the members that messages of the format called ``name`` may have; None if nothing lists them.

    Raises:
        UnknownNameError: there is no such format.
        ConfigurationError: an installed package brings it, and it cannot be used.
    """
    from tidemark.formats._members import known_to  # noqa: PLC0415 - it looks into formats, so it imports this package

    return known_to(name)


@functools.cache
def own() -> frozenset[str]:
    """Return the names of Tidemark's own formats, without importing any."""
    return frozenset(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


@functools.cache
def _plugged_in() -> Mapping[str, EntryPoint]:
    """Return by name the formats that other packages bring."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in own() or entry.name in found:
            taken = "Tidemark" if entry.name in own() else f"the package {_package(found[entry.name])}"
            raise ConfigurationError(
                f"the package {_package(entry)} brings a format '{entry.name}', and {taken} has one of that name. "
                "Uninstall it, or let it choose another name."
            )
        found[entry.name] = entry
    return found


def _plugin(entry: EntryPoint) -> Format:
    try:
        module = entry.load()
    except Exception as error:  # its code is not ours: whatever it raises, the format cannot be used
        raise ConfigurationError(
            f"format '{entry.name}' of the package {_package(entry)} cannot be imported: {first_line(error)}"
        ) from error
    if problem := _problem(module, entry.value):
        raise ConfigurationError(f"format '{entry.name}' of the package {_package(entry)}: {problem}")
    return cast(Format, module)


def _problem(module: object, name: str) -> str | None:
    """Return why a module of another package is no format; None if it is one."""
    if missing := [each for each in _NEEDED if not hasattr(module, each)]:
        return f"{name} has no {', '.join(missing)}"
    traits = getattr(module, "TRAITS", _NO_TRAITS)
    if not isinstance(traits, Traits):
        return f"TRAITS of {name} is no `Traits`: write `TRAITS = Traits(...)`, with the class of tidemark.formats"
    if not (stale := stale_names(module, traits)):
        return None
    given = ", ".join(f"{field}={value}" for field, value in stale.values())
    return (
        f"{name} has {' and '.join(stale)}, which Tidemark no longer reads. Import `Traits` from tidemark.formats "
        f"and write `TRAITS = Traits({given})`; constants go"
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def informed(module: Format) -> Informed | None:
    """Return the module if its format needs metadata messages, else None."""
    return cast(Informed, module) if hasattr(module, "metadata") else None


def gather(pairs: Iterable[tuple[str, bytes]]) -> Known:
    """Return the ``Known`` of pairs that ``metadata`` returned. Their order and repetitions have no effect."""
    contents: dict[str, set[bytes]] = {}
    for id_, content in pairs:
        contents.setdefault(id_, set()).add(content)
    return {id_: tuple(sorted(found)) for id_, found in sorted(contents.items())}
