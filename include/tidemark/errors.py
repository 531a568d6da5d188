"""Every error of Tidemark, named by what the caller should do about it.

The second level of the tree decides: a human edits a file (``ConfigurationError``), one message is set aside
(``DecodeError``), publishing waits (``ContractError``), or the store is tried again (``LakeError``).
Messages say what happened, where, and what to do next.
"""

from __future__ import annotations


class TidemarkError(Exception):
    """Root of every error that Tidemark raises on purpose."""

    exit_status = 3
    """Exit status of the command line: 1 data held back, 2 usage or configuration, 3 store or engine."""


class ConfigurationError(TidemarkError):
    """A human must edit a file, an option or the environment; trying again does not help."""

    exit_status = 2


class UnknownNameError(ConfigurationError):
    """A name (format, source, table, key of a source file) that nothing is known by; suggests near ones."""


class InvalidSourceError(ConfigurationError):
    """A source file is wrong; names file, line and key."""


class LandingError(ConfigurationError):
    """Dump files that cannot be landed as they are: changed under the same name, truncated, corrupt."""

    exit_status = 1


class DecodeError(TidemarkError):
    """This message is wrong; it goes to quarantine under ``reason`` and the run goes on."""

    exit_status = 1
    reason = "undecodable"
    """Stable identifier stored in the quarantine table and used by ``tidemark quarantine --reason``."""


class MalformedMessageError(DecodeError):
    """The bytes are not what the format says: broken JSON, a missing field, a field of the wrong type."""

    reason = "malformed"


class UnknownOperationError(DecodeError):
    """An operation that the format's document does not list; names the value and what is allowed."""

    reason = "unknown_operation"


class UnknownTypeError(DecodeError):
    """A column type that the format's document does not list."""

    reason = "unknown_type"


class MissingTableError(DecodeError):
    """The message does not say which table it belongs to and the source file does not either."""

    reason = "missing_table"


class MissingMetadataError(DecodeError):
    """The message cannot be read without a metadata message that has not landed yet."""

    reason = "missing_metadata"


class MissingKeyError(DecodeError):
    """The table has a key and the image lacks it, or holds null there."""

    reason = "missing_key"


class UnreadableValueError(DecodeError):
    """A value does not fit its column's type exactly (never rounded, never defaulted)."""

    reason = "unreadable_value"


class ContractError(TidemarkError):
    """The data broke a promise: nothing of it is published, the candidate stays for inspection."""

    exit_status = 1


class IncompatibleSchemaError(ContractError):
    """A schema change that would lose data; stops its table and no other."""


class RebuildNeededError(ContractError):
    """What a schema change makes of the published rows only the table's change log tells."""


class ExpectationError(ContractError):
    """A blocking check failed."""


class LedgerError(ContractError):
    """The ledger of a run does not close."""


class LakeError(TidemarkError):
    """The store or the engine said no."""


class RetriableLakeError(LakeError):
    """Store or catalog unreachable, commit conflict: the same command can be run again."""


class SourceBusyError(RetriableLakeError):
    """Another run writes the source at this moment: one writer a source at any time."""


class SparkWithheldError(LakeError):
    """A stage asked for Spark where it was to be tried without; see ``session.withheld``."""


class PublishConflictError(LakeError):
    """``main`` moved since the candidate was built: run compact again."""
