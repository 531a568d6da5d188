"""Which rows can be erased, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidemark.erasure.subject import find_subject
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger


def test_a_table_whose_first_cut_is_not_published_is_refused(lake: Lake) -> None:
    """Compact has made it, so it is there, but the ledger says of no cut where it stands."""
    properties = {SOURCE_PROPERTY: "unseen", OBJECT_PROPERTY: "shop.people"}
    lake.ensure(("unseen", "people"), pa.schema([("id", pa.int64())]), properties)
    with pytest.raises(
        ConfigurationError, match=r"was never published: .* `tidemark status unseen` shows what holds it"
    ):
        find_subject(lake, Ledger(lake, "unseen"), "unseen.people", ["id=1"], follow=False)
