"""The keys of a row that is to be erased: in each era of its table, and before and after it moved to another key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tidemark.erasure import moves
from tidemark.errors import ConfigurationError
from tidemark.queries.row_events import Identity, RowEvents
from tidemark.queries.row_life import Key
from tidemark.queries.row_life_scan import LogRow


class KeysOfRow(NamedTuple):
    """The keys of a row."""

    own: Sequence[Identity]
    """In each era, the one that is given."""
    others: Sequence[Identity]
    """Those that it had before or after it moved to another key."""
    bound: Sequence[Key]
    """Those of them that stand in one event with the given key."""
    borrowers: Sequence[Key]
    """Keys of rows with values that only events of the given key have."""
    unpaired: int
    """Events of which nobody knows whether they are half of such a move."""


def keys_of(events: RowEvents, first: Key) -> KeysOfRow:
    """Return the keys of a row."""
    own = events.identities(first, _nothing)
    found, bound, borrowers, unpaired = list(own), list[Key](), list[Key](), 0
    for number, identity in enumerate(found):  # grows
        steps = events.steps_in(identity.era, identity.key, _nothing)
        pairs = moves.of_row(events, identity, steps)
        unpaired += pairs.unpaired
        borrowers += [move.key for move in pairs.pairs if move.lends and number < len(own)]
        both = chain.from_iterable(((step.moved_from, False), (step.moved_to, True)) for step in steps)
        whole = [(key, later) for key, later in both if key is not None and None not in key.values()]
        bound += [key for key, _ in whole if number < len(own)]
        for other, later in (*whole, *((move.key, move.later) for move in pairs.pairs)):
            moved = Identity(era=identity.era, key=dict(other))
            more = [*events.before(moved, _nothing), *(events.after(moved, _nothing) if later else ())]
            found += [each for each in [moved, *more] if each not in found]
    return KeysOfRow(own, found[len(own) :], bound, borrowers, unpaired)


def require_decided(name: str, keys: KeysOfRow, follow: bool | None) -> None:  # noqa: FBT001
    """Refuse other keys of a row until a person has said whether they are erased, too; and what another row needs."""
    if keys.others and follow is None:
        texts = "; ".join(as_text(each.key) for each in keys.others)
        alone = "" if keys.bound else ", `--no-follow` under the given key alone"
        raise ConfigurationError(
            f"{name}: the row had other keys, before or later: {texts}. `--follow` erases the row under all of them"
            f"{alone}. Look first with `tidemark explain` whether another row has one of these keys now"
        )
    if keys.bound and follow is False:
        raise ConfigurationError(
            f"{name}: an event has the key together with {as_text(keys.bound[0])}, as the row moved, and cannot be "
            "erased under one of them: the next rebuild would have rows that the source does not have. Nothing was "
            "erased. `--follow` erases both"
        )
    if keys.borrowers and follow is False:
        texts = "; ".join(map(as_text, keys.borrowers))
        raise ConfigurationError(
            f"{name}: the row moved to the key {texts}, and large values of it are in its events from before alone: "
            "without these, the next rebuild would not have the row there. Nothing was erased. `--follow` erases both. "
            "Or load the table anew at the source, run, then erase"
        )


def _nothing(_: LogRow) -> None:
    return None


def as_text(key: Mapping[str, object]) -> str:
    """Return a key as a person writes it."""
    return " ".join(f"{name}={value}" for name, value in key.items())
