"""Encryption of what a source keeps verbatim (``mask_at: landing``): AES-256-GCM, with keys from the environment.

The source file names the environment variable that holds the keys. Whatever is encrypted has a *reference* beside it:
the name of the variable and the id of the key, which reveals nothing of the key. So keys can be changed: the first one
encrypts, and all of them decrypt. Spark's workers import this module, and Airflow imports it with every source file. So
it imports nothing slow.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tidemark.errors import ConfigurationError
from tidemark.values.masking import by_connection

_KEY_BYTES, _NONCE_BYTES = 32, 12


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that an environment variable holds."""

    variable: str
    by_id: Mapping[str, bytes] = field(repr=False)
    """The first one encrypts."""

    @property
    def reference(self) -> str:
        """The reference of the key that encrypts."""
        return f"{self.variable}:{next(iter(self.by_id))}"

    def seal(self, plain: bytes) -> bytes:
        """Return bytes, encrypted."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + _encrypting(next(iter(self.by_id.values())))(nonce, plain, None)

    def unseal(self, reference: str, sealed: bytes) -> bytes:
        """Return the plain bytes of what ``seal`` returned.

        Raises:
            ConfigurationError: the key is not among those that are known, or the bytes were changed.
        """
        key = self.by_id.get(_id_in(reference))
        if key is None:
            raise ConfigurationError(
                f"what is kept is encrypted with the key {_id_in(reference)}, and the environment variable "
                f"{self.variable} holds {', '.join(self.by_id)}: set it to the newest key and the earlier ones behind "
                "it, with commas between. Nothing was changed"
            )
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  most sources encrypt nothing

        try:
            return _decrypting(key)(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError) as error:
            raise ConfigurationError(
                f"what was encrypted with the key {_id_in(reference)} is not as it was written: the store was changed"
            ) from error


def keys_in(variable: str) -> Keys:
    """Return the keys that an environment variable holds: Base64 of 32 bytes each, the newest first.

    Raises:
        ConfigurationError: the variable is not set, or holds something else.
    """
    texts = [text.strip() for text in os.environ.get(variable, "").split(",") if text.strip()]
    if not texts:
        raise ConfigurationError(
            f"messages are encrypted with the key in the environment variable {variable}, which is not set: set it to "
            f"a random key (`openssl rand -base64 32`), keep it, and give it to every run{by_connection(variable)}"
        )
    keys = [_key(variable, number, text) for number, text in enumerate(texts, 1)]
    return Keys(variable, {_id_of(key): key for key in keys})


def known_keys(variable: str | None) -> Keys | None:
    """Return the keys that decrypt what a source keeps; None if its file names no variable. Errors as ``keys_in``."""
    return None if variable is None else keys_in(variable)


def sealed_statement(dialect: str, text: str, keys: Keys) -> tuple[str, str]:
    """Return the dialect of a statement, with the reference of the key behind it, and the text, encrypted."""
    return f"{dialect} {keys.reference}", base64.b64encode(keys.seal(text.encode())).decode()


def unsealed_statement(dialect: str, text: str) -> tuple[str, str]:
    """Return the dialect and the plain text of a statement, whether it is encrypted or not.

    Raises:
        ConfigurationError: it is encrypted, and the variable does not hold the key.
    """
    plain, _, reference = dialect.partition(" ")
    if not reference:
        return dialect, text
    keys = keys_in(reference.rpartition(":")[0])
    return plain, keys.unseal(reference, base64.b64decode(text)).decode()


def _key(variable: str, number: int, text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigurationError(
            f"key {number} in the environment variable {variable} is no Base64 of {_KEY_BYTES} bytes: "
            "`openssl rand -base64 32` prints one"
        )
    return key


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"tidemark: which key is this? " + key).hexdigest()[:8]


def _id_in(reference: str) -> str:
    return reference.rpartition(":")[2]


@lru_cache(maxsize=16)
def _encrypting(key: bytes) -> Callable[[bytes, bytes, bytes | None], bytes]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  most sources encrypt nothing

    return AESGCM(key).encrypt


@lru_cache(maxsize=16)
def _decrypting(key: bytes) -> Callable[[bytes, bytes, bytes | None], bytes]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  most sources encrypt nothing

    return AESGCM(key).decrypt
