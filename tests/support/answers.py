"""Whether an answer of the command line is of the type that the reference page of JSON output is made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict


def differences(value: Any, hint: Any, place: str = "") -> Iterator[str]:
    """Yield where a decoded answer is not of a type: keys that it lacks or has beside, and values of another kind."""
    origin, inner = get_origin(hint), get_args(hint)
    if inner and origin not in (list, dict, Mapping):  # one of several types
        yield from min(([*differences(value, each, place)] for each in inner), key=len)
        return
    is_object = is_typeddict(hint) or dataclasses.is_dataclass(hint) or origin in (dict, Mapping)
    kind = dict if is_object else list if origin is list else hint
    if kind not in (Any, object) and not isinstance(value, str if issubclass(kind, str) else kind):
        yield f"{place}: {value!r} is no {kind.__name__}"
    elif origin is list:
        for each in value:
            yield from differences(each, inner[0], f"{place}[]")
    elif origin in (dict, Mapping):
        for each in value.values():
            yield from differences(each, inner[1], f"{place}.*")
    elif is_object:
        fields = get_type_hints(hint)
        yield from (f"{place}.{name}" for name in fields.keys() ^ value.keys())
        for name in fields.keys() & value.keys():
            yield from differences(value[name], fields[name], f"{place}.{name}")
