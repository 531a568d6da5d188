"""Encryption of what a source keeps verbatim (``mask_at: landing``): AES-256-GCM, with keys from the environment.

The source file names the environment variable that holds the keys. Whatever is encrypted has a *reference* beside it:
the name of the variable and the id of the key, which tells nothing of the key. So keys can be changed: the first one
encrypts, and all of them decrypt. Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from tidemark.errors import ConfigurationError

SEALED = "sealed"
"""Column of messages: the reference of the key that ``key`` and ``value`` are encrypted with; null: they are plain."""

_COLUMNS = ("key", "value")

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
            "a random key (`openssl rand -base64 32`), keep it, and give it to every run"
        )
    keys = [_key(variable, number, text) for number, text in enumerate(texts, 1)]
    return Keys(variable, {_id_of(key): key for key in keys})


def sealed_messages(rows: pa.RecordBatch, keys: Keys) -> pa.RecordBatch:
    """Return messages with their bytes encrypted."""
    reference = pa.repeat(pa.scalar(keys.reference), rows.num_rows)
    instead = {name: _each(rows.column(name), keys.seal) for name in _COLUMNS} | {SEALED: reference}
    columns = [instead.get(name, rows.column(name)) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def unsealed_messages(rows: pa.RecordBatch, keys: Keys | None) -> pa.RecordBatch:
    """Return messages with their plain bytes.

    Args:
        rows: any columns of ``raw`` or quarantine.
        keys: of the source; None if its file names none.

    Raises:
        ConfigurationError: a key is missing.
    """
    references = rows.column(SEALED) if SEALED in rows.schema.names else None
    if references is None or references.null_count == rows.num_rows:
        return rows
    instead = {
        name: pa.array(
            [
                value if value is None or reference is None else _opened(keys, reference, value)
                for value, reference in zip(rows.column(name).to_pylist(), references.to_pylist(), strict=True)
            ],
            pa.binary(),
        )
        for name in _COLUMNS
        if name in rows.schema.names
    }
    instead[SEALED] = pa.nulls(rows.num_rows, pa.string())
    columns = [instead.get(name, rows.column(name)) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


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


def _each(column: pa.Array, change: Callable[[bytes], bytes]) -> pa.Array:
    return pa.array([None if value is None else change(value) for value in column.to_pylist()], pa.binary())


def _opened(keys: Keys | None, reference: str, sealed: bytes) -> bytes:
    if keys is None:
        variable = reference.rpartition(":")[0]
        raise ConfigurationError(
            f"messages are encrypted with a key of the environment variable {variable}, and the source file names no "
            f"keys: write `raw_key: ${{{variable}}}` in it. Nothing was changed"
        )
    return keys.unseal(reference, sealed)


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
