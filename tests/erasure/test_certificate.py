"""What a certificate of an erasure claims."""

from __future__ import annotations

import msgspec
import pytest

from tidemark.erasure.certificate import Certificate, SearchedTable

CLEAN = Certificate(
    source="erp",
    table="erp.customers",
    names=["shop.customers"],
    key_columns=["id"],
    earlier_key_columns=[],
    digests=["d"],
    secret="s",  # noqa: S106  by what it is recognised
    erased_up_to="2026-11-27T00:00:00+00:00",
    cut=4,
    searched_at="2026-11-27T00:00:00+00:00",
    places={"erp.customers": SearchedTable(files=1, unused_files=0)},
    newer_events=0,
    unread_messages={},
    unsearched_messages={},
    unfollowed=0,
    dumps={"day1.json": [1]},
)


@pytest.mark.parametrize(
    ("changed", "claims"),
    [
        ({}, True),
        ({"places": {"erp.customers": SearchedTable(files=1, unused_files=0, found=1)}}, False),
        ({"places": {"erp.customers": SearchedTable(files=1, unused_files=0, unknown_files=1)}}, False),
        ({"unread_messages": {"day1.json": [2]}}, False),
        ({"unsearched_messages": {"day1.avro": 2}}, False),
        ({"retriable_messages": {"day1.json": [3]}}, False),
        ({"unfollowed": 7}, False),
        ({"unpaired_events": 2}, False),
        ({"copies": ["shop._customers_gho"]}, True),
        ({"unkeyed_events": {"shop._customers_gho": 1}}, False),
        ({"published_copies": {"shop._customers_old": 1}}, False),
    ],
)
def test_nothing_found_is_claimed_only_where_it_is_known(changed: dict[str, object], *, claims: bool) -> None:
    """Not with a row left, an undecoded message that may have the key, or expired events that may have had another."""
    certificate = msgspec.structs.replace(CLEAN, **changed)
    assert certificate.nothing_found is claims
    assert msgspec.json.decode(certificate.as_json())["nothing_found"] is claims
