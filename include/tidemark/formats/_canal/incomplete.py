"""Canal messages that say of themselves that they do not contain the row.

TiCDC sends only the key of a row that is too large for the topic (``large-message-handle-option``), and marks the
message in ``_tidb``: https://docs.pingcap.com/tidb/stable/ticdc-sink-to-kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidemark.errors import IncompleteMessageError
from tidemark.formats._json import NULL, members


class TidbExtension(msgspec.Struct, gc=False):
    """The block ``_tidb``, which TiCDC writes with ``enable-tidb-extension``."""

    commitTs: int | None = None  # noqa: N815 - the wire's spelling, as below
    onlyHandleKey: bool | None = None  # noqa: N815
    """The message has only the key of the row."""
    claimCheckLocation: str | None = None  # noqa: N815
    """The whole row lies in a file of the changefeed's external storage, the message has only its key."""

    @property
    def flag(self) -> str | None:
        """Return the flag that marks the message as incomplete; None if it is complete."""
        if self.onlyHandleKey:
            return "onlyHandleKey"
        return "claimCheckLocation" if self.claimCheckLocation else None


def identifies_rows(images: Iterable[msgspec.Raw], key: tuple[str, ...] | None) -> bool:
    """Return whether each image has the whole key, so that it suffices to delete the row."""
    return bool(key) and all(_has_key(members(bytes(image)), key or ()) for image in images)


def _has_key(found: Mapping[str, msgspec.Raw], key: tuple[str, ...]) -> bool:
    values = {name.casefold(): bytes(raw) for name, raw in found.items()}
    return all(values.get(name.casefold(), NULL) != NULL for name in key)


def without_values(block: TidbExtension | None, type_: str | None) -> IncompleteMessageError:
    """Return the error for a row whose message has only the key."""
    block = block or TidbExtension()
    if block.flag == "onlyHandleKey":
        where = f"read the row from TiDB as of commitTs {block.commitTs} (tidb_snapshot)"
    else:
        where = f"read the row from the file {block.claimCheckLocation!r:.200} of the changefeed's storage"
    return IncompleteMessageError(
        f"`_tidb.{block.flag}` says that the message has only the key of the row, and the other values of this "
        f"{type_} are not known: {where}, or capture again with a larger max-message-bytes and topic limit"
    )
