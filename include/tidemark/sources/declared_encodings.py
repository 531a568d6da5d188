"""What is wrong with the encodings that a table's entry declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic_core import InitErrorDetails

from tidemark.events import Encoding
from tidemark.sources.fields import error_at
from tidemark.values.declared_types import types_for


def problems(encodings: Mapping[str, Encoding], types: Mapping[str, str]) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with encodings by column: each needs a type that holds its values.

    Args:
        encodings: the encodings.
        types: the types that the entry gives, by column.
    """
    for name, encoding in encodings.items():
        kind = types.get(name)
        if kind is None:
            yield error_at(("encodings", name), f"'{name}' needs its type as well: `columns: {{{name}: ...}}`.")
        elif encoding is Encoding.UNSCALED_BASE64 and not kind.startswith("decimal("):
            text = f"'{name}' comes as {encoding}, which needs decimal(p, s): s tells its scale."
            yield error_at(("encodings", name), text)
        elif others := types_for(encoding, kind):
            text = f"'{name}' comes as {encoding}, which no {kind} holds: {', '.join(others)} do."
            yield error_at(("encodings", name), text)
