"""Functions of Spark that are looked up in the JVM once, not at every use.

PySpark asks for the class of functions, and in it for the function, whenever an expression calls one: two of the three
messages that a call takes, and for the first the JVM goes through all jars for a class of the default package. A plan
calls hundreds. What is remembered has no state, so threads may share it; measured in docs/adr/0009.
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass, JVMView

CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")
"""By the names that PySpark calls them; one that it does not ask for is only not used."""


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
        setattr(self, name, member)
        return member
