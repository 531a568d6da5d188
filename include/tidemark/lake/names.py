"""The names of tables, branches and tags: made here, and read back here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

_BRANCH = "candidate_"
_TAG = "cut_"
_HISTORY = "__history"
_LEASE = "lease__"
_FENCE = "writer_"
_FEED = "__feed"
_CHANGES = "__changes"
_WHOLE = "__whole"
_JOINT = "__"
_REHEARSAL = "rehearsal__"


class Namespace(StrEnum):
    """The namespaces that all sources share; ``sources.fields.RESERVED_NAMES`` keeps them free."""

    RAW = "raw"
    CHANGE_LOG = "changelog"
    QUARANTINE = "quarantine"
    LEDGER = "ledger"
    STATE = "state"


class Identifier(NamedTuple):
    """Namespace and name of a table in the catalog."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Identifier:
        """Return the identifier that ``str`` wrote: ``erp.orders``."""
        namespace, _, name = text.partition(".")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


def joined(parts: Iterable[str]) -> str:
    """Return one name made of several: ``erp__orders``."""
    return _JOINT.join(parts)


def raw(source: str) -> Identifier:
    """Return the table of the source's messages, as they were delivered."""
    return Identifier(Namespace.RAW.value, source)


def change_log(source: str) -> Identifier:
    """Return the table of the source's change events, schema changes and control events."""
    return Identifier(Namespace.CHANGE_LOG.value, source)


def quarantine(source: str) -> Identifier:
    """Return the table of the source's messages that were set aside."""
    return Identifier(Namespace.QUARANTINE.value, source)


def ledger(name: str) -> Identifier:
    """Return a table of the ledger, which all sources share."""
    return Identifier(Namespace.LEDGER.value, name)


_LOGS = frozenset({Namespace.RAW, Namespace.CHANGE_LOG, Namespace.QUARANTINE, Namespace.LEDGER})


def is_log(identifier: Sequence[str]) -> bool:
    """Return whether a table in the catalog only grows as runs go on: messages, events, quarantine and the ledger."""
    return identifier[0] in _LOGS


def lease(source: str) -> Identifier:
    """Return the table whose newest snapshot says who writes a source (``leases``)."""
    return Identifier(Namespace.LEDGER.value, f"{_LEASE}{source}")


def is_lease(identifier: Sequence[str]) -> bool:
    """Return whether a table in the catalog is the lease of a source."""
    return identifier[0] == Namespace.LEDGER and identifier[-1].startswith(_LEASE)


def fence(source: str) -> str:
    """Return the branch of each table of a source that shuts out writers who lost the source (``fences``)."""
    return f"{_FENCE}{source}"


def is_fence(ref: str) -> bool:
    """Return whether a branch is there to shut out writers: it has no rows."""
    return ref.startswith(_FENCE)


def state(target: Identifier) -> Identifier:
    """Return the table that keeps the tombstones and the cell versions of a published table."""
    return Identifier(Namespace.STATE.value, joined(target))


def with_same_state(target: Identifier) -> list[Identifier]:
    """Return the other tables whose state would have the same name: of ``a.b__c`` it is ``a__b.c``."""
    text = joined(target)
    joints = [at for at in range(1, len(text) - len(_JOINT)) if text.startswith(_JOINT, at)]
    named = [Identifier(text[:at], text[at + len(_JOINT) :]) for at in joints]
    return [each for each in named if each != target]


def history(target: Identifier) -> Identifier:
    """Return the table that keeps the versions of a published table's rows; ``name_problem`` keeps the name free."""
    return Identifier(target.namespace, target.name + _HISTORY)


def feed(target: Identifier) -> Identifier:
    """Return the table that every change of a published table's rows is added to; ``name_problem`` keeps it free."""
    return Identifier(target.namespace, target.name + _FEED)


def changes(target: Identifier) -> Identifier:
    """Return the name by which a query reads the change events of a published table. No table has it."""
    return Identifier(target.namespace, target.name + _CHANGES)


def of_changes(name: str) -> str | None:
    """Return the name of the table whose change events a query reads by this name; None if it reads a table."""
    return name.removesuffix(_CHANGES) if name.endswith(_CHANGES) else None


def beside(target: Identifier) -> tuple[Identifier, Identifier]:
    """Return the tables that move with a published table where the source file asks for them: history and feed."""
    return history(target), feed(target)


def whole(target: Identifier) -> Identifier:
    """Return the table with the whole rows, or versions, that a published table is made of (``where``, ``derive``)."""
    return Identifier(Namespace.STATE.value, f"{joined(target)}{_WHOLE}")


def whole_beside(target: Identifier) -> tuple[Identifier, Identifier]:
    """Return the tables with the whole rows and versions of a published table, if it keeps them."""
    return whole(target), whole(history(target))


def is_whole(name: str) -> bool:
    """Return whether a table of this name holds whole rows or versions of a published table."""
    return name.endswith(_WHOLE)


def is_feed(name: str) -> bool:
    """Return whether a table of this name holds the changes of another table's rows."""
    return name.endswith(_FEED)


def is_history(name: str) -> bool:
    """Return whether a table of this name holds versions of another table's rows."""
    return name.removesuffix(_WHOLE).endswith(_HISTORY)


def rehearsal(source: str) -> str:
    """Return the namespace of the copies on which a source rehearses a reprocess."""
    return f"{_REHEARSAL}{source}"


def is_rehearsal(namespace: str) -> bool:
    """Return whether a namespace is for the copies of a rehearsal."""
    return namespace.casefold().startswith(_REHEARSAL)


def moved_together(target: Identifier) -> tuple[Identifier, Identifier]:
    """Return the tables that every cut moves together: the published table and its state."""
    return target, state(target)


def candidate_branch(cut: int) -> str:
    """Return the branch on which each table of a cut is built."""
    return f"{_BRANCH}{cut}"


def cut_tag(cut: int) -> str:
    """Return the tag that each table of a published cut has."""
    return f"{_TAG}{cut}"


def tagged_cut(tag: str) -> int | None:
    """Return the number of the cut whose tag this is; None where it is no such tag."""
    number = tag.removeprefix(_TAG)
    return int(number) if number != tag and number.isdecimal() else None
