"""Encryption of what a source keeps: keys from the environment, references beside the bytes, errors that help."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest

from tidemark.errors import ConfigurationError
from tidemark.lake.log_schemas import RAW
from tidemark.values.sealed_messages import SEALED, sealed_messages, unsealed_messages
from tidemark.values.sealing import keys_in, sealed_statement, unsealed_statement

VARIABLE = "TIDEMARK_TEST_RAW_KEY"
ONE, TWO = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
PLAIN = b"a plain message"


def _messages() -> pa.RecordBatch:
    rows = [
        {"file": "a", "place": 1, "key": b"k", "value": PLAIN},
        {"file": "a", "place": 2, "key": None, "value": b""},
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RAW)


def test_messages_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Null stays null, equal bytes are encrypted differently, and nothing shows a key or plain bytes."""
    monkeypatch.setenv(VARIABLE, ONE)
    keys = keys_in(VARIABLE)
    rows = pa.Table.from_batches([_messages(), _messages()]).combine_chunks().to_batches()[0]
    sealed = sealed_messages(rows, keys)
    assert sealed.schema == RAW
    assert unsealed_messages(sealed, keys).to_pylist() == rows.to_pylist()
    values = sealed.column("value").to_pylist()
    assert len(set(values)) == 4
    assert not any(PLAIN in value for value in values)
    assert sealed.column("key").to_pylist()[1] is None
    assert set(sealed.column(SEALED).to_pylist()) == {keys.reference}
    assert ONE not in repr(keys)
    assert repr(bytes([1] * 32)) not in repr(keys)


def test_the_first_key_encrypts_and_all_decrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new key is put before the old one, which still reads what it wrote, beside plain rows."""
    monkeypatch.setenv(VARIABLE, ONE)
    old = sealed_messages(_messages(), keys_in(VARIABLE))
    monkeypatch.setenv(VARIABLE, f"{TWO}, {ONE}")
    keys = keys_in(VARIABLE)
    new = sealed_messages(_messages(), keys)
    assert new.column(SEALED)[0] != old.column(SEALED)[0]
    every = pa.Table.from_batches([old, _messages(), new]).combine_chunks().to_batches()[0]
    assert unsealed_messages(every, keys).to_pylist() == _messages().to_pylist() * 3
    few = every.select(["value", SEALED])
    assert unsealed_messages(few, keys).column("value").to_pylist() == [PLAIN, b""] * 3
    assert unsealed_messages(_messages().drop_columns([SEALED]), None).num_rows == 2


def test_what_is_wrong_with_a_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not set, no key, another key, no key in the source file, and bytes that were changed."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigurationError, match="is not set: set it to a random key"):
        keys_in(VARIABLE)
    monkeypatch.setenv(VARIABLE, f"{ONE},AAAA")
    with pytest.raises(ConfigurationError, match=r"key 2 .* is no Base64 of 32 bytes"):
        keys_in(VARIABLE)
    monkeypatch.setenv(VARIABLE, ONE)
    sealed = sealed_messages(_messages(), keys_in(VARIABLE))
    with pytest.raises(ConfigurationError, match=r"write `raw_key: \$\{TIDEMARK_TEST_RAW_KEY\}`"):
        unsealed_messages(sealed, None)
    monkeypatch.setenv(VARIABLE, TWO)
    with pytest.raises(ConfigurationError, match="set it to the newest key and the earlier ones behind"):
        unsealed_messages(sealed, keys_in(VARIABLE))
    monkeypatch.setenv(VARIABLE, ONE)
    changed = sealed.to_pylist()
    changed[0]["value"] = changed[0]["value"][:-1] + b"!"
    with pytest.raises(ConfigurationError, match="the store was changed"):
        unsealed_messages(pa.RecordBatch.from_pylist(changed, schema=RAW), keys_in(VARIABLE))


def test_a_statement_names_its_key_behind_its_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that is not encrypted is returned as it is, also one of the general dialect."""
    monkeypatch.setenv(VARIABLE, ONE)
    for dialect in ("mysql", ""):
        sealed = sealed_statement(dialect, "ALTER TABLE t ADD c text DEFAULT 'ä'", keys_in(VARIABLE))
        assert "ALTER" not in sealed[1]
        assert unsealed_statement(*sealed) == (dialect, "ALTER TABLE t ADD c text DEFAULT 'ä'")
        assert unsealed_statement(dialect, "DROP TABLE t") == (dialect, "DROP TABLE t")
