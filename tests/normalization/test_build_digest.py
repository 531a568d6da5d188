"""What of a source file decides how tables are built, as one digest."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.ledger.rows import CutRow
from tidemark.ledger.states import CutState
from tidemark.normalization.build_digest import build_digest, built_by, is_built_by_another
from tidemark.normalization.source_changes import Need, declared_by, since
from tidemark.sources.model import Source

_CHECK = {"type": "expect_column_values_to_not_be_null", "column": "room"}


def _source(tables: dict[str, Any] | None = None, **fields: Any) -> Source:
    given = {"source": "inn", "format": "canal_json", "landing": "/landing/*", "tables": tables or {}, **fields}
    return Source.model_validate(given)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"format": "cdl_json"}),
        ({}, {"target": "hotels.{table}"}),
        ({}, {"transactions": "ignore"}),
        ({}, {"log_restarts": ["2026-03-04T05:00:00Z"]}),
        ({"mask_secret": "${ONE}"}, {"mask_secret": "${OTHER}"}),
        ({"tables": {"inn.guests": {"mask": {"phone": "hash"}}}}, {"tables": {"inn.guests": {"exclude": ["phone"]}}}),
        (
            {"tables": {"inn.guests": {"mask": {"a*": "hash", "*": "redact"}}}},
            {"tables": {"inn.guests": {"mask": {"*": "redact", "a*": "hash"}}}},
        ),
        (
            {"tables": {"inn.*": {"where": "id > 1"}, "*.guests": {"where": "id > 2"}}},
            {"tables": {"*.guests": {"where": "id > 2"}, "inn.*": {"where": "id > 1"}}},
        ),
        (
            {"tables": {"inn.*": {"exclude": ["phone"]}}},
            {"tables": {"inn.guests": {"max_deletes": 1}, "inn.*": {"exclude": ["phone"]}}},
        ),
        ({"tables": {"*.guests": {}, "inn.*": {"deletes": "soft"}}}, {"tables": {"inn.*": {"deletes": "soft"}}}),
        ({"schema": {"table": "hold"}}, {"schema": {"table": "hold"}, "tables": {"inn.guests": {}}}),
        (
            {"tables": {"inn.guests": {"checks": [_CHECK]}}},
            {"tables": {"inn.guests": {"checks": [{**_CHECK, "on_fail": "quarantine"}]}}},
        ),
    ],
)
def test_what_builds_a_table_changes_the_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The order of patterns counts, and an entry that hides another one, or gives the consent that a table needs."""
    assert build_digest(_source(**one)) != build_digest(_source(**other))


def test_a_policy_of_an_entry_counts_though_it_be_the_default() -> None:
    """It counts before the other one of the source, so it is another file for the digest, and for `tidemark plan`."""
    of_source = {"add": "strict", "rename": "keep"}
    written = [{"add": "evolve"}, {"rename": "evolve"}, {"add": "evolve", "rename": "evolve"}]
    sources = [_source({"inn.guests": {"schema": each}}, schema=of_source) for each in written]
    assert len({str(source.policies_for("inn.guests")) for source in sources}) == len(written)
    assert len(set(map(build_digest, sources))) == len(written)
    (change,) = since(declared_by(sources[0]), sources[1])
    assert (str(change), change.need) == (
        'tables.inn.guests.schema: {"add": "evolve"} -> {"rename": "evolve"}',
        Need.RUN,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"max_deletes": 0.5, "max_quarantined": 1, "max_message_mib": 2},
        {"invariants": {"before_images": "block"}, "schedule": "@daily", "landing": "/other/*", "report_keys": True},
        {"tables": {"inn.rooms": {"max_deletes": 1, "checks": [_CHECK]}}},
        {"tables": {"inn.*": {"freshness": {"warn_after_hours": 6}}}},
    ],
)
def test_what_judges_and_lands_does_not(fields: dict[str, Any]) -> None:
    """What is looked at stays as it is while somebody sets a limit or corrects a check."""
    assert build_digest(_source(**fields)) == build_digest(_source())


def test_a_cut_without_a_digest_counts_as_built_by_the_file() -> None:
    """An earlier version built it, or an erasure."""
    source, other = _source(), _source(target="hotels.{table}")
    cuts = [CutRow(cut=1, state=CutState.CHECKED, batch=1, built_by=each) for each in (None, built_by(source))]
    assert [[is_built_by_another(cut, each) for cut in cuts] for each in (source, other)] == [
        [False, False],
        [False, True],
    ]


@pytest.mark.parametrize(
    ("then", "now", "is_another"),
    [
        ({"before_images": "off"}, {}, True),
        ({"loaded_again": "off", "missing_rows": "off"}, {"missing_rows": "off", "loaded_again": "warn"}, True),
        ({"missing_rows": "off"}, {"existing_rows": "off"}, True),
        ({"missing_rows": "off"}, {"missing_rows": "off", "incomplete_rows": "off"}, False),
        ({}, {"before_images": "off", "different_copies": "block"}, False),
        ({"volume": "off"}, {"volume": "block"}, False),
    ],
)
def test_a_cut_that_was_not_searched_for_what_is_on_by_now_is_built_again(
    then: dict[str, str],
    now: dict[str, str],
    is_another: bool,  # noqa: FBT001 - a column of the cases
) -> None:
    """Compact searches; check would find nothing in the cut. What check itself finds does not matter."""
    built = CutRow(cut=1, state=CutState.CHECKED, batch=1, built_by=built_by(_source(invariants=then)))
    assert is_built_by_another(built, _source(invariants=now)) is is_another
