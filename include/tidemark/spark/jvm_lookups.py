"""Fewer messages to the JVM: what was asked of it once is not asked again, and a list goes there in pieces of ten.

PySpark asks for the class of functions, and in it for the function, whenever an expression calls one: two of the three
messages that a call takes, and for the first the JVM goes through all jars for a class of the default package. It makes
the same column anew whenever it is named, and sends a list item by item. A plan calls hundreds of functions. What is
remembered has no state, so threads may share it; measured in docs/adr/0009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from py4j.java_gateway import JavaClass, JavaObject, JVMView

CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")
"""By the names that PySpark calls them; one that it does not ask for is only not used."""

_COLUMNS = 4096
"""Columns that are remembered by their names."""

_AT_ONCE = 10
"""Most items that `java.util.List.of` takes."""


def remember(jvm: JVMView) -> None:
    """Have the classes of functions, and what is asked of them, looked up once for as long as the JVM is there."""
    for name in CLASSES:
        found = getattr(jvm, name)
        if not isinstance(found, _Remembered):
            setattr(jvm, name, _Remembered(found._fqn, found._gateway_client))  # noqa: SLF001  py4j has no other way


class _Remembered(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> object:
        """Called for what is not there yet, as Python has it."""
        member = super().__getattr__(name)
        if name == "col":
            member = lru_cache(maxsize=_COLUMNS)(partial(member))
        elif name == "toSeq":
            member = self._to_seq(member)
        setattr(self, name, member)
        return member

    def _to_seq(self, member: Callable[[JavaObject], JavaObject]) -> Callable[[Iterable[object]], JavaObject]:
        """Give the member a list of the JVM: py4j would make one item by item."""
        lists = JavaClass("java.util.List", self._gateway_client).of
        lasting = JavaClass("java.util.ArrayList", self._gateway_client)

        def to_seq(values: Iterable[object]) -> JavaObject:
            found = list(values)
            if any(value is None for value in found):  # which `List.of` refuses
                return member(found)
            if len(found) <= _AT_ONCE:
                return member(lists(*found))
            collected = lasting()
            for start in range(0, len(found), _AT_ONCE):
                collected.addAll(lists(*found[start : start + _AT_ONCE]))
            return member(collected)

        return to_seq
