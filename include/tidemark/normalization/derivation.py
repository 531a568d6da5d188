"""Derives events from messages, for the first time or again. Normalize and retry both do it here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType

from pyiceberg.table import Table

from tidemark.dumps.wrapping import Reading
from tidemark.lake.data_files import TableFolder, WrittenFile
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.member_rows import UnknownMemberRow
from tidemark.ledger.rows import FileRow
from tidemark.ledger.tally import Tally
from tidemark.normalization import erasures, file_order, inputs, open_transactions, protecting, tasks
from tidemark.normalization.file_times import Disorder, disorders
from tidemark.normalization.new_logs import NewLogs
from tidemark.normalization.open_transactions import TransactionsBefore
from tidemark.normalization.tasks import Decoding, Done, KnownTransactions, Outputs
from tidemark.normalization.transaction_search import ChangeLog
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.values.iso8601 import to_micros
from tidemark.values.sealing import known_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The messages that events are derived from."""

    parts: Sequence[spread.Part]
    """Row groups of ``raw`` or of the quarantine."""
    read_from: TableFolder
    """The place that workers read them from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What the tasks wrote. Nothing of it is committed yet."""

    tasks: Sequence[Done]
    transactions: TransactionsBefore
    """What was known of transactions before these messages."""
    log: ChangeLog
    """The change log before these messages."""
    disorders: Sequence[Disorder] = ()
    """Tables for which names of files and times of events disagree."""

    @property
    def files(self) -> list[WrittenFile]:
        """Data files of the change log."""
        return [file for task in self.tasks for file in task.files]

    @property
    def set_aside(self) -> list[WrittenFile]:
        """Data files of the quarantine."""
        return [file for task in self.tasks for file in task.set_aside]

    def tallies(self) -> dict[int, list[Tally]]:
        """Return what the tasks counted, by batch."""
        found: dict[int, list[Tally]] = defaultdict(list)
        for task in self.tasks:
            for batch, tally in task.tallies.items():
                found[batch].append(tally)
        return found

    def unknown_members(self) -> list[UnknownMemberRow]:
        """Return the members of messages that the format does not know."""
        return [
            UnknownMemberRow(batch=each.batch, member=each.member, file=each.file, place=each.place)
            for task in self.tasks
            for each in task.unknown_members
        ]

    def with_carried(self, carried: Done | None) -> Derived:
        """Return the same with rows that were not derived, but kept from before."""
        return self if carried is None else replace(self, tasks=[*self.tasks, carried])

    def settle(self, ledger: Ledger, newest: int) -> None:
        """Write to the ledger which transactions these messages opened, closed or undid.

        ``newest`` is the last batch of the messages.
        """
        open_transactions.settle(ledger, self.transactions, self.tasks, self.log, newest)


def decoding_of(
    ledger: Ledger,
    source: Source,
    parts: Sequence[spread.Part],
    read_from: TableFolder,
    log: Table,
    files: Sequence[FileRow],
) -> Decoding:
    """Return how the messages of a source are decoded now.

    Args:
        ledger: of the source.
        source: the source, whose format and options decode the messages.
        parts: parts with the messages, which are searched for metadata messages.
        read_from: where workers read the parts.
        log: the change log, which keeps the metadata messages of earlier runs.
        files: what was landed.
    """
    return Decoding(
        format_name=source.format,
        options=source.options.model_dump(mode="json"),
        known=inputs.known(source, parts, read_from, log),
        reading=Reading(limit=source.message_limit, wrapping=source.container),
        declared=source.written(),
        new_logs=_new_logs(source),
        file_order=file_order.order_of(log, files),
        sizes=file_order.sizes(files),
        erased=erasures.keys_of(ledger, source),
        keys=known_keys(source.raw_key),
        protection=protecting.protection_of(ledger, source),
    )


def derive(
    ledger: Ledger,
    source: Source,
    messages: Messages,
    log: ChangeLog,
    quarantine: TableFolder,
    batches: Mapping[int, int] = MappingProxyType({}),
) -> Derived:
    """Decode messages on Spark's workers, which write data files of the change log and of the quarantine.

    Args:
        ledger: of the source.
        source: the source, whose format and options decode the messages.
        messages: the messages to decode.
        log: the change log before these messages.
        quarantine: where messages go that cannot be decoded.
        batches: from the batch that messages landed with to the batch of their events, if that is another one.

    Returns:
        The files that were written, and the counts by batch.
    """
    transactions = open_transactions.known(ledger, log, source.undelivered)
    files = ledger.files()
    decoding = decoding_of(ledger, source, messages.parts, messages.read_from, log.table, files)
    outputs = Outputs(log=log.target, quarantine=quarantine)
    work = partial(
        tasks.normalize,
        raw=messages.read_from,
        outputs=outputs,
        transactions=KnownTransactions(
            marked=transactions.marked,
            unsettled=ledger_transactions.unsettled(transactions.states),
            landed=transactions.landed(),
        ),
        batches=batches,
    )
    while True:
        done = inputs.run(messages.parts, partial(work, decoding=decoding))
        known = decoding.protection
        wider = None if known is None else protecting.widened(known, ledger, done)
        if wider == known:
            break
        # A statement among the messages gives a masked column another name, which images already use.
        protecting.discard(done, outputs)
        decoding = replace(decoding, protection=wider)
    noted = [times for task in done for times in task.file_times]
    found = disorders(noted, file_order.places(files, decoding.file_order)) if noted else []
    return Derived(tasks=done, transactions=transactions, log=log, disorders=found)


def _new_logs(source: Source) -> NewLogs:
    """Return when positions of the source begin anew, for workers."""
    reloads = {name: _micros(table.reloads) for name, table in source.tables.items()}
    return NewLogs(source=_micros(source.log_restarts), tables=reloads, zone=source.timezone)


def _micros(moments: Iterable[datetime]) -> tuple[int, ...]:
    return tuple(sorted(map(to_micros, moments)))
