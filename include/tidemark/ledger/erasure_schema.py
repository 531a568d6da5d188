"""The Arrow schema of the ledger's erased keys."""

from __future__ import annotations

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT

ERASURES = pa.schema(
    [
        ("source", pa.string()),
        ("object", pa.string()),
        ("digest", pa.string()),
        ("reading", pa.string()),
        ("secret", pa.string()),
        ("before", INSTANT),
        ("horizon", pa.string()),
        ("state", pa.string()),
        ("cut", pa.int32()),
        ("at", INSTANT),
        ("begins", pa.string()),
        ("ends", pa.string()),
        ("unfollowed", pa.int32()),
        ("unpaired", pa.int32()),
    ]
)
"""Keys whose rows were erased. ``digest`` is a keyed hash of the key, ``reading`` says how keys are read from images
(JSON), ``secret`` is by what the secret of the hash is recognised. Events of the key are of the erased row if they were
committed up to ``before``; events without a commit time, if their position is not above ``horizon``. Only positions
from ``begins`` on and before ``ends`` count: the row had the key, and its table the name, no longer. ``state``:
``begun`` (written before anything is removed) or ``done``. ``cut`` is the cut of the erasure, ``unfollowed`` the last
batch whose events were past their time then, and could not show other keys of the row, ``unpaired`` how many events did
not show whether the row moved to another key."""
