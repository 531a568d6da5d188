"""Commits of data files that workers wrote (``data_files``): added to a table, or in the place of other files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestFile, ManifestWriterV2
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT, Record

from tidemark.lake.branches import KEPT_MARKER, MARKER
from tidemark.lake.data_files import WrittenFile


def commit_files(
    table: Table,
    files: Iterable[WrittenFile],
    *,
    replaced: Sequence[DataFile] = (),
    dropped: Sequence[DataFile] = (),
    summary: Mapping[str, str] = MappingProxyType({}),
    branch: str = MAIN_BRANCH,
) -> None:
    """Commit files to a table, in one snapshot; without files and summary entries there is no commit.

    On ``main`` the same commit repeats the summary's entries in the table's properties, as snapshots may be expired by
    anybody.

    Args:
        table: the table.
        files: files to add.
        replaced: files to remove.
        dropped: delete files to remove.
        summary: entries for the snapshot's summary.
        branch: branch that gets the snapshot.

    Raises:
        CommitFailedException: another commit moved the branch meanwhile.
    """
    made = [_data_file(table, file) for file in files]
    if not (made or replaced or dropped or summary):
        return
    with table.transaction() as transaction:
        update: _Exchange | _FastAppendFiles
        if replaced or dropped:
            update = _Exchange(
                dropped,
                operation=Operation.OVERWRITE,
                transaction=transaction,
                io=table.io,
                snapshot_properties=dict(summary),
                branch=branch,
            )
        else:
            update = transaction.update_snapshot(dict(summary), branch=branch).fast_append()
        with update as snapshot:
            for old in replaced:
                snapshot.delete_data_file(old)
            for new in made:
                snapshot.append_data_file(new)
        if summary and branch == MAIN_BRANCH:
            kept = {KEPT_MARKER + name.removeprefix(MARKER): value for name, value in summary.items()}
            transaction.set_properties(kept)


class _Exchange(_OverwriteFiles):
    """An overwrite that lists no manifest which has nothing but files that earlier snapshots removed.

    PyIceberg's own keeps them for ever, and each later commit and scan reads them. Iceberg's Java library drops them.
    Nor does it list delete files that are dropped. PyIceberg 0.12.0 has no public way to do either: what an overwrite
    may change are ``_process_manifests`` and ``_summary``, it takes a delete file that goes for a data file that is
    missing, and its writers of manifests write no manifest of delete files.
    """

    def __init__(self, dropped: Sequence[DataFile], **given: Any) -> None:  # noqa: ANN401  PyIceberg's
        super().__init__(**given)
        self._dropped = {file.file_path: file for file in dropped}

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        return [
            left
            for manifest in manifests
            if manifest.has_added_files() or manifest.has_existing_files() or self._wrote(manifest)
            for left in self._left_of(manifest)
        ]

    def _left_of(self, manifest: ManifestFile) -> list[ManifestFile]:
        """Return a manifest without the delete files that are dropped."""
        if not self._dropped or manifest.content is not ManifestContent.DELETES:
            return [manifest]
        entries = self.fetch_manifest_entry(manifest)
        kept = [entry for entry in entries if entry.data_file.file_path not in self._dropped]
        if len(kept) == len(entries):
            return [manifest]
        if not kept:
            return []
        spec, output = self.spec(manifest.partition_spec_id), self.new_manifest_output()
        writer = _DeletesWriter(spec, self.schema(), output, self.snapshot_id, self._compression)
        with writer:
            for entry in kept:
                writer.existing(entry)
        return [writer.to_manifest_file()]

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """Return the summary, in which PyIceberg counts the delete files among the files that go, and their bytes."""
        removed = self._deleted_data_files
        self._deleted_data_files = {*removed, *self._dropped.values()}
        try:
            return super()._summary(snapshot_properties)
        finally:
            self._deleted_data_files = removed

    def _wrote(self, manifest: ManifestFile) -> bool:
        return manifest.added_snapshot_id == self.snapshot_id


class _DeletesWriter(ManifestWriterV2):
    """Writes a manifest of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _data_file(table: Table, file: WrittenFile) -> DataFile:
    """Return a written file as a manifest lists it, with statistics from its footer."""
    schema = table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(io.BytesIO(file.footer)),
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.location,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
