"""Every error of Tidemark, named by what the caller should do about it.

The second level of the tree says what is to be done: a person edits a file (``ConfigurationError``), one message goes
to quarantine (``DecodeError``), publishing waits (``ContractError``), or the command is run again (``LakeError``).
The text of an error says what happened, where, and what to do next.
"""

from __future__ import annotations


class TidemarkError(Exception):
    """Root of every error that Tidemark raises on purpose."""

    exit_status = 3
    """Exit status of the command line: 1 data was held back, 2 usage or configuration, 3 store or engine."""


class ConfigurationError(TidemarkError):
    """A person must edit a file, an option or the environment. Running the command again does not help."""

    exit_status = 2


class UnknownNameError(ConfigurationError):
    """An unknown name of a format, source, table or key of a source file. The error suggests similar names."""


class InvalidSourceError(ConfigurationError):
    """A source file is wrong. The error names file, line and key."""


class LandingError(ConfigurationError):
    """Dump files cannot be landed as they are: changed under the same name, truncated, or corrupt."""

    exit_status = 1


class UnopenedFileError(LandingError):
    """A dump file is not there, is not readable, or is no regular file. What land finds so, it refuses alone."""

    exit_status = 2


class DecodeError(TidemarkError):
    """A message cannot be decoded. It goes to quarantine under ``reason``, and the run goes on."""

    exit_status = 1
    reason = "undecodable"
    """Stable identifier, stored in the quarantine table and used by ``tidemark quarantine --reason``."""


class MalformedMessageError(DecodeError):
    """The bytes do not fit the format: broken JSON, a missing field, a field of the wrong type."""

    reason = "malformed"


class UnknownOperationError(DecodeError):
    """The format's document does not list this operation. The error names the value and what is allowed."""

    reason = "unknown_operation"


class UnknownTypeError(DecodeError):
    """The format's document does not list this column type."""

    reason = "unknown_type"


class MissingTableError(DecodeError):
    """Neither the message nor the source file says which table the message belongs to."""

    reason = "missing_table"


class MissingMetadataError(DecodeError):
    """Reading the message needs a metadata message that has not landed yet."""

    reason = "missing_metadata"


class MissingKeyError(DecodeError):
    """The table has a key, and the image lacks a column of it or has null there."""

    reason = "missing_key"


class IncompleteMessageError(DecodeError):
    """The message says of itself that it does not contain the row: only its key, a place where it lies, or SQL text."""

    reason = "incomplete_message"


class UnknownTimeError(DecodeError):
    """The source's log began anew, and nothing tells whether the event is from before or after that."""

    reason = "unknown_time"


class UnreadableValueError(DecodeError):
    """A value does not fit its column's type exactly. It is never rounded, nor replaced by a default."""

    reason = "unreadable_value"


class ContractError(TidemarkError):
    """The data broke a promise. Nothing of it is published, and the candidate stays for inspection."""

    exit_status = 1


class IncompatibleSchemaError(ContractError):
    """A schema change would lose data. It stops its table and no other."""


class RebuildNeededError(ContractError):
    """Only a rebuild from the table's change log can apply a schema change to the published rows."""


class ErasureError(ContractError):
    """An erasure was cut short, and only who gave its key can finish it."""


class ExpectationError(ContractError):
    """A blocking check failed."""


class LedgerError(ContractError):
    """The ledger of a run does not close."""


class LakeError(TidemarkError):
    """The store or the engine failed or refused."""


class RetriableLakeError(LakeError):
    """The same command can be run again: store or catalog were unreachable, or a commit conflicted."""


class SourceBusyError(RetriableLakeError):
    """Another run writes the source at this moment. A source has one writer at a time."""


class LostSourceError(RetriableLakeError):
    """Another run took the source over, as this one did not say in time that it still writes. It may write no more."""


class SparkNeededError(LakeError):
    """A stage needs Spark, but runs within ``spark.session.without_spark``."""


class PublishConflictError(LakeError):
    """``main`` moved after the candidate was built: run compact again."""


class SourceDatabaseError(TidemarkError):
    """The source database cannot be reached, or refused a query. The command can be run again. No text has secrets."""
