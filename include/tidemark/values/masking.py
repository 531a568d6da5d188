"""Masks of columns: what stands in a published table in place of a value, and the secret that keyed masks need.

The source file names the environment variable that holds the secret. (A task of Airflow fills it from an Airflow
connection of that name, if there is one.) So the secret itself is in no model of a source file, in no plan, and in no
property of a table. Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from tidemark.errors import ConfigurationError

HIDDEN = "****"
"""Stands for a value, or for all of it but its last characters."""

SHORTEST_SECRET = 16
"""Characters. A shorter secret can be found by trying."""

_SHOWN = 4
"""Characters that ``last4`` shows, of a value that is longer."""


class Mask(StrEnum):
    """What is published in place of a value. Null stays null."""

    HASH = "hash"
    """SHA-256 of the value, in hexadecimal. Who can guess the value can prove the guess."""
    HMAC = "hmac"
    """HMAC-SHA-256 of the value under the secret, in hexadecimal."""
    REDACT = "redact"
    """The same text for all values."""
    LAST4 = "last4"
    """The last four characters of a longer value."""
    NULL = "null"
    """Null."""


ONE_TO_ONE = frozenset({Mask.HASH, Mask.HMAC})
"""Masks that keep different values different."""


class Masks(NamedTuple):
    """The masked columns of a table."""

    kinds: Mapping[str, Mask] = {}
    """By the column's name in the table."""
    variable: str | None = None
    """The environment variable that holds the secret, where a mask needs one."""

    def secret(self) -> bytes | None:
        """Return the secret; None where no mask needs one.

        Raises:
            ConfigurationError: the variable is not set, or its value is too short.
        """
        return secret_of_masks(self.variable) if Mask.HMAC in self.kinds.values() and self.variable else None

    def label(self, name: str) -> str | None:
        """Return how the values of a column are masked, and with which secret; None where they are not.

        Raises:
            ConfigurationError: the secret is needed, and the variable is not set, or its value is too short.
        """
        mask = self.kinds.get(name)
        return None if mask is None else labelled(mask, self.variable)

    def shown(self, name: str, text: str | None) -> str | None:
        """Return what the table shows of a value, given as the text that a ``string`` column would hold."""
        mask = self.kinds.get(name)
        return text if mask is None else masked(mask, text, self.secret())


NO_MASKS = Masks()


def masked(mask: Mask, text: str | None, secret: bytes | None = None) -> str | None:
    """Return what is published in place of a value.

    >>> masked(Mask.LAST4, "4111111111111111"), masked(Mask.LAST4, "1234"), masked(Mask.REDACT, "x")
    ('****1111', '****', '****')
    """
    if text is None or mask is Mask.NULL:
        return None
    if mask is Mask.HMAC:
        return keyed(secret or b"", text)
    if mask is Mask.HASH:
        return hashlib.sha256(text.encode()).hexdigest()
    return HIDDEN + (text[-_SHOWN:] if mask is Mask.LAST4 and len(text) > _SHOWN else "")


def labelled(mask: Mask, variable: str | None) -> str:
    """Return the word of a mask; for ``hmac``, with a text that tells the secret from others."""
    return f"{mask} {check_of(variable)}" if mask is Mask.HMAC and variable else mask.value


def keyed(secret: bytes, text: str) -> str:
    """Return the HMAC-SHA-256 of a text, in hexadecimal."""
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def secret_of_masks(variable: str) -> bytes:
    """Return the secret of masks that an environment variable holds. Errors as ``secret_in``."""
    return secret_in(variable, "columns are masked", elsewhere=by_connection(variable))


SECRET_OF_ERASURES = "TIDEMARK_ERASE_SECRET"  # noqa: S105  the name of it
"""Variable with the secret that keys of erased rows are hashed with."""


def by_connection(variable: str) -> str:
    """Return where a task of Airflow finds what an environment variable does not hold, for errors."""
    return f" (a task of Airflow, and no other command, also takes the password of an Airflow connection '{variable}')"


def secret_in(variable: str, purpose: str, *, elsewhere: str = "") -> bytes:
    """Return the secret that an environment variable holds.

    Args:
        variable: name of the variable.
        purpose: what is done with the secret, for the error.
        elsewhere: where else it may be, for the error.

    Raises:
        ConfigurationError: the variable is not set, or its value is short enough to be found by trying.
    """
    value = os.environ.get(variable, "")
    if len(value) < SHORTEST_SECRET:
        state = f"has {len(value)} characters" if value else "is not set"
        raise ConfigurationError(
            f"{purpose} with the secret in the environment variable {variable}, which {state}: set it to a random text "
            f"of at least {SHORTEST_SECRET} characters (`openssl rand -hex 32`), keep it, and give it to every run"
            f"{elsewhere}"
        )
    return value.encode()


def check_of(variable: str) -> str:
    """Return a text that is the same for the same secret, and that reveals nothing else of it."""
    return keyed(secret_of_masks(variable), "tidemark: is this the same secret?")[:8]
