"""Every golden message gives exactly the events beside it."""

from __future__ import annotations

import json

import pytest

from support.cases import Case, case_name, cases
from tidemark import formats
from tidemark.normalization.canonical_json import to_line


@pytest.mark.parametrize("name", formats.names())
def test_each_format_has_golden_messages(name: str) -> None:
    """A format without golden messages is not finished."""
    assert cases(name)
    assert all(case.messages and case.expected for case in cases(name))


@pytest.mark.parametrize("case", cases(), ids=case_name)
def test_golden_messages_give_their_events(case: Case) -> None:
    """The events of all messages of a case, as printed, are the events of its file."""
    printed = [json.loads(to_line(event)) for message in case.messages for event in case.printed(message)]
    assert printed == case.expected
