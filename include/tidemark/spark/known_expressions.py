"""Expressions of Spark, none of which this process makes in the JVM that it has made before.

PySpark makes an expression by a message to the JVM for each of its parts: some nine hundred for a table with a history,
most of them equal to those of the table before, or of the run before. A column of the JVM never changes, and knows
neither a frame nor a session nor a setting: Spark makes an expression of it anew each time that a frame is built with
it. So an equal part is the same object, whatever it is a part of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import Any

from cachetools import LRUCache
from py4j.java_gateway import JavaObject

_FUNCTIONS = frozenset(
    """array array_compact array_contains asc coalesce col concat concat_ws count count_distinct count_if desc
    element_at endswith every explode first get greatest lag last lead least left length lit locate max max_by min
    min_by negate not orderBy partitionBy replace right row_number size some startswith struct substr substring
    substring_index sum timestamp_micros try_element_at unix_micros when xxhash64""".split()  # noqa: SIM905 - one name a line would be a page
)
"""Functions of Spark and of its windows that make the same of the same: without chance, without Python's code."""

_METHODS = frozenset(
    """and apply as asc cast contains desc divide endsWith eqNullSafe equalTo geq getField getItem gt isNotNull isNull
    isin leq like lt minus mod multiply notEqual or orderBy otherwise over partitionBy plus rangeBetween rlike
    rowsBetween startsWith substr try_cast when""".split()  # noqa: SIM905
)
"""Methods of a column, or of a window, that make another one."""

_MOST = 20_000
"""Parts that are kept: those of some twenty tables that differ in columns and options. All take 25 MB of memory."""

_Key = tuple[object, ...]

_known: LRUCache[_Key, JavaObject] = LRUCache(_MOST)
"""By what made it, and of what. An object is kept as long as its key, and the JVM gives its number to no other one."""

_lock = Lock()


def forget() -> None:
    """Forget all of it: the JVM is another one."""
    with _lock:
        _known.clear()


def function(class_name: str, name: str, made: Callable[..., JavaObject]) -> Callable[..., JavaObject]:
    """Return a function of the JVM that makes nothing which is known, or the function as it is where chance decides.

    Args:
        class_name: the class of the JVM that has it.
        name: what it is called there.
        made: the function.
    """
    return partial(_remembered, (class_name, name), made) if name in _FUNCTIONS else made


def sequence(made: Callable[[Iterable[object]], JavaObject]) -> Callable[[Iterable[object]], JavaObject]:
    """Return a function that makes a list of the JVM, and makes none that is known."""

    def listed(values: Iterable[object]) -> JavaObject:
        found = list(values)
        return _remembered(("list",), lambda *_: made(found), *found)

    return listed


def _remembered(made_by: _Key, make: Callable[..., JavaObject], *parts: object) -> JavaObject:
    try:
        key = (*made_by, *map(_part, parts))
    except TypeError:
        return make(*parts)
    with _lock:
        known = _known.get(key)
    if known is None:
        known = make(*parts)
        known.__class__ = _Expression
        with _lock:
            _known[key] = known
    return known


def _part(part: object) -> object:
    """Return what a part is known by: its number in the JVM, or its value with its type, as 1, 1.0 and true are equal.

    Raises:
        TypeError: it is known by neither.
    """
    if isinstance(part, JavaObject):
        return (part._target_id,)  # noqa: SLF001  py4j asks the JVM whether two objects are equal
    if part is None or isinstance(part, str | int | float):
        return type(part), repr(part)  # 0.0 and -0.0 are equal too, and no NaN is
    raise TypeError(type(part))


class _Expression(JavaObject):  # type: ignore[misc]
    """A column or a window of the JVM, whose methods make none that is known."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as in Py4J
        method = super().__getattr__(name)
        return partial(_remembered, (self._target_id, name), method) if name in _METHODS else method
