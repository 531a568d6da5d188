"""Fewer messages to the JVM: lookups are remembered, and lists are sent in pieces of ten items.

When an expression calls a function, PySpark sends three messages to the JVM. The first two look up the class of the
functions and the function in it. For the first one, the JVM searches all jars for a class of the default package. The
third one makes the expression, which ``known_expressions`` remembers. PySpark also sends a list item by item. A plan
calls hundreds of functions. The remembered objects have no state, so threads may share them. Measured in docs/adr/0009
and 0091.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from py4j.java_gateway import JavaClass, JavaObject, JVMView
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tidemark.spark import known_expressions

ENGINE_ERRORS = (PySparkException, Py4JError)
"""Errors of Spark. Where PySpark has no error of its own for one of the JVM (a stack that overflows), it is Py4J's."""

CLASSES = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.expressions.Window",
    "PythonUtils",
    "PythonSQLUtils",
)
"""Classes that PySpark looks up, by the names that it uses. A name that it does not use does no harm."""

_AT_ONCE = 10
"""Most items that ``java.util.List.of`` takes."""


def remember(jvm: JVMView) -> None:
    """Make PySpark look up the classes of functions and their members once in the lifetime of the JVM."""
    for name in CLASSES:
        found = getattr(jvm, name)
        if not isinstance(found, _Remembered):
            known_expressions.forget()
            setattr(jvm, name, _Remembered(found._fqn, found._gateway_client))  # noqa: SLF001  py4j has no other way


class _Remembered(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> object:
        """Return a member and keep it as an attribute: Python calls this only for attributes that do not exist yet."""
        member = super().__getattr__(name)
        if name == "toSeq":
            member = known_expressions.sequence(self._to_seq(member))
        else:
            member = known_expressions.function(str(self._fqn), name, member)
        setattr(self, name, member)
        return member

    def _to_seq(self, member: Callable[[JavaObject], JavaObject]) -> Callable[[Iterable[object]], JavaObject]:
        """Return ``PythonUtils.toSeq`` for a list that is already in the JVM; py4j would send it item by item."""
        lists = JavaClass("java.util.List", self._gateway_client).of
        lasting = JavaClass("java.util.ArrayList", self._gateway_client)

        def to_seq(values: Iterable[object]) -> JavaObject:
            found = list(values)
            if any(value is None for value in found):  # `List.of` refuses null
                return member(found)
            if len(found) <= _AT_ONCE:
                return member(lists(*found))
            collected = lasting()
            for start in range(0, len(found), _AT_ONCE):
                collected.addAll(lists(*found[start : start + _AT_ONCE]))
            return member(collected)

        return to_seq
